/* SPDX-License-Identifier: Apache-2.0 */
#include "waterfall.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "fold.h"
#include "wrap.h"

#define LEVELS_MAX    16u /* drawn; deeper subtasks stand at the last one */
#define SERVICE_MAX   16u /* columns */
#define NAME_MIN      16u
#define NAME_WIDEST   40u
#define MS_WIDTH      7u
#define NOTE_WIDTH    22u
#define NARROW        84u /* columns; below, service and note are given less */
#define NARROW_COLUMN 12u
#define AXIS_MIN      8u
/* Where not even these have room, in this order down to: */
#define SERVICE_LEAST 6u
#define NAME_LEAST    8u
#define NOTE_LEAST    8u
#define AXIS_LEAST    6u
#define TEXT_MAX      1024

typedef struct {
  FILE *out;
  const ctl_style_t *style;
  const ctl_execution_t *execution;
  ctl_fold_t *fold;
  uint32_t service_width, name_width, axis_width, note_width;
  uint64_t from_ns, span_ns;
  int said_critical;
} fall_t;

/* ---- one line ---------------------------------------------------------------------- */

/* The lines of the tree above and before a name. */
static size_t branches (const fall_t *self, uint32_t index, char *out, size_t size)
{
  const ctl_subtask_t *subtasks = self->execution->subtasks;
  uint32_t way[LEVELS_MAX], levels = 0;
  size_t at = 0;
  int utf8 = self->style->utf8;
  for (uint32_t i = index; subtasks[i].parent != CTL_NO_PARENT && levels < LEVELS_MAX; i = subtasks[i].parent)
    way[levels++] = i;
  out[0] = 0;
  while (levels--) {
    int last = self->fold[way[levels]].last;
    const char *piece = levels == 0 ? (utf8 ? (last ? "└ " : "├ ") : (last ? "`-" : "|-"))
                        : last      ? "  "
                        : utf8      ? "│ "
                                    : "| ";
    at += (size_t) snprintf (out + at, size - at, "%s", piece);
  }
  return at;
}

/* The tree's lines and the name: "├ GET /quote/{id}", "├ postgresql 10.0.0.5:5432 × 38". */
static void name_of (const fall_t *self, uint32_t index, int peer, char *out, size_t size)
{
  const ctl_subtask_t *subtask = &self->execution->subtasks[index];
  size_t at = branches (self, index, out, size);
  at += ctl_style_safe (out + at, size - at, subtask->name, self->style->utf8);
  if (subtask->hop != CTL_HOP_OPAQUE || at + 1 >= size)
    return;
  if (peer && *subtask->service) {
    out[at++] = ' ';
    at += ctl_style_safe (out + at, size - at, subtask->service, self->style->utf8);
  }
  if (self->fold[index].calls > 1 && at < size)
    snprintf (out + at, size - at, " %s %llu", self->style->utf8 ? "×" : "x",
              (unsigned long long) self->fold[index].calls);
}

static uint32_t column_of (const fall_t *self, uint64_t ns)
{
  if (ns <= self->from_ns || !self->span_ns)
    return 0;
  double share = (double) (ns - self->from_ns) / (double) self->span_ns;
  return share >= 1 ? self->axis_width - 1 : (uint32_t) (share * (self->axis_width - 1) + 0.5);
}

/* The columns in which one of those was at work that a line stands for. */
static void print_covered (const fall_t *self, uint32_t line)
{
  const ctl_subtask_t *subtasks = self->execution->subtasks;
  uint8_t busy[CTL_STYLE_COLUMNS_MAX] = {0};
  uint32_t parent = subtasks[line].parent;
  uint32_t first = parent == CTL_NO_PARENT ? 0 : subtasks[parent].first_child;
  for (uint32_t i = first; i < self->execution->count;
       i = parent == CTL_NO_PARENT ? i + 1 : subtasks[i].next_sibling)
    if (self->fold[i].into == line)
      for (uint32_t at = column_of (self, subtasks[i].start_ns); at <= column_of (self, subtasks[i].end_ns);
           at++)
        busy[at] = 1;
  for (uint32_t at = 0; at < self->axis_width; at++)
    fputs (!busy[at] ? " " : self->style->utf8 ? "╌" : ".", self->out);
}

static void print_axis (const fall_t *self, const ctl_subtask_t *subtask)
{
  int utf8 = self->style->utf8;
  uint32_t from = column_of (self, subtask->start_ns), to = column_of (self, subtask->end_ns);
  fprintf (self->out, "%*s", (int) from, "");
  if (from == to)
    fputs (utf8 ? "│" : "|", self->out);
  else {
    fputs (utf8 ? "├" : "|", self->out);
    for (uint32_t i = from + 1; i < to; i++)
      fputs (utf8 ? "─" : "-", self->out);
    fputs (utf8 ? "┤" : "|", self->out);
  }
  fprintf (self->out, "%*s", (int) (self->axis_width - 1 - to), "");
}

