/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../task/links.h"
#include "../task/pack.h"
#include "../task/utf8.h"
#include "html.h"

#define RANK_NONE UINT32_MAX
#define NO_TREE   UINT32_MAX

typedef struct {
  uint8_t task[WEFT_TASK_ID_SIZE];
  uint64_t start_ns, duration_ns;
  uint32_t name, service, error; /* in `texts` */
  uint32_t count, truncated;     /* subtasks */
  uint16_t status;
  uint8_t orphan, complete, failed;
  uint32_t rank, tree;
  void *data; /* NULL: no longer there to choose from */
  size_t size;
} entry_t;

/* Texts stand in the page once: `number` is text -> place. */
struct ctl_page_t {
  entry_t *entries;
  uint32_t count, room;
  size_t kept;
  json_t *texts, *number;
  int rc;
};

ctl_page_t *ctl_page_new (void)
{
  ctl_page_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->texts = json_array ();
  self->number = json_object ();
  if (!self->texts || !self->number)
    ctl_page_destroy (&self);
  return self;
}

void ctl_page_destroy (ctl_page_t **self_p)
{
  ctl_page_t *self = *self_p;
  if (!self)
    return;
  for (uint32_t i = 0; i < self->count; i++)
    free (self->entries[i].data);
  free (self->entries);
  json_decref (self->texts);
  json_decref (self->number);
  free (self);
  *self_p = NULL;
}

uint32_t ctl_page_count (const ctl_page_t *self)
{
  return self->count;
}

int ctl_page_has (const ctl_page_t *self, const uint8_t task[WEFT_TASK_ID_SIZE])
{
  for (uint32_t i = 0; i < self->count; i++)
    if (memcmp (self->entries[i].task, task, WEFT_TASK_ID_SIZE) == 0)
      return 1;
  return 0;
}

/* A failure is remembered until the end. */
static uint32_t text_of (ctl_page_t *self, const char *text)
{
  json_t *value = ctl_utf8_json (text);
  const char *key = json_string_value (value);
  const json_t *known = key ? json_object_get (self->number, key) : NULL;
  size_t place = known ? (size_t) json_integer_value (known) : json_array_size (self->texts);
  if (!known && (!key || json_object_set_new (self->number, key, json_integer ((json_int_t) place)) < 0 ||
                 json_array_append (self->texts, value) < 0))
    self->rc = WEFT_E_NOMEM;
  json_decref (value);
  return (uint32_t) place;
}

static void describe (ctl_page_t *self, const ctl_execution_t *execution, entry_t *entry)
{
  const ctl_subtask_t *top = execution->count ? &execution->subtasks[0] : NULL;
  memcpy (entry->task, execution->task, sizeof entry->task);
  entry->start_ns = execution->start_ns;
  entry->duration_ns = execution->duration_ns;
  entry->name = text_of (self, execution->name);
  entry->service = text_of (self, top ? top->service : "");
  entry->error = text_of (self, top ? ctl_error_text (top->error) : "");
  entry->status = top ? top->status : 0;
  entry->count = execution->count;
  entry->truncated = execution->truncated;
  entry->orphan = execution->kind == CTL_KIND_ORPHAN;
  entry->complete = execution->complete;
  entry->failed = (uint8_t) ctl_execution_failed (execution);
  entry->rank = RANK_NONE;
  entry->tree = NO_TREE;
}

static int make_room (ctl_page_t *self)
{
  if (self->count < self->room)
    return 0;
  uint32_t room = self->room ? self->room * 2 : 256;
  entry_t *grown = realloc (self->entries, room * sizeof *grown);
  if (!grown)
    return WEFT_E_NOMEM;
  self->entries = grown;
  self->room = room;
  return 0;
}

int ctl_page_add (ctl_page_t *self, const void *data, size_t size)
{
  ctl_execution_t *execution = NULL;
  int rc = ctl_execution_unpack (data, size, &execution);
  if (rc == 0)
    rc = make_room (self);
  if (rc == 0) {
    entry_t entry = {0};
    describe (self, execution, &entry);
    if (self->kept + size <= CTL_PAGE_KEPT_MAX && (entry.data = malloc (size))) {
      memcpy (entry.data, data, size);
      entry.size = size;
      self->kept += size;
    }
    self->entries[self->count++] = entry;
    rc = self->rc;
  }
  ctl_execution_destroy (&execution);
  return rc;
}

/* ---- which trees ---------------------------------------------------------------------- */

/* By kind, name and service, the slowest first; of one duration by id: a total order. */
static int compare (const void *left, const void *right)
{
  const entry_t *a = left, *b = right;
  if (a->orphan != b->orphan)
    return a->orphan - b->orphan;
  if (a->name != b->name)
    return a->name < b->name ? -1 : 1;
  if (a->service != b->service)
    return a->service < b->service ? -1 : 1;
  if (a->duration_ns != b->duration_ns)
    return a->duration_ns > b->duration_ns ? -1 : 1;
  return memcmp (a->task, b->task, sizeof a->task);
}

