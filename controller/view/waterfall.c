/* SPDX-License-Identifier: Apache-2.0 */
#include "waterfall.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "wrap.h"

#define SIMILAR_MAX   3u /* so many like siblings are all shown; of more, the first two */
#define SHOWN_OF_MANY 2u
#define LEVELS_MAX    16u /* drawn; deeper subtasks stand at the last one */
#define SERVICE_MAX   16u /* columns */
#define NAME_MIN      16u
#define NAME_WIDEST   40u
#define MS_WIDTH      7u
#define NOTE_WIDTH    22u
#define NARROW        84u /* columns; below, service and note are given less */
#define NARROW_COLUMN 12u
#define AXIS_MIN      8u
#define TEXT_MAX      1024

/* What is said of the subtasks that are folded behind one leader. Opaque leaves of one peer
 * and error are one line, whatever their number: their waits and calls are the leader's. */
typedef struct {
  uint32_t leader;  /* first sibling of the same service and name */
  uint32_t ordinal; /* among the similar ones */
  uint32_t total;   /* of a leader: how many */
  uint64_t folded_ns;
  uint64_t calls, wait_ns; /* opaque */
  uint8_t folded_critical;
  uint8_t hidden;
} fold_t;

typedef struct {
  FILE *out;
  const ctl_style_t *style;
  const ctl_execution_t *execution;
  fold_t *fold;
  uint32_t service_width, name_width, axis_width, note_width;
  uint64_t from_ns, span_ns;
  int said_critical;
} fall_t;

static int similar (const ctl_subtask_t *a, const ctl_subtask_t *b)
{
  return a->parent == b->parent && a->hop == b->hop && (a->hop != CTL_HOP_OPAQUE || a->error == b->error) &&
         strcmp (a->name, b->name) == 0 && strcmp (a->service, b->service) == 0;
}

static void each_for_itself (fall_t *self)
{
  for (uint32_t i = 0; i < self->execution->count; i++)
    self->fold[i] = (fold_t){.leader = i, .total = 1};
}

/* Leaders are found by walking the leaders of the same parent only: few, where names are templated. */
static void find_leaders (fall_t *self)
{
  const ctl_subtask_t *subtasks = self->execution->subtasks;
  uint32_t count = self->execution->count;
  each_for_itself (self);
  for (uint32_t parent = 0; parent < count; parent++)
    for (uint32_t i = subtasks[parent].first_child; i != CTL_NO_PARENT; i = subtasks[i].next_sibling)
      for (uint32_t k = subtasks[parent].first_child; k != i; k = subtasks[k].next_sibling)
        if (self->fold[k].leader == k && similar (&subtasks[k], &subtasks[i])) {
          self->fold[i].leader = k;
          self->fold[i].ordinal = self->fold[k].total++;
          break;
        }
}

static void hide (fall_t *self)
{
  const ctl_subtask_t *subtasks = self->execution->subtasks;
  for (uint32_t i = 0; i < self->execution->count; i++) {
    fold_t *fold = &self->fold[i], *leader = &self->fold[fold->leader];
    if (subtasks[i].hop == CTL_HOP_OPAQUE) {
      leader->calls += subtasks[i].calls;
      leader->wait_ns += subtasks[i].wait_ns;
      fold->hidden = fold->ordinal > 0;
    }
    if (subtasks[i].parent != CTL_NO_PARENT && self->fold[subtasks[i].parent].hidden)
      fold->hidden = 1;
    else if (subtasks[i].hop == CTL_HOP_OPAQUE)
      continue;
    else if (leader->total > SIMILAR_MAX && fold->ordinal >= SHOWN_OF_MANY) {
      fold->hidden = 1;
      leader->folded_ns += subtasks[i].end_ns - subtasks[i].start_ns;
      leader->folded_critical |= subtasks[i].on_critical_path;
    }
  }
}

/* ---- one line ---------------------------------------------------------------------- */

