/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../controller/service/claims.h"
#include "../../../../controller/service/requests.h"
#include "../../../../controller/task/pack.h"

typedef struct {
  ctl_house_t house;
  char store[64];
} fixture_t;

static int setup (void **state)
{
  fixture_t *self = calloc (1, sizeof *self);
  char why[300];
  strcpy (self->store, "/tmp/weft-requests-XXXXXX");
  close (mkstemp (self->store));
  unlink (self->store);
  if (ctl_store_open (self->store, NULL, NULL, &self->house.store, why, sizeof why) < 0)
    return -1;
  self->house.instances = ctl_instances_new ();
  self->house.instructions = ctl_instructions_new (100, 0);
  self->house.correlate = ctl_correlate_new (self->house.instances, 0);
  self->house.claims = ctl_claims_new ();
  self->house.sink = ctl_sink_new (self->house.correlate, self->house.store);
  *state = self;
  return 0;
}

static int teardown (void **state)
{
  fixture_t *self = *state;
  char path[80];
  ctl_claims_destroy (&self->house.claims);
  ctl_sink_destroy (&self->house.sink);
  ctl_correlate_destroy (&self->house.correlate);
  ctl_instructions_destroy (&self->house.instructions);
  ctl_instances_destroy (&self->house.instances);
  ctl_store_destroy (&self->house.store);
  const char *suffix[] = {"", "-wal", "-shm"};
  for (int n = 0; n < 3; n++) {
    snprintf (path, sizeof path, "%s%s", self->store, suffix[n]);
    unlink (path);
  }
  free (self);
  return 0;
}

static ctl_reply_t ask (fixture_t *self, const char *text)
{
  ctl_reply_t reply = {0};
  assert_int_equal (ctl_requests_answer (&self->house, text, strlen (text), &reply), 0);
  assert_true (json_is_boolean (json_object_get (reply.body, "ok")));
  return reply;
}

static long long number_of (const ctl_reply_t *reply, const char *key)
{
  assert_true (json_is_integer (json_object_get (reply->body, key)));
  return json_integer_value (json_object_get (reply->body, key));
}

static void assert_refused (fixture_t *self, const char *text, const char *status, const char *why)
{
  ctl_reply_t reply = ask (self, text);
  assert_true (json_is_false (json_object_get (reply.body, "ok")));
  assert_string_equal (json_string_value (json_object_get (reply.body, "status")), status);
  assert_non_null (strstr (json_string_value (json_object_get (reply.body, "why")), why));
  assert_int_equal (reply.frame_count, 0);
  ctl_reply_clear (&reply);
}

static void join (fixture_t *self, uint8_t who, const char *service, int64_t pid)
{
  weft_up_message_t hello = {.kind = WEFT_UP_HELLO, .pid = pid};
  ctl_instance_t *instance = NULL;
  hello.instance[0] = who;
  snprintf (hello.service, sizeof hello.service, "%s", service);
  strcpy (hello.vm, "jvm");
  assert_int_equal (ctl_instances_take (self->house.instances, &hello, &instance), 0);
}

static void acknowledge (fixture_t *self, uint8_t who, uint64_t epoch)
{
  uint8_t uuid[WEFT_UUID_SIZE] = {who};
  ctl_instances_find (self->house.instances, uuid)->epoch = epoch;
}

/* One root capture of task {who, number}, started by instruction `instruction`. */
static void report (fixture_t *self, uint8_t who, uint8_t number, uint32_t instruction, uint64_t start_ns)
{
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  uint8_t *frame = malloc (WEFT_BATCH_MAX);
  weft_batch_head_t head = {.major = 1, .number = number};
  weft_report_t one = {.kind = WEFT_REPORT_CAPTURE,
                       .flags = WEFT_REPORT_ROOT,
                       .status = 200,
                       .instruction = instruction,
                       .subtask = number,
                       .start_ns = start_ns,
                       .end_ns = start_ns + 5000000,
                       .cpu_ns = WEFT_NS_NONE,
                       .name = "GET /checkout",
                       .name_size = 13};
  size_t size = 0;
  uint32_t reports = 0;
  head.instance[0] = head.start[0] = who;
  one.task[0] = 0xab;
  one.task[1] = number;
  one.task[15] = 1;
  assert_int_equal (weft_batch_writer_begin (writer, frame, WEFT_BATCH_MAX, &head), 0);
  assert_int_equal (weft_batch_writer_add (writer, &one), 0);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  assert_int_equal (ctl_correlate_batch (self->house.correlate, frame, size, &reports), 0);
  assert_int_equal (reports, 1);
  weft_batch_writer_destroy (&writer);
  free (frame);
}

