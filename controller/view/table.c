/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "grid.h"
#include "sentences.h"
#include "wrap.h"

#define ROWS_SHOWN   24u /* of one task name: one screen */
#define INDENT_MAX   12u /* levels drawn; deeper ones stand at the last */
#define ID_DIGITS    8   /* behind leading zeros: what `weft show` can tell tasks apart by */
#define DIGITS_MAX   (2 * WEFT_TASK_ID_SIZE + 1)
#define BAR_EIGHTHS  8.0
#define BAR_SHARE    0.1 /* one block */
#define BAR_BLOCKS   10.0
#define TEXT_MAX     512
#define NUMBER_MAX   32
#define SERVICES_MAX 64u   /* in the line of visible traffic */
#define REST_SHARE   0.005 /* of the traffic: less is not worth a word */
#define REST_SECOND  0.2   /* of the rest: less is not worth a second one */

static int done (FILE *out)
{
  return ferror (out) ? WEFT_E_IO : 0;
}

static const char *dash (const ctl_style_t *style)
{
  return style->utf8 ? "–" : "-";
}

/* Other tracers' ids of 64 bits begin with as many zeros. */
static void task_digits (const uint8_t task[WEFT_TASK_ID_SIZE], char out[DIGITS_MAX])
{
  size_t bytes = ID_DIGITS / 2;
  for (size_t n = 0; n < WEFT_TASK_ID_SIZE - ID_DIGITS / 2 && task[n] == 0; n++)
    bytes++;
  weft_hex_put (out, task, bytes);
  out[2 * bytes] = 0;
}

/* ---- weft profile ----------------------------------------------------------------- */