static void print_note (fall_t *self, const char *text, int critical)
{
  char note[128] = "";
  const char *mark = self->style->utf8 ? "◀" : "<";
  if (critical) {
    const char *word = self->said_critical ? "" : " critical";
    int told = *text && strncmp (text, "self ", 5) != 0; /* what went wrong is said before what takes long */
    snprintf (note, sizeof note, "%s%s%s%s", text, *text ? "  " : "", mark, word);
    if (ctl_style_width (note) > self->note_width && told)
      snprintf (note, sizeof note, "%s  %s", text, mark);
    if (ctl_style_width (note) > self->note_width)
      snprintf (note, sizeof note, "%s%s", told ? text : mark, told ? "" : word);
    if (ctl_style_width (note) > self->note_width && !told)
      snprintf (note, sizeof note, "%s", mark);
  } else if (ctl_style_width (text) <= self->note_width ||
             strncmp (text, "self ", 5) != 0) { /* no half numbers */
    snprintf (note, sizeof note, "%s", text);
  }
  self->said_critical |= strstr (note, " critical") != NULL;
  if (!*note)
    return;
  uint32_t width = ctl_style_width (note);
  fputs ("  ", self->out);
  ctl_style_cell (self->out, self->style, note, width < self->note_width ? width : self->note_width, 0);
}

/* What the two copies tell beside the times; empty where all is as it should be. */
static void note_of (const fall_t *self, uint32_t index, char *out, size_t size)
{
  const ctl_subtask_t *subtask = &self->execution->subtasks[index];
  char self_ms[32];
  const char *error = ctl_error_text (subtask->error);
  ctl_style_ms (self_ms, sizeof self_ms, subtask->self_ns);
  out[0] = 0;
  if (*error)
    snprintf (out, size, "%s", error);
  else if (subtask->status >= 500)
    snprintf (out, size, "status %u", subtask->status);
  else if (subtask->hop == CTL_HOP_EMBED_ONLY)
    snprintf (out, size, "%s", subtask->inside ? "not captured" : "outside");
  else if (subtask->hop == CTL_HOP_OPAQUE)
    snprintf (out, size, "opaque");
  else if (subtask->hop == CTL_HOP_CAPTURE_ONLY && index)
    snprintf (out, size, "caller not seen");
  else if (index && subtask->parent == CTL_NO_PARENT)
    snprintf (out, size, "%s", subtask->hop == CTL_HOP_ROOT ? "second root" : "caller missing");
  else if (subtask->first_child != CTL_NO_PARENT)
    snprintf (out, size, "self %s", self_ms);
}

static void print_subtask (fall_t *self, uint32_t index)
{
  const ctl_subtask_t *subtask = &self->execution->subtasks[index];
  char name[TEXT_MAX], service[WEFT_SERVICE_MAX * 4], ms[32], note[64];
  int bad = ctl_fold_is_bad (subtask);
  int opaque = subtask->hop == CTL_HOP_OPAQUE;
  ctl_style_safe (service, sizeof service, opaque ? "" : subtask->service, self->style->utf8);
  name_of (self, index, 1, name, sizeof name);
  if (opaque && ctl_style_width (name) > self->name_width) /* how often says more than where */
    name_of (self, index, 0, name, sizeof name);
  ctl_style_ms (ms, sizeof ms, opaque ? self->fold[index].wait_ns : subtask->end_ns - subtask->start_ns);
  note_of (self, index, note, sizeof note);
  if (bad)
    ctl_style_colour (self->out, self->style, CTL_COLOUR_RED);
  ctl_style_cell (self->out, self->style, service, self->service_width, 0);
  fputc (' ', self->out);
  ctl_style_cell (self->out, self->style, name, self->name_width, 0);
  fputc (' ', self->out);
  print_axis (self, subtask);
  fprintf (self->out, " %*s", (int) MS_WIDTH, ms);
  print_note (self, note, subtask->on_critical_path && index != 0);
  if (bad)
    ctl_style_colour (self->out, self->style, CTL_COLOUR_NONE);
  fputc ('\n', self->out);
}