static int is_like (const entry_t *a, const entry_t *b)
{
  return a->orphan == b->orphan && a->name == b->name && a->service == b->service;
}

static void give_rank (entry_t *entry, uint32_t *rank)
{
  if (entry->rank == RANK_NONE)
    entry->rank = (*rank)++;
}

/* `entries` are alike. */
static void rank_name (entry_t *entries, uint32_t count)
{
  uint32_t rank = 0, failed = 0;
  give_rank (&entries[0], &rank);
  give_rank (&entries[count / 2], &rank);
  for (uint32_t i = 0; i < count && failed < CTL_PAGE_FAILED; i++)
    if (entries[i].failed) {
      give_rank (&entries[i], &rank);
      failed++;
    }
  for (uint32_t i = 0; i < count && i < CTL_PAGE_SLOWEST; i++)
    give_rank (&entries[i], &rank);
  for (uint32_t i = 0; i < CTL_PAGE_MEDIAN && count / 2 + i < count; i++)
    give_rank (&entries[count / 2 + i], &rank);
}

#define RANKS (2 + CTL_PAGE_SLOWEST + CTL_PAGE_MEDIAN + CTL_PAGE_FAILED)

static void take (entry_t *entry, uint32_t *trees, uint64_t *subtasks)
{
  if (!entry->data || entry->tree != NO_TREE || *subtasks + entry->count > CTL_PAGE_SUBTASKS_MAX)
    return;
  entry->tree = (*trees)++;
  *subtasks += entry->count;
}

/* The one that was asked for, then of every name the first rank before any second one. */
static void choose (ctl_page_t *self, const uint8_t *task)
{
  uint32_t trees = 0;
  uint64_t subtasks = 0;
  if (self->count)
    qsort (self->entries, self->count, sizeof *self->entries, compare);
  for (uint32_t i = 0, k = 0; i < self->count; i = k) {
    while (k < self->count && is_like (&self->entries[k], &self->entries[i]))
      k++;
    rank_name (&self->entries[i], k - i);
  }
  for (uint32_t i = 0; task && i < self->count; i++)
    if (memcmp (self->entries[i].task, task, WEFT_TASK_ID_SIZE) == 0 && self->entries[i].data) {
      self->entries[i].tree = trees++;
      subtasks += self->entries[i].count;
    }
  for (uint32_t rank = 0; rank < RANKS; rank++)
    for (uint32_t i = 0; i < self->count; i++)
      if (self->entries[i].rank == rank)
        take (&self->entries[i], &trees, &subtasks);
}

/* ---- writing -------------------------------------------------------------------------- */

static unsigned long long wide (uint64_t number)
{
  return number;
}

static void put_hex (FILE *out, const uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++)
    fprintf (out, "%02x", bytes[i]);
}

/* Times are relative to the execution's start: a script's numbers hold 53 bits. */
static void put_since (FILE *out, uint64_t ns, uint64_t start_ns)
{
  fprintf (out, "%lld,", ns ? (long long) (ns - start_ns) : -1ll);
}

/* What the tree does not show of it; most have none, and no field for them. */
static void put_links (FILE *out, const ctl_links_t *links, uint32_t index)
{
  ctl_link_t link[CTL_LINKS_MAX];
  uint32_t count = ctl_links_of (links, index, link);
  for (uint32_t i = 0; i < count; i++)
    fprintf (out, "%s[\"%016llx\",\"%s\"]", i ? "," : ",[", wide (link[i].subtask),
             ctl_link_text (link[i].kind));
  fputs (count ? "]" : "", out);
}

/* The order of the fields is that of SUBTASK in page.js. */
static void put_subtask (ctl_page_t *self, FILE *out, const ctl_execution_t *execution,
                         const ctl_links_t *links, uint32_t index)
{
  const ctl_subtask_t *s = &execution->subtasks[index];
  char uuid[37];
  weft_uuid_put (uuid, s->instance);
  fprintf (out, "%s[%lld,%u,%u,%u,%u,\"%s\",", index ? "," : "",
           s->parent == CTL_NO_PARENT ? -1ll : (long long) s->parent, text_of (self, s->name),
           text_of (self, s->service), text_of (self, s->vm), text_of (self, uuid), ctl_hop_text (s->hop));
  fprintf (out, "%lld,%llu,%llu,%lld,", (long long) (s->start_ns - execution->start_ns),
           wide (s->end_ns - s->start_ns), wide (s->self_ns),
           s->cpu_ns == WEFT_NS_NONE ? -1ll : (long long) s->cpu_ns);
  put_since (out, s->sent_ns, execution->start_ns);
  put_since (out, s->answered_ns, execution->start_ns);
  fprintf (out, "%u,%u,%u,%u,%u,%u,%llu,%llu,\"%016llx\",\"%016llx\"", s->status,
           text_of (self, ctl_error_text (s->error)), s->on_critical_path, s->inside, s->pid, s->calls,
           wide (s->bytes_out), wide (s->bytes_in), wide (s->id), wide (s->request));
  put_links (out, links, index);
  fputs ("]", out);
}