static void bar (const ctl_style_t *style, double share, char *out, size_t size)
{
  static const char *const part[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  double blocks = share / BAR_SHARE;
  blocks = blocks > BAR_BLOCKS ? BAR_BLOCKS : blocks;
  unsigned eighths = (unsigned) (blocks * BAR_EIGHTHS + 0.5), whole = eighths / 8;
  if (!style->utf8)
    whole = (unsigned) (blocks + 0.5);
  size_t at = 0;
  out[0] = 0;
  for (unsigned i = 0; i < whole; i++)
    at += (size_t) snprintf (out + at, size - at, "%s", style->utf8 ? "▇" : "#");
  if (style->utf8)
    snprintf (out + at, size - at, "%s", part[eighths % 8]);
}

/* "    └ GET /quote/{id} × 3 (outside)", "    └ postgresql 10.0.0.5:5432 × 3 (opaque)" */
static void row_text (const ctl_style_t *style, const ctl_analysis_row_t *row, char *out, size_t size)
{
  char safe[(WEFT_NAME_MAX + WEFT_SERVICE_MAX) * 4 + 4], calls[NUMBER_MAX] = "";
  uint32_t indent = row->depth > INDENT_MAX ? INDENT_MAX : row->depth;
  size_t at = ctl_style_safe (safe, sizeof safe, row->name, style->utf8);
  if (row->hop == CTL_HOP_OPAQUE && *row->service && at + 1 < sizeof safe) {
    safe[at++] = ' ';
    ctl_style_safe (safe + at, sizeof safe - at, row->service, style->utf8);
  }
  if (row->calls < 0.995 || row->calls >= 1.05)
    snprintf (calls, sizeof calls,
              row->calls >= 9.95   ? " %s %.0f"
              : row->calls < 0.095 ? " %s %.2f"
                                   : " %s %.1f",
              style->utf8 ? "×" : "x", row->calls);
  size_t tail = strlen (calls);
  if (tail > 2 && strcmp (calls + tail - 2, ".0") == 0)
    calls[tail - 2] = 0;
  snprintf (out, size, "%*s%s%s%s%s", indent ? (int) (indent - 1) * 2 : 0, "",
            !indent       ? ""
            : style->utf8 ? "└ "
                          : "`-",
            safe, calls,
            row->hop == CTL_HOP_EMBED_ONLY ? " (not captured)"
            : row->hop == CTL_HOP_OPAQUE   ? " (opaque)"
                                           : "");
}

static void row_cells (ctl_grid_t *grid, const ctl_style_t *style, const ctl_analysis_row_t *row)
{
  char text[TEXT_MAX * 2], ms[NUMBER_MAX], share[NUMBER_MAX], blocks[64];
  row_text (style, row, text, sizeof text);
  ctl_style_ms (ms, sizeof ms, row->self_ns);
  ctl_style_percent (share, sizeof share, row->share);
  bar (style, row->share, blocks, sizeof blocks);
  ctl_grid_cell (grid, row->hop == CTL_HOP_OPAQUE ? "" : row->service);
  ctl_grid_cell (grid, ctl_style_vm (row->vm));
  ctl_grid_own (grid, "%s", text);
  ctl_grid_own (grid, "%s ms", ms);
  ctl_grid_own (grid, "%s", share);
  ctl_grid_own (grid, "%s", blocks);
}

/* One line for rows that do not fit on the screen, and one for the network. */
static void sum_cells (ctl_grid_t *grid, const ctl_style_t *style, const char *service, const char *text,
                       uint64_t self_ns, double share)
{
  char ms[NUMBER_MAX], percent[NUMBER_MAX], blocks[64];
  ctl_style_ms (ms, sizeof ms, self_ns);
  ctl_style_percent (percent, sizeof percent, share);
  bar (style, share, blocks, sizeof blocks);
  ctl_grid_own (grid, "%s", service);
  ctl_grid_own (grid, "%s", "");
  ctl_grid_own (grid, "%s", text);
  ctl_grid_own (grid, "%s ms", ms);
  ctl_grid_own (grid, "%s", percent);
  ctl_grid_own (grid, "%s", blocks);
}

static int print_rows (FILE *out, const ctl_style_t *style, const ctl_analysis_name_t *name)
{
  static const ctl_grid_column_t columns[] = {{"", 0, 1},     {"", 0, 0},      {"", 0, 1},
                                              {"self", 1, 0}, {"share", 1, 0}, {"", 0, 0}};
  ctl_grid_t *grid = ctl_grid_new (style, columns, sizeof columns / sizeof *columns);
  if (!grid)
    return WEFT_E_NOMEM;
  uint32_t shown = name->row_count > ROWS_SHOWN ? ROWS_SHOWN : name->row_count;
  uint64_t rest_ns = 0;
  for (uint32_t i = 0; i < name->row_count; i++)
    if (i < shown)
      row_cells (grid, style, &name->rows[i]);
    else
      rest_ns += name->rows[i].self_ns;
  double whole = name->mean_ns ? (double) name->mean_ns : 1;
  if (shown < name->row_count) {
    char text[64];
    snprintf (text, sizeof text, "%s %u more rows", style->utf8 ? "⋮" : ":", name->row_count - shown);
    sum_cells (grid, style, "", text, rest_ns, (double) rest_ns / whole);
  }
  if (name->network_ns)
    sum_cells (grid, style, "network", "", name->network_ns, (double) name->network_ns / whole);
  int rc = ctl_grid_print (grid, out);
  ctl_grid_destroy (&grid);
  return rc;
}

static int print_name (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis,
                       const ctl_analysis_name_t *name)
{
  char safe[WEFT_NAME_MAX * 4 + 4], number[NUMBER_MAX], ms[NUMBER_MAX], digits[DIGITS_MAX];
  ctl_wrap_t wrap;
  size_t size = ctl_style_safe (safe, sizeof safe - 4, name->name, style->utf8);
  snprintf (safe + size, sizeof safe - size, "   ");
  ctl_style_colour (out, style, CTL_COLOUR_BOLD);
  ctl_wrap_begin (&wrap, out, style, safe);
  ctl_style_colour (out, style, CTL_COLOUR_NONE);
  ctl_style_number (number, sizeof number, name->executions);
  ctl_wrap_item (&wrap, "%s execution%s", number, name->executions == 1 ? "" : "s");
  ctl_style_ms (ms, sizeof ms, name->p50_ns);
  ctl_wrap_item (&wrap, "p50 %s ms", ms);
  ctl_style_ms (ms, sizeof ms, name->p90_ns);
  ctl_wrap_item (&wrap, "p90 %s ms", ms);
  ctl_style_ms (ms, sizeof ms, name->p99_ns);
  ctl_wrap_item (&wrap, "p99 %s ms", ms);
  ctl_style_number (number, sizeof number, name->errors);
  if (name->errors)
    ctl_wrap_item (&wrap, "%s error%s", number, name->errors == 1 ? "" : "s");
  ctl_wrap_end (&wrap);

  fputc ('\n', out);
  ctl_sentences_print (out, style, analysis, name);
  fputs ("\nwhere the time goes (median execution)\n", out);
  int rc = print_rows (out, style, name);
  task_digits (name->slowest, digits);
  ctl_style_ms (ms, sizeof ms, name->max_ns);
  fprintf (out, "slowest  %s%s  %s ms   %s weft show %s\n\n", digits, style->utf8 ? "…" : "", ms,
           style->utf8 ? "→" : "->", digits);
  return rc ? rc : done (out);
}

static void print_orphans (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis)
{
  for (uint32_t i = 0; i < analysis->orphan_count; i++) {
    const ctl_analysis_orphan_t *orphan = &analysis->orphans[i];
    char safe[WEFT_SERVICE_MAX * 4], number[NUMBER_MAX];
    ctl_wrap_t wrap;
    ctl_style_safe (safe, sizeof safe, orphan->service, style->utf8);
    ctl_style_number (number, sizeof number, orphan->count);
    ctl_wrap_begin (&wrap, out, style, "  ");
    ctl_wrap_item (&wrap, "%s from %s: %s", number, *safe ? safe : "an unnamed service",
                   ctl_reason_text (orphan->reason));
    ctl_wrap_end (&wrap);
  }
}

static void print_losses (ctl_wrap_t *wrap, const ctl_analysis_t *analysis)
{
  char number[NUMBER_MAX];
  ctl_style_number (number, sizeof number, ctl_losses_sum (analysis->losses));
  ctl_wrap_item (wrap, "lost %s", number);
  for (int i = 0; i < WEFT_LOSS_COUNT; i++)
    if (analysis->losses[i]) {
      ctl_style_number (number, sizeof number, analysis->losses[i]);
      ctl_wrap_item (wrap, "%s: %s", ctl_loss_text (i), number);
    }
  if (analysis->tails)
    ctl_wrap_item (wrap, "unknown what else %llu silent instance%s wrote",
                   (unsigned long long) analysis->tails, analysis->tails == 1 ? "" : "s");
}

/* What the bytes that are not understood are, "postgresql, tls": the protocol with the most of
 * them, and a second one that has a good part; "" where they hardly count. */
static void rest_text (const uint64_t rest[WEFT_PROTOCOL_COUNT], uint64_t total, char out[TEXT_MAX])
{
  uint64_t sum = 0;
  int first = 0, second = 0;
  out[0] = 0;
  for (int i = 0; i < WEFT_PROTOCOL_COUNT; i++) {
    sum += rest[i];
    if (rest[i] > rest[first]) {
      second = first;
      first = i;
    } else if (i != first && (second == first || rest[i] > rest[second])) {
      second = i;
    }
  }
  if (!sum || (double) sum < REST_SHARE * (double) total)
    return;
  int two = second != first && (double) rest[second] >= REST_SECOND * (double) sum;
  snprintf (out, TEXT_MAX, "%s%s%s", weft_protocol_text ((unsigned) first), two ? ", " : "",
            two ? weft_protocol_text ((unsigned) second) : "");
}

/* One entry a service: its instances together. */
static void print_visible (ctl_wrap_t *wrap, const ctl_instance_t *const *instances, uint32_t count)
{
  uint32_t shown = 0;
  for (uint32_t i = 0; i < count && shown < SERVICES_MAX; i++) {
    uint64_t total = 0, spoken = 0, rest[WEFT_PROTOCOL_COUNT] = {0};
    int first = 1;
    for (uint32_t k = 0; k < count; k++)
      if (strcmp (instances[k]->service, instances[i]->service) == 0) {
        first &= k >= i;
        total += instances[k]->bytes_total;
        spoken += instances[k]->bytes_spoken;
        for (int n = 0; n < WEFT_PROTOCOL_COUNT; n++)
          rest[n] += instances[k]->rest[n];
      }
    if (!first || !total)
      continue;
    char safe[WEFT_SERVICE_MAX * 4], share[NUMBER_MAX], text[TEXT_MAX];
    ctl_style_safe (safe, sizeof safe, instances[i]->service, wrap->style->utf8);
    ctl_style_percent (share, sizeof share, (double) spoken / (double) total);
    rest_text (rest, total, text);
    ctl_wrap_item (wrap, "%s%s %s%s%s%s", shown++ ? "" : "visible traffic ", safe, share,
                   *text ? " (rest: " : "", text, *text ? ")" : "");
  }
}

int ctl_table_profile (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis,
                       uint32_t names_max, const ctl_instance_t *const *instances, uint32_t instance_count)
{
  uint32_t names = names_max && names_max < analysis->name_count ? names_max : analysis->name_count;
  for (uint32_t i = 0; i < names; i++) {
    int rc = print_name (out, style, analysis, &analysis->names[i]);
    if (rc)
      return rc;
  }
  if (names < analysis->name_count)
    fprintf (out, "%u more task name%s: weft tasks\n\n", analysis->name_count - names,
             analysis->name_count - names == 1 ? "" : "s");
  char complete[NUMBER_MAX], all[NUMBER_MAX], number[NUMBER_MAX];
  ctl_wrap_t wrap;
  ctl_style_number (complete, sizeof complete, analysis->complete);
  ctl_style_number (all, sizeof all, analysis->executions);
  ctl_wrap_begin (&wrap, out, style, "");
  ctl_wrap_item (&wrap, "complete %s of %s", complete, all);
  ctl_style_number (number, sizeof number, analysis->orphan_trees);
  ctl_wrap_item (&wrap, "orphans %s", number);
  print_losses (&wrap, analysis);
  if (analysis->truncated) {
    ctl_style_number (number, sizeof number, analysis->truncated);
    ctl_wrap_item (&wrap, "%s subtasks left out (more than %d in one task)", number,
                   WEFT_SUBTASKS_PER_TASK_MAX);
  }
  print_visible (&wrap, instances, instances ? instance_count : 0);
  ctl_wrap_end (&wrap);
  print_orphans (out, style, analysis);
  return done (out);
}

/* ---- weft tasks ------------------------------------------------------------------- */

int ctl_table_tasks (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis)
{
  static const ctl_grid_column_t columns[] = {{"TASK", 0, 1},
                                              {"SERVICE", 0, 1},
                                              {"COUNT", 1, 0},
                                              {"p50 ms", 1, 0},
                                              {"p90 ms", 1, CTL_GRID_SPARE},
                                              {"p99 ms", 1, 0},
                                              {"max ms", 1, CTL_GRID_SPARE},
                                              {"COMPLETE", 1, 0},
                                              {"ERRORS", 1, 0},
                                              {"SLOWEST", 0, 0}};
  ctl_grid_t *grid = ctl_grid_new (style, columns, sizeof columns / sizeof *columns);
  if (!grid)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i < analysis->name_count; i++) {
    const ctl_analysis_name_t *name = &analysis->names[i];
    char digits[DIGITS_MAX];
    task_digits (name->slowest, digits);
    ctl_grid_cell (grid, name->name);
    ctl_grid_cell (grid, name->service);
    ctl_grid_number (grid, name->executions);
    ctl_grid_ms (grid, name->p50_ns);
    ctl_grid_ms (grid, name->p90_ns);
    ctl_grid_ms (grid, name->p99_ns);
    ctl_grid_ms (grid, name->max_ns);
    ctl_grid_number (grid, name->complete);
    ctl_grid_number (grid, name->errors);
    ctl_grid_own (grid, "%s", digits);
  }
  int rc = ctl_grid_print (grid, out);
  ctl_grid_destroy (&grid);
  if (analysis->more_names)
    fprintf (out, "%llu executions of further task names\n", (unsigned long long) analysis->more_names);
  if (analysis->tails || ctl_losses_sum (analysis->losses)) {
    ctl_wrap_t wrap;
    ctl_wrap_begin (&wrap, out, style, "");
    print_losses (&wrap, analysis);
    ctl_wrap_end (&wrap);
  }
  return rc ? rc : done (out);
}