/* What a line stands for: "⋮ 7 more like it", "⋮ 960 others, shorter", "⋮ 9,968 deeper". */
static void text_of_line (const fall_t *self, uint32_t index, char *out, size_t size)
{
  static const char *const what[] = {"", "more like it", "others, shorter", "deeper"};
  const ctl_fold_t *fold = &self->fold[index];
  char number[32], bare[40];
  size_t at = branches (self, index, out, size), piece = self->style->utf8 ? strlen ("└ ") : strlen ("`-");
  at = at >= piece ? at - piece : 0;
  ctl_style_number (number, sizeof number, fold->count);
  snprintf (out + at, size - at, "%s %s %s", self->style->utf8 ? "⋮" : ":", number, what[fold->line]);
  uint32_t width = ctl_style_width (out + at);
  if (self->name_width > width &&
      ctl_style_width (out) > self->name_width) /* how many says more than where */
    snprintf (out, size, "%*s%s %s %s", (int) (self->name_width - width), "", self->style->utf8 ? "⋮" : ":",
              number, what[fold->line]);
  snprintf (bare, sizeof bare, "%s %s", self->style->utf8 ? "⋮" : ":", number);
  if (self->name_width && self->name_width <= ctl_style_width (bare)) /* no half numbers */
    snprintf (out, size, "%s", bare);
}

static void print_fold (fall_t *self, uint32_t index)
{
  const ctl_fold_t *fold = &self->fold[index];
  char text[TEXT_MAX], ms[32], note[64] = "";
  text_of_line (self, index, text, sizeof text);
  ctl_style_ms (ms, sizeof ms, fold->ns);
  if (fold->failed)
    snprintf (note, sizeof note, "%u failed", fold->failed);
  if (fold->failed)
    ctl_style_colour (self->out, self->style, CTL_COLOUR_RED);
  ctl_style_cell (self->out, self->style, "", self->service_width, 0);
  fputc (' ', self->out);
  ctl_style_cell (self->out, self->style, text, self->name_width, 0);
  fputc (' ', self->out);
  print_covered (self, index);
  fprintf (self->out, " %*s", (int) MS_WIDTH, ms);
  print_note (self, note, fold->critical);
  if (fold->failed)
    ctl_style_colour (self->out, self->style, CTL_COLOUR_NONE);
  fputc ('\n', self->out);
}

/* ---- around it ----------------------------------------------------------------------- */

/* Takes what it can of what is lacking. */
static uint32_t spare (uint32_t lack, uint32_t least, uint32_t *width)
{
  uint32_t most = *width > least ? *width - least : 0, taken = lack < most ? lack : most;
  *width -= taken;
  return lack - taken;
}

/* Service and note are as wide as they would be; the rest is the name's and the axis'. */
static void share_out (fall_t *self)
{
  uint32_t columns = self->style->columns, name_min = NAME_MIN, axis_min = AXIS_MIN;
  uint32_t wanted = self->service_width + 1 + 1 + 1 + MS_WIDTH + 2 + self->note_width + axis_min + name_min;
  uint32_t lack = wanted > columns ? wanted - columns : 0;
  lack = spare (lack, SERVICE_LEAST, &self->service_width);
  lack = spare (lack, NAME_LEAST, &name_min);
  lack = spare (lack, NOTE_LEAST, &self->note_width);
  spare (lack, AXIS_LEAST, &axis_min);
  uint32_t fixed = self->service_width + 1 + 1 + 1 + MS_WIDTH + 2 + self->note_width;
  uint32_t room = columns > fixed + axis_min + name_min ? columns - fixed : axis_min + name_min;
  uint32_t most = room / 2 > NAME_WIDEST ? NAME_WIDEST : room / 2 < name_min ? name_min : room / 2;
  self->name_width = self->name_width > most ? most : self->name_width;
  self->axis_width = room - self->name_width;
  self->axis_width = self->axis_width > CTL_STYLE_COLUMNS_MAX ? CTL_STYLE_COLUMNS_MAX : self->axis_width;
}

static void measure (fall_t *self)
{
  const ctl_execution_t *execution = self->execution;
  self->service_width = 1;
  self->name_width = 0; /* not known yet */
  for (uint32_t i = 0; i < execution->count; i++) {
    char text[TEXT_MAX];
    if (self->fold[i].hidden && !self->fold[i].line)
      continue;
    if (self->fold[i].hidden)
      text_of_line (self, i, text, sizeof text);
    else
      name_of (self, i, 1, text, sizeof text);
    uint32_t name = ctl_style_width (text);
    int opaque = execution->subtasks[i].hop == CTL_HOP_OPAQUE;
    ctl_style_safe (text, sizeof text, opaque ? "" : execution->subtasks[i].service, self->style->utf8);
    uint32_t service = ctl_style_width (text);
    self->name_width = name > self->name_width ? name : self->name_width;
    self->service_width = service > self->service_width ? service : self->service_width;
  }
  int narrow = self->style->columns < NARROW;
  uint32_t service_most = narrow ? NARROW_COLUMN : SERVICE_MAX;
  self->service_width = self->service_width > service_most ? service_most : self->service_width;
  self->note_width = narrow ? NARROW_COLUMN : NOTE_WIDTH;
  share_out (self);
  self->from_ns = execution->start_ns;
  self->span_ns = execution->duration_ns;
}