static int is_last (const fall_t *self, uint32_t index)
{
  const ctl_subtask_t *subtasks = self->execution->subtasks;
  for (uint32_t i = subtasks[index].next_sibling; i != CTL_NO_PARENT; i = subtasks[i].next_sibling)
    if (!self->fold[i].hidden ||
        (self->fold[i].ordinal == SHOWN_OF_MANY && subtasks[i].hop != CTL_HOP_OPAQUE))
      return 0;
  return 1;
}

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
    int last = is_last (self, way[levels]);
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
    snprintf (note, sizeof note, "%s%s%s%s", text, *text ? "  " : "", mark, word);
    if (ctl_style_width (note) > self->note_width)
      snprintf (note, sizeof note, "%s%s", mark, word);
  } else {
    snprintf (note, sizeof note, "%s", text);
  }
  self->said_critical |= critical;
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
  int bad = subtask->error || subtask->status >= 500;
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

static void print_fold (fall_t *self, uint32_t index)
{
  const fold_t *leader = &self->fold[self->fold[index].leader];
  char text[TEXT_MAX], ms[32];
  size_t at = branches (self, index, text, sizeof text);
  size_t piece = self->style->utf8 ? strlen ("└ ") : strlen ("`-");
  at = at >= piece ? at - piece : 0;
  snprintf (text + at, sizeof text - at, "%s %u more like it", self->style->utf8 ? "⋮" : ":",
            leader->total - SHOWN_OF_MANY);
  ctl_style_ms (ms, sizeof ms, leader->folded_ns);
  ctl_style_cell (self->out, self->style, "", self->service_width, 0);
  fputc (' ', self->out);
  ctl_style_cell (self->out, self->style, text, self->name_width, 0);
  fprintf (self->out, " %*s %*s", (int) self->axis_width, "", (int) MS_WIDTH, ms);
  print_note (self, "", leader->folded_critical);
  fputc ('\n', self->out);
}

/* ---- around it ----------------------------------------------------------------------- */

static void measure (fall_t *self)
{
  const ctl_execution_t *execution = self->execution;
  self->service_width = self->name_width = 1;
  for (uint32_t i = 0; i < execution->count; i++) {
    char text[TEXT_MAX];
    if (self->fold[i].hidden)
      continue;
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
  uint32_t fixed = self->service_width + 1 + 1 + 1 + MS_WIDTH + 2 + self->note_width;
  uint32_t room =
      self->style->columns > fixed + AXIS_MIN + NAME_MIN ? self->style->columns - fixed : AXIS_MIN + NAME_MIN;
  uint32_t most = room / 2 > NAME_WIDEST ? NAME_WIDEST : room / 2 < NAME_MIN ? NAME_MIN : room / 2;
  self->name_width = self->name_width > most ? most : self->name_width;
  self->axis_width = room - self->name_width;
  self->from_ns = execution->start_ns;
  self->span_ns = execution->duration_ns;
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
  uint64_t opaque = 0;
  ctl_wrap_t wrap;
  for (uint32_t i = 0; i < execution->count; i++) {
    const ctl_subtask_t *subtask = &execution->subtasks[i];
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
    ctl_wrap_item (&wrap, "%u request%s proven", execution->hops[CTL_HOP_PROVEN],
                   execution->hops[CTL_HOP_PROVEN] == 1 ? "" : "s");
  if (outside)
    ctl_wrap_item (&wrap, "%u to the outside", outside);
  if (missing)
    ctl_wrap_item (&wrap, "%u not captured", missing);
  if (unseen)
    ctl_wrap_item (&wrap, "%u from a caller not seen", unseen);
  if (opaque)
    ctl_wrap_item (&wrap, "%llu opaque call%s", (unsigned long long) opaque, opaque == 1 ? "" : "s");
  if (execution->truncated)
    ctl_wrap_item (&wrap, "%u subtasks left out", execution->truncated);
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
  if (!self.fold)
    return WEFT_E_NOMEM;
  if (!all)
    find_leaders (&self);
  else
    each_for_itself (&self);
  hide (&self);
  measure (&self);
  print_head (&self);
  for (uint32_t i = 0; i < execution->count; i++) {
    uint32_t parent = execution->subtasks[i].parent;
    if (!self.fold[i].hidden)
      print_subtask (&self, i);
    else if (execution->subtasks[i].hop != CTL_HOP_OPAQUE && self.fold[i].ordinal == SHOWN_OF_MANY &&
             (parent == CTL_NO_PARENT || !self.fold[parent].hidden))
      print_fold (&self, i);
  }
  print_foot (&self);
  free (self.fold);
  return ferror (out) ? WEFT_E_IO : 0;
}