/* ---- weft tasks --each ------------------------------------------------------------- */

#define DATE_WHOLE 23u /* as ctl_style_date writes it */
#define DATE_SHORT 14u /* without its year and milliseconds */
#define DATE_YEAR  5u

/* Streamed: the widths follow from the terminal's alone, the name takes what is left. */
typedef struct {
  uint32_t date; /* 0: left out */
  int count, status;
  uint32_t name;
} each_t;

static each_t each_of (const ctl_style_t *style)
{
  each_t each = {.date = style->columns >= 96   ? DATE_WHOLE
                         : style->columns >= 60 ? DATE_SHORT
                                                : 0,
                 .count = style->columns >= 96,
                 .status = style->columns >= 72};
  uint32_t before = 8 + 2 + (each.date ? each.date + 1 : 0) + 9 + 2 + (each.count ? 8 + 2 : 0) +
                    (each.status ? 6 + 2 : 0) + 10 + 2;
  each.name = style->columns > before ? style->columns - before : 1;
  return each;
}

static void each_cells (FILE *out, const ctl_style_t *style, const each_t *each, const char *digits,
                        const char *date, const char *ms, const char *count, const char *status,
                        const char *state)
{
  fprintf (out, "%-8s  ", digits);
  if (each->date)
    fprintf (out, "%-*.*s ", (int) each->date, (int) each->date, date);
  fprintf (out, "%9s  ", ms);
  if (each->count)
    fprintf (out, "%8s  ", count);
  if (each->status) {
    ctl_style_cell (out, style, status, 6, 0);
    fputs ("  ", out);
  }
  fprintf (out, "%-10s  ", state);
}

