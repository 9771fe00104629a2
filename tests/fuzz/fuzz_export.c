/* SPDX-License-Identifier: Apache-2.0 */
/* Any execution, sound or not, as OTLP and as a Perfetto trace: what comes out can be
 * read, nobody is his own parent, and on one track of the trace spans lie within each other or apart. */
#include <jansson.h>
#include <otlp.pb-c.h>

#include "../../controller/task/utf8.h"
#include "../../controller/view/otlp.h"
#include "../../controller/view/perfetto.h"
#include "fuzz.h"

#define SUBTASKS_MAX 64u
#define SPANS_MAX    16u /* of one message: several are needed */

static uint8_t byte (fuzz_input_t *input)
{
  return (uint8_t) fuzz_take (input, 1);
}

/* Few values, so that they meet. */
static uint64_t few (fuzz_input_t *input)
{
  uint8_t one = byte (input);
  return one < 0xf0 ? one % 16 : ((uint64_t) one << 56) | byte (input);
}

static ctl_execution_t *draw (fuzz_input_t *input)
{
  static const char *const texts[] = {
      "",       "GET /a/{id}", "POST /\xff\xc3(", "tcp",       "10.0.0.1:80", "[::1]:443",
      ":0",     "[]:1",        "127.0.0.1:99999", "BREW /pot", "GET",         "unix socket",
      "GET  /", "\x01\"\\",    "postgresql",      "jvm"};
  ctl_execution_t *made = calloc (1, sizeof *made);
  FUZZ_MUST (made && (made->subtasks = calloc (SUBTASKS_MAX, sizeof *made->subtasks)));
  made->name = made->origin = "";
  made->task[0] = 1;
  made->hosts = byte (input) % 3;
  made->origin = texts[byte (input) % 16];
  for (uint32_t count = byte (input) % SUBTASKS_MAX + 1; made->count < count; made->count++) {
    ctl_subtask_t *one = &made->subtasks[made->count];
    *one = (ctl_subtask_t){.id = few (input), .request = few (input), .caller = few (input)};
    one->hop = (ctl_hop_t) (byte (input) % CTL_HOP_COUNT);
    one->error = byte (input) % 8;
    one->status = (uint16_t) (byte (input) * 3);
    one->orphan = byte (input) % 16;
    one->alone = byte (input) & 1;
    one->answered = byte (input) & 1;
    one->service = texts[byte (input) % 16];
    one->vm = texts[byte (input) % 16];
    one->name = texts[byte (input) % 16];
    memset (one->instance, byte (input) % 4, WEFT_UUID_SIZE);
    one->start_ns = few (input);
    one->end_ns = one->start_ns + few (input);
    one->sent_ns = few (input);
    one->answered_ns = one->sent_ns + few (input);
  }
  FUZZ_MUST (ctl_execution_settle (made) == 0);
  return made;
}

/* ---- OTLP ------------------------------------------------------------------- */

static uint64_t seen_spans;

static void check_text (const char *text)
{
  for (size_t taken; *text; text += taken)
    FUZZ_MUST ((taken = ctl_utf8_sequence (text)) > 0);
}

static void check_attributes (Otlp__KeyValue *const *list, size_t count)
{
  for (size_t n = 0; n < count; n++) {
    FUZZ_MUST (*list[n]->key && list[n]->value && list[n]->value->value_case);
    if (list[n]->value->value_case == OTLP__VALUE__VALUE_TEXT)
      check_text (list[n]->value->text);
    for (size_t i = 0; i < n; i++)
      FUZZ_MUST (strcmp (list[i]->key, list[n]->key) != 0);
  }
}

static void check_span (const Otlp__Span *span)
{
  static const uint8_t none[8];
  FUZZ_MUST (span->trace_id.len == 16 && span->span_id.len == 8 && memcmp (span->span_id.data, none, 8) != 0);
  FUZZ_MUST (span->parent_span_id.len == 0 ||
             (span->parent_span_id.len == 8 &&
              memcmp (span->parent_span_id.data, span->span_id.data, 8) != 0 &&
              memcmp (span->parent_span_id.data, none, 8) != 0));
  FUZZ_MUST (span->kind == OTLP__KIND__KIND_SERVER || span->kind == OTLP__KIND__KIND_CLIENT);
  FUZZ_MUST (span->end_time_unix_nano >= span->start_time_unix_nano);
  check_text (span->name);
  check_attributes (span->attributes, span->n_attributes);
}

