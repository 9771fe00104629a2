/* SPDX-License-Identifier: Apache-2.0 */
#include "sentences.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "../../common/limits.h"
#include "../task/why.h"

#define HEAD        "why slow   "
#define NUMBER_MAX  32
#define SAFE_MAX    1024
#define PLACE_MAX   (4 * SAFE_MAX)
#define MANY_CALLS  3.0 /* from so many on it is the pattern that people call N+1 */
#define HARDLY_EVER 0.05
#define MOST_JUDGED 0.9

/* Text that grows and is cut at the end of its room. */
typedef struct {
  char *out;
  size_t size, used;
  uint8_t utf8;
} text_t;

static void say (text_t *text, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
static void say (text_t *text, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  int more = vsnprintf (text->out + text->used, text->size - text->used, format, args);
  va_end (args);
  size_t room = text->size - text->used - 1;
  text->used += more < 0 ? 0 : (size_t) more < room ? (size_t) more : room;
}

static void say_ms (text_t *text, uint64_t ns)
{
  char ms[NUMBER_MAX];
  ctl_style_ms (ms, sizeof ms, ns);
  say (text, "%s ms", ms);
}

static void say_safe (text_t *text, const char *raw)
{
  char safe[SAFE_MAX];
  ctl_style_safe (safe, sizeof safe, raw, text->utf8);
  say (text, "%s", safe);
}

/* "9", "4.2", "no" */
static void say_calls (text_t *text, double calls)
{
  double whole = (double) (uint64_t) (calls + 0.5);
  int even = calls - whole < HARDLY_EVER && whole - calls < HARDLY_EVER;
  if (even && whole < 1)
    say (text, "none");
  else
    say (text, even || calls >= 9.95 ? "%.0f" : "%.1f", calls);
}

/* "orders → pricing GET /quote/{id}", "orders → postgresql 10.0.0.5:5432", "front POST /checkout" */
static void say_place (text_t *text, const ctl_why_cause_t *cause)
{
  int opaque = cause->hop == CTL_HOP_OPAQUE;
  const char *first = opaque ? cause->name : cause->service, *second = opaque ? cause->service : cause->name;
  if (*cause->from_service) {
    say_safe (text, cause->from_service);
    say (text, text->utf8 ? " → " : " -> ");
  }
  say_safe (text, *first ? first : "an unnamed service");
  if (*second) {
    say (text, " ");
    say_safe (text, second);
  }
  if (cause->hop == CTL_HOP_EMBED_ONLY)
    say (text, " (not captured)");
}

static void say_slowest (text_t *text, const ctl_why_t *why)
{
  char share[NUMBER_MAX], slow[NUMBER_MAX], of[NUMBER_MAX];
  ctl_style_percent (share, sizeof share, (double) why->slow / (why->of ? why->of : 1));
  ctl_style_number (slow, sizeof slow, why->slow);
  ctl_style_number (of, sizeof of, why->of);
  say (text, "The slowest %s (%s of %s)", share, slow, of);
}

static void say_each (text_t *text, const ctl_why_cause_t *cause)
{
  say_ms (text, cause->each_ns);
  say (text, " instead of ");
  say_ms (text, cause->usual_ns);
  say (text, cause->calls > 1.5 ? " a call" : "");
}

static void say_count (text_t *text, const ctl_why_cause_t *cause)
{
  say_calls (text, cause->calls);
  say (text, " calls instead of ");
  say_calls (text, cause->usual_calls);
  if (cause->kind == CTL_WHY_RETRY) {
    say (text, ", ");
    say_calls (text, cause->failed);
    say (text, " of them failed or came twice (retries)");
  } else if (cause->calls >= MANY_CALLS && cause->calls > 2 * cause->usual_calls) {
    say (text, " (N+1)");
  }
}

/* What the time is, as far as that can be seen. */
static void say_own (text_t *text, const ctl_why_cause_t *cause)
{
  ctl_why_kind_t own = cause->kind == CTL_WHY_HELD ? cause->own : cause->kind;
  if (own == CTL_WHY_CPU)
    say (text, ", computing");
  if (own == CTL_WHY_WAIT)
    say (text, ", without the CPU (a lock, a pool, a sleep)");
  if (own == CTL_WHY_QUEUE)
    say (text, " (a queue before its threads, or on the way there)");
  if (own == CTL_WHY_NETWORK && cause->apart > 0)
    say (text, " (the network, or a queue there: the clocks of two hosts cannot tell)");
}

/* Who waits elsewhere for the same thing. */
static void say_behind (text_t *text, const ctl_why_cause_t *cause)
{
  if (!cause->behind_ns)
    return;
  say (text, "; ");
  say_ms (text, cause->behind_ns);
  say (text, " of it before ");
  say_safe (text, *cause->behind ? cause->behind : "an unnamed service");
  say (text, ", whose threads wait for that");
}

/* Behind "148 ms more": where, and how that comes. */
static void say_how (text_t *text, const ctl_why_cause_t *cause)
{
  if (cause->kind == CTL_WHY_QUEUE) {
    say (text, "before ");
    say_safe (text, cause->service);
    say (text, " takes up ");
  } else {
    say (text, cause->kind == CTL_WHY_NETWORK ? "on the way of "
               : cause->kind == CTL_WHY_HELD  ? "before or in "
                                              : "in ");
  }
  say_place (text, cause);
  say (text, ": ");
  if (cause->kind == CTL_WHY_CALLS || cause->kind == CTL_WHY_RETRY) {
    say_count (text, cause);
    return;
  }
  if (cause->kind == CTL_WHY_OPAQUE)
    say (text, "waits of ");
  if (cause->kind == CTL_WHY_HELD) {
    say_ms (text, cause->before_ns);
    say (text, " until it is taken up, the rest in itself");
  } else {
    say_each (text, cause);
  }
  say_own (text, cause);
}

static void say_causes (text_t *text, const ctl_why_t *why)
{
  for (uint32_t i = 0; i < why->cause_count; i++) {
    if (i == 0) {
      say_slowest (text, why);
      say (text, " spend ");
    } else {
      say (text, " Another ");
    }
    say_ms (text, why->causes[i].more_ns);
    say (text, i == 0 ? " more " : " goes ");
    say_how (text, &why->causes[i]);
    say_behind (text, &why->causes[i]);
    say (text, ".");
  }
  if (why->other_ns) {
    say (text, " Nothing else differs by more than ");
    say_ms (text, why->other_ns);
    say (text, ".");
  }
}

static void say_unknown (text_t *text, const ctl_why_t *why)
{
  char number[NUMBER_MAX];
  const ctl_why_cause_t *cause = &why->causes[0];
  ctl_style_number (number, sizeof number, why->unknown);
  say_slowest (text, why);
  say (text, " spend ");
  say_ms (text, cause->more_ns);
  say (text, " more in ");
  say_place (text, cause);
  say (text, ". Whether in itself cannot be said: %s request%s left ", number, why->unknown == 1 ? "" : "s");
  say_safe (text, cause->service);
  say (text, " without a known caller.");
}

/* Where most of the median goes: what it has to wait for, not what goes on beside it. */
static void say_median (text_t *text, const ctl_analysis_name_t *name)
{
  const ctl_analysis_row_t *most = NULL;
  char share[NUMBER_MAX];
  for (uint32_t i = 0; i < name->row_count; i++)
    if (!most || name->rows[i].critical_ns > most->critical_ns)
      most = &name->rows[i];
  if (!most || !name->mean_ns || !most->critical_ns)
    return;
  ctl_why_cause_t place = {
      .from_service = "", .service = most->service, .name = most->name, .hop = most->hop};
  ctl_style_percent (share, sizeof share, (double) most->critical_ns / (double) name->mean_ns);
  say (text, " The largest part of the median, %s, is ", share);
  say_place (text, &place);
  if (most->calls >= 1.5) {
    say (text, " (");
    say_calls (text, most->calls);
    say (text, " calls)");
  }
  say (text, ".");
}

static void say_nothing (text_t *text, const ctl_why_t *why)
{
  say_slowest (text, why);
  say (text, " take ");
  say_ms (text, why->slow_ns);
  say (text, " instead of ");
  say_ms (text, why->mean_ns);
  say (text, ", and nothing stands out in them.");
}

/* What the sentences before are to be taken with. */
static void say_limits (text_t *text, const ctl_analysis_t *analysis, const ctl_analysis_name_t *name)
{
  char number[NUMBER_MAX];
  if (name->why.verdict != CTL_WHY_FEW && (double) name->complete < MOST_JUDGED * (double) name->executions) {
    ctl_style_number (number, sizeof number, name->executions - name->complete);
    say (text, " %s incomplete ones are not judged.", number);
  }
  if (name->why.verdict == CTL_WHY_NAMED && ctl_losses_sum (analysis->losses))
    say (text, " Reports were lost: a call may be missing here.");
}

size_t ctl_sentences (const ctl_analysis_t *analysis, const ctl_analysis_name_t *name, uint8_t utf8,
                      char *out, size_t size)
{
  text_t text = {.out = out, .size = size, .utf8 = utf8};
  const ctl_why_t *why = &name->why;
  char number[NUMBER_MAX];
  out[0] = 0;
  switch (why->verdict) {
  case CTL_WHY_NAMED:
    say_causes (&text, why);
    break;
  case CTL_WHY_UNKNOWN:
    say_unknown (&text, why);
    break;
  case CTL_WHY_NOTHING:
    say_nothing (&text, why);
    say_median (&text, name);
    break;
  default:
    ctl_style_number (number, sizeof number, name->complete);
    say (&text, "%s complete execution%s: too few to tell what the slowest do differently (%u are enough).",
         number, name->complete == 1 ? "" : "s", CTL_WHY_LEAST);
    say_median (&text, name);
  }
  say_limits (&text, analysis, name);
  return text.used;
}

/* Of a word, or of a number with its unit, which stay together; NULL at the end of the text. */
static char *end_of (char *word)
{
  char *end = strchr (word, ' ');
  while (end && isdigit ((unsigned char) end[-1]) && (end[1] == '%' || strncmp (end + 1, "ms", 2) == 0))
    end = strchr (end + 1, ' ');
  return end;
}

void ctl_sentences_print (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis,
                          const ctl_analysis_name_t *name)
{
  char text[CTL_SENTENCES_MAX];
  uint32_t indent = (uint32_t) strlen (HEAD), used = indent;
  ctl_sentences (analysis, name, style->utf8, text, sizeof text);
  ctl_style_colour (out, style, CTL_COLOUR_BOLD);
  fputs (HEAD, out);
  ctl_style_colour (out, style, CTL_COLOUR_NONE);
  for (char *word = text, *next; word; word = next) {
    next = end_of (word);
    if (next)
      *next++ = 0;
    uint32_t width = ctl_style_width (word);
    int first = used == indent;
    if (!first && used + 1 + width > style->columns) {
      fprintf (out, "\n%*s", (int) indent, "");
      used = indent;
      first = 1;
    }
    if (!first)
      fputc (' ', out);
    used += !first;
    width = width > style->columns - used ? style->columns - used : width;
    ctl_style_cell (out, style, word, width, 0);
    used += width;
  }
  fputc ('\n', out);
}