static void to_store (fixture_t *self)
{
  assert_int_equal (ctl_sink_run (self->house.sink, 0, 1), 0);
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (self->house.correlate, &stats);
  assert_int_equal (stats.open_tasks, 0);
}

static void test_what_is_no_request (void **state)
{
  assert_refused (*state, "", "MALFORMED", "\"op\"");
  assert_refused (*state, "[1, 2]", "MALFORMED", "\"op\"");
  assert_refused (*state, "{\"op\": 3}", "MALFORMED", "\"op\"");
  assert_refused (*state, "{\"op\": \"nothing\"}", "UNSUPPORTED", "nothing");
  assert_refused (*state, "{\"op\": \"stop\"}", "NOT_FOUND", "weft ls");
  assert_refused (*state, "{\"op\": \"instruct\"}", "RANGE", "actions");
  assert_refused (*state, "{\"op\": \"instruct\", \"actions\": [\"fly\"]}", "MALFORMED", "fly");
  assert_refused (*state, "{\"op\": \"instruct\", \"actions\": [\"root\"], \"selectors\": [\"a=b\"]}",
                  "MALFORMED", "a=b");
  assert_refused (*state, "{\"op\": \"instruct\", \"actions\": [\"root\"], \"selectors\": [5]}", "RANGE",
                  "text");
  assert_refused (
      *state, "{\"op\": \"instruct\", \"actions\": [\"root\"], \"selectors\": [\"*\"], \"sample\": [2, 1]}",
      "RANGE", "sample");
  assert_refused (*state, "{\"op\": \"show\", \"task\": \"xyz\"}", "MALFORMED", "hexadecimal");
  assert_refused (*state, "{\"op\": \"show\"}", "MALFORMED", "hexadecimal");
  assert_refused (*state, "{\"op\": \"show\", \"task\": \"abcd\"}", "NOT_FOUND", "abcd");
}

static void test_instruction_from_sent_to_stopped (void **state)
{
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  join (self, 2, "orders", 4188);
  ctl_reply_t reply =
      ask (self, "{\"op\": \"instruct\", \"actions\": [\"root\", \"embed\"], \"selectors\": "
                 "[\"service=front\"], \"match\": \"POST /checkout\", \"sample\": [1, 10], "
                 "\"max\": 7, \"carrier\": \"weft\", \"embed_to\": \"any\", \"lease_ms\": 9000}");
  assert_int_equal (number_of (&reply, "number"), 1);
  assert_int_equal (number_of (&reply, "epoch"), 101);
  ctl_reply_clear (&reply);
  uint32_t count = 0;
  const weft_instruction_t *live = ctl_instructions_live (self->house.instructions, &count);
  assert_int_equal (count, 1);
  assert_int_equal (live->actions, WEFT_ACTION_ROOT | WEFT_ACTION_EMBED);
  assert_string_equal (live->match, "POST /checkout");
  assert_int_equal (live->sample_num, 1);
  assert_int_equal (live->sample_den, 10);
  assert_int_equal (live->max_roots, 7);
  assert_int_equal (live->carrier, WEFT_CARRIER_WEFT);
  assert_int_equal (live->embed_to, WEFT_EMBED_TO_ANY);
  assert_int_equal (live->lease_ms, 9000);

  reply = ask (self, "{\"op\": \"instruction\", \"number\": 1}");
  assert_int_equal (number_of (&reply, "expected"), 1);
  assert_int_equal (number_of (&reply, "active"), 0);
  const json_t *silent = json_array_get (json_object_get (reply.body, "silent"), 0);
  assert_int_equal (json_integer_value (json_object_get (silent, "pid")), 4121);
  ctl_reply_clear (&reply);

  acknowledge (self, 1, 101);
  reply = ask (self, "{\"op\": \"instruction\", \"number\": 1}");
  assert_int_equal (number_of (&reply, "active"), 1);
  assert_int_equal (json_array_size (json_object_get (reply.body, "silent")), 0);
  ctl_reply_clear (&reply);

  reply = ask (self, "{\"op\": \"stop\", \"number\": 1}");
  assert_int_equal (number_of (&reply, "epoch"), 102);
  ctl_reply_clear (&reply);
  reply = ask (self, "{\"op\": \"instruction\", \"number\": 1}");
  assert_true (json_is_false (json_object_get (reply.body, "live")));
  assert_int_equal (number_of (&reply, "active"), 0);
  ctl_reply_clear (&reply);
  assert_refused (self, "{\"op\": \"stop\", \"number\": 1}", "NOT_FOUND", "1");
}