int ctl_table_each_head (FILE *out, const ctl_style_t *style)
{
  each_t each = each_of (style);
  ctl_style_colour (out, style, CTL_COLOUR_DIM);
  each_cells (out, style, &each, "TASK", "START", "ms", "SUBTASKS", "STATUS", "STATE");
  fputs ("NAME\n", out);
  ctl_style_colour (out, style, CTL_COLOUR_NONE);
  return done (out);
}

int ctl_table_each (FILE *out, const ctl_style_t *style, const ctl_execution_t *execution)
{
  each_t each = each_of (style);
  char digits[DIGITS_MAX], date[40], ms[NUMBER_MAX], count[NUMBER_MAX], status[8], safe[WEFT_NAME_MAX * 4];
  const ctl_subtask_t *top = execution->count ? &execution->subtasks[0] : NULL;
  task_digits (execution->task, digits);
  size_t dated = ctl_style_date (date, sizeof date, execution->start_ns);
  ctl_style_ms (ms, sizeof ms, execution->duration_ns);
  ctl_style_number (count, sizeof count, execution->count);
  snprintf (status, sizeof status, "%s", dash (style));
  if (top && top->status)
    snprintf (status, sizeof status, "%u", top->status);
  ctl_style_safe (safe, sizeof safe, execution->name, style->utf8);
  each_cells (out, style, &each, digits,
              date + (each.date == DATE_SHORT && dated > DATE_YEAR ? DATE_YEAR : 0), ms, count, status,
              execution->kind == CTL_KIND_ORPHAN ? "orphan"
              : execution->complete              ? "complete"
                                                 : "incomplete");
  uint32_t width = ctl_style_width (safe);
  ctl_style_cell (out, style, safe, width < each.name ? width : each.name, 0);
  fputc ('\n', out);
  return done (out);
}