static int put_tree (ctl_page_t *self, FILE *out, const entry_t *entry)
{
  ctl_execution_t *execution = NULL;
  int rc = ctl_execution_unpack (entry->data, entry->size, &execution);
  ctl_links_t *links = rc < 0 ? NULL : ctl_links_new (execution);
  if (!links) {
    ctl_execution_destroy (&execution);
    return rc < 0 ? rc : WEFT_E_NOMEM;
  }
  fprintf (out,
           "{\"left_out\":%u,\"hosts\":%u,\"aligned\":%u,\"uncertainty_ns\":%llu,\"origin\":%u,\"reason\":%u,"
           "\"subtasks\":[",
           execution->truncated, execution->hosts, execution->aligned, wide (execution->clock_uncertainty_ns),
           text_of (self, execution->origin), text_of (self, ctl_reason_text (execution->reason)));
  for (uint32_t i = 0; i < execution->count; i++)
    put_subtask (self, out, execution, links, i);
  fputs ("]}", out);
  ctl_links_destroy (&links);
  ctl_execution_destroy (&execution);
  return ferror (out) ? WEFT_E_IO : 0;
}

/* As EXECUTION in page.js. */
static void put_entry (FILE *out, const entry_t *entry)
{
  fputs ("[\"", out);
  put_hex (out, entry->task, sizeof entry->task);
  fprintf (out, "\",%u,%u,%u,%u,%llu,%llu,%u,%u,%u,%u,%lld]", entry->name, entry->service, entry->orphan,
           entry->complete, wide (entry->start_ns / 1000), wide (entry->duration_ns), entry->count,
           entry->status, entry->error, entry->failed,
           entry->tree == NO_TREE ? -1ll : (long long) entry->tree);
}

/* Trees in the order of their numbers. */
static int put_trees (ctl_page_t *self, FILE *out)
{
  const entry_t **tree = calloc (self->count + 1u, sizeof (void *));
  uint32_t count = 0;
  int rc = 0;
  if (!tree)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i < self->count; i++)
    if (self->entries[i].tree != NO_TREE) {
      tree[self->entries[i].tree] = &self->entries[i];
      count++;
    }
  fputs (",\"trees\":[", out);
  for (uint32_t i = 0; i < count && rc == 0; i++) {
    fputs (i ? "," : "", out);
    rc = put_tree (self, out, tree[i]);
  }
  fputs ("]", out);
  free (tree);
  return rc;
}

static int put_data (ctl_page_t *self, FILE *out, const ctl_page_about_t *about)
{
  json_t *scope = ctl_utf8_json (about->scope);
  int rc = scope ? 0 : WEFT_E_NOMEM;
  fputs ("{\"version\":\"" WEFT_VERSION "\",\"task\":\"", out);
  if (about->task)
    put_hex (out, about->task, WEFT_TASK_ID_SIZE);
  fprintf (out, "\",\"made_us\":%llu,\"from_us\":%llu,\"more\":%d,\"scope\":", wide (about->made_ns / 1000),
           wide (about->from_ns / 1000), about->more ? 1 : 0);
  if (rc == 0)
    rc = ctl_html_json (out, scope);
  fputs (",\"analysis\":", out);
  if (rc == 0)
    rc = ctl_html_json (out, about->analysis);
  if (rc == 0 && about->sentences) {
    fputs (",\"sentences\":", out);
    rc = ctl_html_json (out, about->sentences);
  }
  if (rc == 0 && about->instances) {
    fputs (",\"instances\":", out);
    rc = ctl_html_json (out, about->instances);
  }
  fputs (",\"executions\":[", out);
  for (uint32_t i = 0; i < self->count; i++) {
    fputs (i ? ",\n" : "\n", out);
    put_entry (out, &self->entries[i]);
  }
  fputs ("]", out);
  if (rc == 0)
    rc = put_trees (self, out);
  fputs (",\"texts\":", out); /* last: the trees add to them */
  if (rc == 0)
    rc = ctl_html_json (out, self->texts);
  fputs ("}", out);
  json_decref (scope);
  return rc < 0 ? rc : self->rc;
}

int ctl_page_write (ctl_page_t *self, FILE *out, const ctl_page_about_t *about)
{
  choose (self, about->task);
  int rc = ctl_html_begin (out);
  if (rc == 0)
    rc = put_data (self, out, about);
  if (rc == 0)
    rc = ctl_html_end (out);
  return rc == 0 && ferror (out) ? WEFT_E_IO : rc;
}