#define SCOPED "{\"op\": \"instruct\", \"actions\": [\"root\"], \"selectors\": [\"*\"], "
static void test_whom_and_which (void **state)
{
  fixture_t *self = *state;
  ctl_reply_t reply =
      ask (self, SCOPED "\"networks\": [\"10.0.0.0/8\", \"fd00::/8\"], \"header\": \"x-debug\", "
                        "\"excludes\": [\"/health\", \"/admin/**\"]}");
  ctl_reply_clear (&reply);
  uint32_t count = 0;
  const weft_instruction_t *live = ctl_instructions_live (self->house.instructions, &count);
  assert_int_equal (count, 1);
  assert_int_equal (live->network_count, 2);
  assert_int_equal (live->networks[0].prefix, 104);
  assert_int_equal (live->networks[1].ip[0], 0xfd);
  assert_string_equal (live->header, "x-debug");
  assert_int_equal (live->exclude_count, 2);
  assert_string_equal (live->excludes[1], "/admin/**");
  assert_refused (self, SCOPED "\"networks\": [\"10.1.0.0/8\"]}", "MALFORMED", "10.1.0.0/8");
  assert_refused (self, SCOPED "\"networks\": [5]}", "MALFORMED", "text");
  assert_refused (self, SCOPED "\"excludes\": [\"health\"]}", "MALFORMED", "health");
  assert_refused (self, SCOPED "\"excludes\": [5]}", "RANGE", "text");
  assert_refused (self, SCOPED "\"header\": \"a23456789012345678901234567890123\"}", "RANGE", "header");
  assert_refused (self, SCOPED "\"networks\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", "RANGE",
                  "16 networks");
}

static void test_defaults (void **state)
{
  fixture_t *self = *state;
  ctl_reply_t reply =
      ask (self, "{\"op\": \"instruct\", \"actions\": [\"capture\"], \"selectors\": [\"*\"]}");
  ctl_reply_clear (&reply);
  uint32_t count = 0;
  const weft_instruction_t *live = ctl_instructions_live (self->house.instructions, &count);
  assert_int_equal (live->sample_num, 1);
  assert_int_equal (live->sample_den, 1);
  assert_int_equal (live->lease_ms, WEFT_LEASE_MS);
  assert_int_equal (live->carrier, WEFT_CARRIER_TRACEPARENT);
  assert_int_equal (live->embed_to, WEFT_EMBED_TO_PRIVATE);
  assert_int_equal (ctl_instructions_next_ns (self->house.instructions), 0);
}

/* The first bytes of the uuids that come back for it, in their order. */
static void assert_instances (fixture_t *self, const char *which, const char *wanted)
{
  char text[200], found[32] = "";
  snprintf (text, sizeof text, "{\"op\": \"instances\"%s}", which);
  ctl_reply_t reply = ask (self, text);
  const json_t *list = json_object_get (reply.body, "instances");
  assert_true (json_is_array (list) && json_array_size (list) < sizeof found);
  for (size_t n = 0; n < json_array_size (list); n++)
    found[n] = json_string_value (json_object_get (json_array_get (list, n), "instance"))[1];
  assert_string_equal (found, wanted);
  ctl_reply_clear (&reply);
}