/* ---- weft ls ---------------------------------------------------------------------- */

static void actions_text (uint32_t active, char out[NUMBER_MAX])
{
  static const char *const name[] = {"root", "embed", "capture", "stacks"};
  size_t at = 0;
  snprintf (out, NUMBER_MAX, "idle");
  for (unsigned i = 0; i < 4; i++)
    if (active >> i & 1)
      at += (size_t) snprintf (out + at, NUMBER_MAX - at, "%s%s", at ? "," : "", name[i]);
}

static void instance_cells (ctl_grid_t *grid, const ctl_style_t *style, const ctl_instance_t *instance,
                            int with_rest)
{
  static const char *const presence[] = {"present", "silent", "left"};
  char uuid[37], actions[NUMBER_MAX], share[NUMBER_MAX], rest[TEXT_MAX], vm[TEXT_MAX];
  weft_uuid_put (uuid, instance->uuid);
  snprintf (vm, sizeof vm, "%s%s%s", ctl_style_vm (instance->vm), *instance->version ? " " : "",
            instance->version);
  actions_text (instance->active, actions);
  snprintf (share, sizeof share, "%s", dash (style));
  if (instance->bytes_total)
    ctl_style_percent (share, sizeof share, (double) instance->bytes_spoken / (double) instance->bytes_total);
  ctl_grid_own (grid, "%.8s", uuid);
  ctl_grid_own (grid, "%lld", (long long) instance->pid);
  ctl_grid_cell (grid, vm);
  ctl_grid_cell (grid, instance->service);
  ctl_grid_cell (grid, instance->host);
  ctl_grid_cell (grid, instance->listens);
  ctl_grid_own (grid, "%s",
                instance->replayed
                    ? "replayed"
                    : presence[instance->presence < CTL_INSTANCE_COUNT ? instance->presence : 1]);
  ctl_grid_own (grid, "%s", actions);
  rest_text (instance->rest, instance->bytes_total, rest);
  ctl_grid_own (grid, "%s", share);
  ctl_grid_number (grid, ctl_losses_sum (instance->losses));
  if (with_rest)
    ctl_grid_own (grid, "%s", rest);
}