/* "16,383 requests proven", "1 request proven" */
static void say_count (ctl_wrap_t *wrap, uint64_t count, const char *one, const char *many)
{
  char number[32];
  ctl_style_number (number, sizeof number, count);
  ctl_wrap_item (wrap, "%s %s", number, count == 1 ? one : many);
}

static void print_head (const fall_t *self)
{
  const ctl_execution_t *execution = self->execution;
  char safe[WEFT_NAME_MAX * 4], ms[32], date[40];
  ctl_wrap_t wrap;
  ctl_style_safe (safe, sizeof safe, execution->name, self->style->utf8);
  ctl_style_ms (ms, sizeof ms, execution->duration_ns);
  ctl_style_date (date, sizeof date, execution->start_ns);
  ctl_style_colour (self->out, self->style, CTL_COLOUR_BOLD);
  ctl_wrap_begin (&wrap, self->out, self->style, safe);
  ctl_style_colour (self->out, self->style, CTL_COLOUR_NONE);
  ctl_wrap_item (&wrap, "  %s ms  %s  %s", ms, date,
                 execution->kind == CTL_KIND_ORPHAN ? "orphan"
                 : execution->complete              ? "complete"
                                                    : "incomplete");
  ctl_wrap_end (&wrap);
  if (execution->kind == CTL_KIND_ORPHAN) {
    ctl_style_safe (safe, sizeof safe, execution->origin, self->style->utf8);
    ctl_wrap_begin (&wrap, self->out, self->style, "");
    ctl_wrap_item (&wrap, "from unknown in service %s: %s", safe, ctl_reason_text (execution->reason));
    ctl_wrap_end (&wrap);
  }
}

/* Requests that only one side has seen, unless that is as it should be: a caller or a callee outside weft. */
static void print_foot (const fall_t *self)
{
  const ctl_execution_t *execution = self->execution;
  uint32_t outside = 0, missing = 0, unseen = 0;
  uint64_t opaque = 0, folded = 0;
  ctl_wrap_t wrap;
  for (uint32_t i = 0; i < execution->count; i++) {
    const ctl_subtask_t *subtask = &execution->subtasks[i];
    folded += self->fold[i].line > CTL_FOLD_LIKE ? self->fold[i].count : 0;
    outside += subtask->hop == CTL_HOP_EMBED_ONLY && !subtask->inside;
    missing += subtask->hop == CTL_HOP_EMBED_ONLY && subtask->inside;
    unseen += subtask->hop == CTL_HOP_CAPTURE_ONLY && i > 0;
    opaque += subtask->calls;
  }
  ctl_wrap_begin (&wrap, self->out, self->style, "");
  if (!outside && !missing && !unseen && !execution->truncated)
    ctl_wrap_item (&wrap,
                   execution->hops[CTL_HOP_PROVEN] ? "all requests proven" : "no requests to other services");
  else
    say_count (&wrap, execution->hops[CTL_HOP_PROVEN], "request proven", "requests proven");
  if (outside)
    say_count (&wrap, outside, "to the outside", "to the outside");
  if (missing)
    say_count (&wrap, missing, "not captured", "not captured");
  if (unseen)
    say_count (&wrap, unseen, "from a caller not seen", "from a caller not seen");
  if (opaque)
    say_count (&wrap, opaque, "opaque call", "opaque calls");
  if (execution->truncated)
    say_count (&wrap, execution->truncated, "subtask left out", "subtasks left out");
  if (folded)
    say_count (&wrap, folded, "folded: --full shows it", "folded: --full shows them");
  char ms[32];
  ctl_style_ms (ms, sizeof ms, execution->clock_uncertainty_ns);
  if (execution->aligned)
    ctl_wrap_item (&wrap, "clock: %u hosts, aligned %s %s ms", execution->hosts,
                   self->style->utf8 ? "±" : "+-", ms);
  else if (execution->hosts > 1)
    ctl_wrap_item (&wrap, "clock: %u hosts, raw", execution->hosts);
  else
    ctl_wrap_item (&wrap, "clock: one host");
  ctl_wrap_end (&wrap);
}

int ctl_waterfall (FILE *out, const ctl_style_t *style, const ctl_execution_t *execution, int all)
{
  fall_t self = {.out = out, .style = style, .execution = execution};
  self.fold = calloc (execution->count + 1u, sizeof *self.fold);
  int rc = self.fold ? ctl_fold (execution, all, self.fold) : WEFT_E_NOMEM;
  if (rc < 0) {
    free (self.fold);
    return rc;
  }
  measure (&self);
  print_head (&self);
  for (uint32_t i = 0; i < execution->count; i++) {
    if (!self.fold[i].hidden)
      print_subtask (&self, i);
    else if (self.fold[i].line)
      print_fold (&self, i);
  }
  print_foot (&self);
  free (self.fold);
  return ferror (out) ? WEFT_E_IO : 0;
}