/* A controller remembers those that have left: who asks for a pid wants none of them. */
static void test_only_the_instances_that_are_asked_for (void **state)
{
  fixture_t *self = *state;
  for (uint8_t n = 1; n <= 6; n++)
    join (self, n, "front", n <= 2 ? 77 : 100 + n);
  ctl_instance_t *all[7];
  for (uint8_t n = 1; n <= 6; n++) {
    const uint8_t uuid[WEFT_UUID_SIZE] = {n};
    all[n] = ctl_instances_find (self->house.instances, uuid);
    if (n != 2)
      all[n]->presence = n == 6 ? CTL_INSTANCE_SILENT : CTL_INSTANCE_LEFT;
  }
  all[4]->losses[WEFT_LOSS_RING_FULL] = 1;
  all[5]->losses[WEFT_LOSS_RING_FULL] = all[5]->replayed = 1;
  assert_instances (self, "", "123456");
  assert_instances (self, ", \"present\": true", "26");
  assert_instances (self, ", \"notable\": true", "246");
  assert_instances (self, ", \"pids\": [77, 103, 5]", "2");
  assert_instances (self, ", \"pids\": []", "");
  assert_instances (self, ", \"uuids\": [\"01000000-0000-0000-0000-000000000000\", 3]", "1");
  assert_instances (self, ", \"uuids\": [\"06000000-0000-0000-0000-000000000000\"], \"pids\": [77]", "");
  all[1]->seen_ns -= 5000 * WEFT_NS_PER_MS;
  all[2]->seen_ns -= 5000 * WEFT_NS_PER_MS; /* there, and silent for a while */
  assert_instances (self, ", \"recent_ms\": 4000", "23456");
  assert_instances (self, ", \"recent_ms\": 600000", "123456");
  assert_instances (self, ", \"recent_ms\": -1", "123456");
  all[3]->tail_since_ns = 1;
  assert_instances (self, ", \"notable\": true", "2346");
}

static void test_instances_and_detach (void **state)
{
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  join (self, 2, "orders", 4188);
  join (self, 3, "gone", 9);
  uint8_t gone[WEFT_UUID_SIZE] = {3};
  ctl_instances_find (self->house.instances, gone)->presence = CTL_INSTANCE_LEFT;
  ctl_reply_t reply = ask (self, "{\"op\": \"instances\"}");
  assert_int_equal (json_array_size (json_object_get (reply.body, "instances")), 3);
  ctl_reply_clear (&reply);
  reply = ask (self, "{\"op\": \"detach\", \"pids\": [4188, 17]}");
  assert_int_equal (json_array_size (json_object_get (reply.body, "uuids")), 1);
  assert_string_equal (json_string_value (json_array_get (json_object_get (reply.body, "uuids"), 0)),
                       "02000000-0000-0000-0000-000000000000");
  ctl_reply_clear (&reply);
  reply = ask (self, "{\"op\": \"detach\", \"all\": true}");
  assert_int_equal (json_array_size (json_object_get (reply.body, "uuids")), 2);
  ctl_reply_clear (&reply);
  reply = ask (self, "{\"op\": \"detach\", \"uuids\": [\"01000000-0000-0000-0000-000000000000\", 5]}");
  assert_int_equal (json_array_size (json_object_get (reply.body, "uuids")), 1);
  ctl_reply_clear (&reply);
}

static uint32_t claim (fixture_t *self, const char *uuids, const char *joined)
{
  char text[400];
  snprintf (text, sizeof text, "{\"op\": \"claim\", \"for_ms\": 60000, \"uuids\": [%s], \"joined\": [%s]}",
            uuids, joined);
  ctl_reply_t reply = ask (self, text);
  uint32_t number = (uint32_t) number_of (&reply, "claim");
  ctl_reply_clear (&reply);
  return number;
}

static void release (fixture_t *self, uint32_t number, size_t leaving, size_t kept)
{
  char text[100];
  snprintf (text, sizeof text, "{\"op\": \"release\", \"claim\": %u}", number);
  ctl_reply_t reply = ask (self, text);
  assert_int_equal (json_array_size (json_object_get (reply.body, "uuids")), leaving);
  assert_int_equal (json_array_size (json_object_get (reply.body, "kept")), kept);
  ctl_reply_clear (&reply);
}

#define ONE "\"01000000-0000-0000-0000-000000000000\""
#define TWO "\"02000000-0000-0000-0000-000000000000\""