int ctl_table_instances (FILE *out, const ctl_style_t *style, const ctl_instance_t *const *instances,
                         uint32_t count)
{
  static const ctl_grid_column_t columns[] = {{"INSTANCE", 0, 0}, {"PID", 1, 0},    {"VM", 0, 1},
                                              {"SERVICE", 0, 1},  {"HOST", 0, 1},   {"LISTENS", 0, 1},
                                              {"STATE", 0, 0},    {"ACTIVE", 0, 1}, {"VISIBLE", 1, 0},
                                              {"LOST", 1, 0},     {"REST", 0, 1}};
  int with_rest = 0; /* what it is that is not understood; a column only where there is something */
  char rest[TEXT_MAX];
  for (uint32_t i = 0; i < count; i++) {
    rest_text (instances[i]->rest, instances[i]->bytes_total, rest);
    with_rest |= *rest != 0;
  }
  ctl_grid_t *grid = ctl_grid_new (style, columns, sizeof columns / sizeof *columns - !with_rest);
  if (!grid)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i < count; i++)
    instance_cells (grid, style, instances[i], with_rest);
  int rc = ctl_grid_print (grid, out);
  ctl_grid_destroy (&grid);
  return rc;
}

/* ---- weft ls --losses --------------------------------------------------------------- */

static void causes_text (const ctl_instance_t *instance, char *out, size_t size)
{
  size_t at = 0;
  *out = 0;
  for (int i = 0; i < WEFT_LOSS_COUNT && at < size; i++)
    if (instance->losses[i])
      at += (size_t) snprintf (out + at, size - at, "%s%s %llu", at ? ", " : "", ctl_loss_text (i),
                               (unsigned long long) instance->losses[i]);
  if (instance->tail_since_ns && at < size) {
    char since[40], until[40];
    ctl_style_date (since, sizeof since, instance->tail_since_ns);
    ctl_style_date (until, sizeof until, instance->tail_until_ns);
    snprintf (out + at, size - at, "%stail unknown since %s%s%s", at ? ", " : "", since,
              instance->tail_until_ns ? " until " : "", instance->tail_until_ns ? until : "");
  }
}

int ctl_table_losses (FILE *out, const ctl_style_t *style, const ctl_instance_t *const *instances,
                      uint32_t count)
{
  static const ctl_grid_column_t columns[] = {{"INSTANCE", 0, 0}, {"PID", 1, 0},    {"SERVICE", 0, 1},
                                              {"WRITTEN", 1, 0},  {"STORED", 1, 0}, {"LOST", 1, 0},
                                              {"CAUSES", 0, 0}};
  ctl_grid_t *grid = ctl_grid_new (style, columns, sizeof columns / sizeof *columns);
  if (!grid)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i < count; i++) {
    char uuid[37], causes[400];
    weft_uuid_put (uuid, instances[i]->uuid);
    causes_text (instances[i], causes, sizeof causes);
    ctl_grid_own (grid, "%.8s", uuid);
    ctl_grid_own (grid, "%lld", (long long) instances[i]->pid);
    ctl_grid_cell (grid, instances[i]->service);
    ctl_grid_number (grid, instances[i]->written);
    ctl_grid_number (grid, instances[i]->stored);
    ctl_grid_number (grid, ctl_losses_sum (instances[i]->losses));
    ctl_grid_own (grid, "%s", *causes ? causes : dash (style));
  }
  int rc = ctl_grid_print (grid, out);
  ctl_grid_destroy (&grid);
  return rc;
}