static int take (const void *data, size_t size, uint32_t spans, void *arg)
{
  Otlp__Request *request = otlp__request__unpack (NULL, size, data);
  uint32_t count = 0;
  FUZZ_MUST (request && spans <= SPANS_MAX && spans > 0);
  for (size_t r = 0; r < request->n_resource_spans; r++) {
    const Otlp__ResourceSpans *resource = request->resource_spans[r];
    FUZZ_MUST (resource->resource && resource->n_scope_spans == 1 && !resource->base.n_unknown_fields);
    check_attributes (resource->resource->attributes, resource->resource->n_attributes);
    for (size_t n = 0; n < resource->scope_spans[0]->n_spans; n++, count++)
      check_span (resource->scope_spans[0]->spans[n]);
  }
  FUZZ_MUST (count == spans);
  seen_spans += spans;
  otlp__request__free_unpacked (request, NULL);
  return 0;
}

/* ---- Perfetto --------------------------------------------------------------- */

typedef struct {
  json_int_t pid, tid;
  double start, end;
} slice_t;

static uint32_t read_slices (const json_t *events, slice_t slices[2 * SUBTASKS_MAX])
{
  uint32_t count = 0, begun = 0, ended = 0;
  for (size_t n = 0; n < json_array_size (events); n++) {
    const json_t *event = json_array_get (events, n);
    const char *phase = json_string_value (json_object_get (event, "ph"));
    FUZZ_MUST (phase && json_is_integer (json_object_get (event, "pid")));
    begun += *phase == 's';
    ended += *phase == 'f';
    if (*phase != 'X')
      continue;
    FUZZ_MUST (count < 2 * SUBTASKS_MAX);
    slice_t *slice = &slices[count++];
    slice->pid = json_integer_value (json_object_get (event, "pid"));
    slice->tid = json_integer_value (json_object_get (event, "tid"));
    slice->start = json_number_value (json_object_get (event, "ts"));
    slice->end = slice->start + json_number_value (json_object_get (event, "dur"));
  }
  FUZZ_MUST (begun == ended);
  return count;
}

/* Times here are small or far apart, so that their sums are exact enough. */
static void check_tracks (const slice_t *slices, uint32_t count)
{
  for (uint32_t a = 0; a < count; a++)
    for (uint32_t b = a + 1; b < count; b++)
      FUZZ_MUST (slices[a].pid != slices[b].pid || slices[a].tid != slices[b].tid ||
                 slices[a].end <= slices[b].start + 1e-6 || slices[b].end <= slices[a].start + 1e-6 ||
                 (slices[a].start <= slices[b].start && slices[b].end <= slices[a].end + 1e-6) ||
                 (slices[b].start <= slices[a].start && slices[a].end <= slices[b].end + 1e-6));
}

static void check_trace (ctl_execution_t **execution_p)
{
  static slice_t slices[2 * SUBTASKS_MAX];
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream (&text, &size);
  ctl_perfetto_t *trace = ctl_perfetto_new (NULL, NULL);
  FUZZ_MUST (out && trace && ctl_perfetto_add (trace, execution_p) == 0 &&
             ctl_perfetto_write (trace, out) == 0);
  fclose (out);
  json_t *json = json_loadb (text, size, JSON_REJECT_DUPLICATES, NULL);
  FUZZ_MUST (json);
  uint32_t count = read_slices (json_object_get (json, "traceEvents"), slices);
  FUZZ_MUST (count == seen_spans);
  check_tracks (slices, count);
  json_decref (json);
  ctl_perfetto_destroy (&trace);
  free (text);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  fuzz_input_t input = {data, data + size};
  ctl_otlp_options_t options = {SPANS_MAX, NULL, take, NULL};
  ctl_execution_t *execution = draw (&input);
  ctl_otlp_t *otlp = ctl_otlp_new (&options);
  seen_spans = 0;
  FUZZ_MUST (otlp && ctl_otlp_add (otlp, execution) == 0 && ctl_otlp_flush (otlp) == 0);
  FUZZ_MUST (seen_spans <= ctl_spans_most (execution));
  check_trace (&execution);
  ctl_otlp_destroy (&otlp);
  uint64_t rejected;
  char why[64];
  ctl_otlp_read_answer (data, size, &rejected, why, sizeof why);
  return 0;
}