/* H1, H2 */
static void test_claims (void **state)
{
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  join (self, 2, "orders", 4188);
  uint32_t first = claim (self, ONE "," TWO, ONE); /* the second one was there before */
  uint32_t second = claim (self, ONE, "");
  release (self, first, 0, 1);
  release (self, second, 1, 0); /* whoever is last leaves, also what the other joined */
  assert_refused (self, "{\"op\": \"claim\", \"for_ms\": 60000, \"uuids\": [" ONE "]}", "BUSY",
                  "about to leave");
  join (self, 3, "third", 5000);
  const char *three = "\"03000000-0000-0000-0000-000000000000\"";
  first = claim (self, three, three);
  ctl_reply_t reply =
      ask (self, "{\"op\": \"instruct\", \"actions\": [\"capture\"], \"selectors\": [\"service=third\"]}");
  long long number = number_of (&reply, "number");
  ctl_reply_clear (&reply);
  release (self, first, 0, 1);
  ctl_instructions_stop (self->house.instructions, (uint32_t) number);
  uint8_t uuid[WEFT_UUID_SIZE] = {3};
  ctl_instance_t *third = ctl_instances_find (self->house.instances, uuid);
  assert_int_equal (third->leaving_ns, 0);
  ctl_claims_tidy (&self->house, weft_mono_ns ());
  assert_true (ctl_instance_leaves (third, weft_mono_ns ()));
  join (self, 4, "fourth", 5001);
  uint8_t four[WEFT_UUID_SIZE] = {4};
  ctl_instance_t *fourth = ctl_instances_find (self->house.instances, four);
  claim (self, "\"04000000-0000-0000-0000-000000000000\"", "\"04000000-0000-0000-0000-000000000000\"");
  ctl_claims_tidy (&self->house, weft_mono_ns ());
  assert_int_equal (fourth->leaving_ns, 0);
  ctl_claims_tidy (&self->house, weft_mono_ns () + 61 * WEFT_NS_PER_S); /* its owner died */
  assert_true (ctl_instance_leaves (fourth, weft_mono_ns ()));
  join (self, 5, "fifth", 5002);
  const char *five = "\"05000000-0000-0000-0000-000000000000\"";
  first = claim (self, five, five);
  char text[100];
  snprintf (text, sizeof text, "{\"op\": \"keep\", \"uuids\": [%s]}",
            five); /* somebody attaches it meanwhile */
  reply = ask (self, text);
  ctl_reply_clear (&reply);
  snprintf (text, sizeof text, "{\"op\": \"release\", \"claim\": %u}", first);
  reply = ask (self, text);
  assert_int_equal (json_array_size (json_object_get (reply.body, "uuids")), 0);
  assert_int_equal (json_array_size (json_object_get (reply.body, "kept")), 0);
  assert_int_equal (json_array_size (json_object_get (reply.body, "stays")), 1);
  ctl_reply_clear (&reply);
  assert_refused (self, "{\"op\": \"release\", \"claim\": 77}", "NOT_FOUND", "no such claim");
}

static size_t size_of (const ctl_reply_t *reply, const char *key)
{
  return json_array_size (json_object_get (reply->body, key));
}

/* Whoever joined a VM may be done with it before somebody else is. */
static void test_detach_when_free (void **state)
{
  static const char request[] = "{\"op\": \"detach\", \"when_free\": true, \"all\": true}";
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  join (self, 2, "orders", 4188);
  ctl_reply_t reply = ask (self, "{\"op\": \"instruct\", \"actions\": [\"capture\"], "
                                 "\"selectors\": [\"service=orders\"]}");
  char stop[64];
  snprintf (stop, sizeof stop, "{\"op\": \"stop\", \"number\": %lld}", number_of (&reply, "number"));
  ctl_reply_clear (&reply);
  reply = ask (self, request);
  assert_int_equal (size_of (&reply, "uuids"), 1);
  assert_int_equal (size_of (&reply, "later"), 1);
  ctl_reply_clear (&reply);
  uint8_t orders[WEFT_UUID_SIZE] = {2};
  assert_int_equal (ctl_instances_find (self->house.instances, orders)->joined, 1);
  ctl_claims_tidy (&self->house, weft_mono_ns ());
  reply = ask (self, stop);
  ctl_reply_clear (&reply);
  ctl_claims_tidy (&self->house, weft_mono_ns ());
  reply = ask (self, request);
  assert_int_equal (size_of (&reply, "uuids"), 2);
  assert_int_equal (size_of (&reply, "later"), 0);
  ctl_reply_clear (&reply);
}

static long long each (fixture_t *self, const char *text)
{
  ctl_reply_t reply = ask (self, text);
  long long count = number_of (&reply, "count");
  assert_int_equal (reply.frame_count, count);
  for (uint32_t n = 0; n < reply.frame_count; n++) {
    ctl_execution_t *execution = NULL;
    assert_int_equal (ctl_execution_unpack (reply.frames[n].data, reply.frames[n].size, &execution), 0);
    assert_string_equal (execution->name, "GET /checkout");
    ctl_execution_destroy (&execution);
  }
  ctl_reply_clear (&reply);
  return count;
}

/* The same answers while tasks are in memory, in the store, and in both. */
static void test_memory_and_store_are_one (void **state)
{
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  report (self, 1, 1, 5, 1000);
  report (self, 1, 2, 6, 2000);
  assert_int_equal (each (self, "{\"op\": \"each\"}"), 2);
  to_store (self);
  assert_int_equal (each (self, "{\"op\": \"each\"}"), 2);
  report (self, 1, 3, 6, 3000);
  assert_int_equal (each (self, "{\"op\": \"each\"}"), 3);
  assert_int_equal (each (self, "{\"op\": \"each\", \"instructions\": [6]}"), 2);
  assert_int_equal (each (self, "{\"op\": \"each\", \"instructions\": [5, 6]}"), 3);
  assert_int_equal (each (self, "{\"op\": \"each\", \"from_ns\": 2000, \"to_ns\": 2500}"), 1);
  assert_int_equal (each (self, "{\"op\": \"each\", \"name\": \"GET /none\"}"), 0);
  report (self, 1, 1, 5, 1000); /* said twice: once in the store, once in memory */
  assert_int_equal (each (self, "{\"op\": \"each\"}"), 3);
  ctl_reply_t reply = ask (self, "{\"op\": \"each\", \"limit\": 2}");
  assert_int_equal (reply.frame_count, 2);
  assert_true (json_is_true (json_object_get (reply.body, "more")));
  ctl_reply_clear (&reply);
}

static void test_show (void **state)
{
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  report (self, 1, 1, 5, 1000);
  to_store (self);
  report (self, 1, 2, 5, 2000);
  ctl_reply_t reply = ask (self, "{\"op\": \"show\", \"task\": \"ab01\"}"); /* stored */
  assert_int_equal (reply.frame_count, 1);
  ctl_reply_clear (&reply);
  reply = ask (self, "{\"op\": \"show\", \"task\": \"ab02\"}"); /* in memory */
  assert_int_equal (reply.frame_count, 1);
  ctl_reply_clear (&reply);
  report (self, 1, 1, 5, 1000); /* in both: still one */
  reply = ask (self, "{\"op\": \"show\", \"task\": \"ab01000000000000\"}");
  assert_int_equal (reply.frame_count, 1);
  ctl_reply_clear (&reply);
  report (self, 1, 0x20, 5, 2000);
  report (self, 1, 0x21, 5, 2000);
  assert_refused (self, "{\"op\": \"show\", \"task\": \"ab2\"}", "MALFORMED", "digits");
  reply = ask (self, "{\"op\": \"show\", \"task\": \"ab20\"}");
  assert_int_equal (reply.frame_count, 1);
  ctl_reply_clear (&reply);
}

static void test_tasks (void **state)
{
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  report (self, 1, 1, 5, 1000);
  to_store (self);
  report (self, 1, 2, 5, 2000);
  report (self, 1, 3, 6, 2000);
  ctl_reply_t reply = ask (self, "{\"op\": \"tasks\", \"instructions\": [5]}");
  const json_t *analysis = json_object_get (reply.body, "analysis");
  assert_int_equal (json_integer_value (json_object_get (analysis, "executions")), 2);
  ctl_reply_clear (&reply);
  reply = ask (self, "{\"op\": \"waiting\", \"number\": 5}");
  assert_int_equal (number_of (&reply, "waiting"), 0);
  ctl_reply_clear (&reply);
}

static void test_ping_stats_quit (void **state)
{
  fixture_t *self = *state;
  ctl_reply_t reply = ask (self, "{\"op\": \"ping\"}");
  assert_int_equal (number_of (&reply, "pid"), getpid ());
  ctl_reply_clear (&reply);
  reply = ask (self, "{\"op\": \"stats\"}");
  assert_true (json_is_object (json_object_get (reply.body, "correlate")));
  ctl_reply_clear (&reply);
  assert_int_equal (self->house.quit, 0);
  reply = ask (self, "{\"op\": \"quit\"}");
  ctl_reply_clear (&reply);
  assert_int_equal (self->house.quit, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
int main (void)
{
  const struct CMUnitTest tests[] = {
      TEST (test_what_is_no_request),
      TEST (test_instruction_from_sent_to_stopped),
      TEST (test_whom_and_which),
      TEST (test_defaults),
      TEST (test_only_the_instances_that_are_asked_for),
      TEST (test_instances_and_detach),
      TEST (test_claims),
      TEST (test_detach_when_free),
      TEST (test_memory_and_store_are_one),
      TEST (test_show),
      TEST (test_tasks),
      TEST (test_ping_stats_quit),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
