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
#include <zmq.h>

#include "../../../../common/endpoint.h"
#include "../../../../common/ids.h"
#include "../../../../common/status.h"
#include "../../../../controller/service/recovery.h"
#include "life.h"

static int setup (void **state)
{
  life_t *self = calloc (1, sizeof *self);
  *self = begin_life (0);
  *state = self;
  return 0;
}

static int teardown (void **state)
{
  end_life (*state);
  free (*state);
  return 0;
}

static int message (ctl_intake_t *intake, weft_up_kind_t kind, uint8_t who, uint64_t epoch)
{
  weft_up_message_t m = {.kind = kind, .epoch = epoch, .pid = 4121};
  void *data = NULL;
  size_t size = 0;
  m.instance[0] = who;
  m.start[0] = 1;
  strcpy (m.vm, "jvm");
  strcpy (m.service, "orders");
  assert_int_equal (weft_up_pack (&m, &data, &size), 0);
  int rc = ctl_intake_frame (intake, data, size);
  free (data);
  return rc;
}

/* A batch with one root capture whose task id begins with the batch's number. */
static size_t batch (uint8_t *frame, uint8_t who, uint64_t number, uint64_t ring_full)
{
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head = {.major = 1, .number = number, .from_ns = 10, .to_ns = 20};
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE,
                          .flags = WEFT_REPORT_ROOT,
                          .status = 200,
                          .instruction = 1,
                          .subtask = number,
                          .start_ns = 11,
                          .end_ns = 19,
                          .cpu_ns = WEFT_NS_NONE,
                          .name = "GET /",
                          .name_size = 5};
  size_t size = 0;
  head.instance[0] = who;
  head.start[0] = 1;
  head.anchor = (weft_anchor_t){0, 1000000};
  head.losses[WEFT_LOSS_RING_FULL] = ring_full;
  report.task[0] = who;
  report.task[8] = (uint8_t) number;
  assert_int_equal (weft_batch_writer_begin (writer, frame, WEFT_BATCH_MAX, &head), 0);
  assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  head.reports = 1;
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  weft_batch_writer_destroy (&writer);
  return size;
}

/* A batch of `count` roots, each of a task of its own. */
static size_t batch_of (uint8_t *frame, uint8_t who, uint64_t number, uint32_t count)
{
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head = {.major = 1, .number = number, .from_ns = 10, .to_ns = 20};
  size_t size = 0;
  head.instance[0] = who;
  head.start[0] = 1;
  assert_int_equal (weft_batch_writer_begin (writer, frame, WEFT_BATCH_MAX, &head), 0);
  for (uint32_t n = 0; n < count; n++) {
    uint64_t id = number * 4096 + n;
    weft_report_t report = {.kind = WEFT_REPORT_CAPTURE,
                            .flags = WEFT_REPORT_ROOT,
                            .status = 200,
                            .subtask = id,
                            .start_ns = 11,
                            .end_ns = 19,
                            .cpu_ns = WEFT_NS_NONE,
                            .name = "GET /",
                            .name_size = 5};
    report.task[0] = who;
    memcpy (report.task + 8, &id, sizeof id);
    assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  }
  head.reports = count;
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  weft_batch_writer_destroy (&writer);
  return size;
}

static int give_batch (ctl_intake_t *intake, uint8_t who, uint64_t number)
{
  uint8_t *frame = malloc (WEFT_BATCH_MAX);
  int rc = ctl_intake_frame (intake, frame, batch (frame, who, number, number == 2 ? 5 : 0));
  free (frame);
  return rc;
}

static uint64_t correlated (const life_t *self)
{
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (self->links.correlate, &stats);
  return stats.captures;
}

static void test_batches_once (void **state)
{
  life_t *self = *state;
  assert_int_equal (message (self->intake, WEFT_UP_HELLO, 7, 0), 0);
  assert_int_equal (give_batch (self->intake, 7, 1), 0);
  assert_int_equal (give_batch (self->intake, 7, 1), 0);
  assert_int_equal (give_batch (self->intake, 7, 3), 0);
  assert_int_equal (give_batch (self->intake, 7, 2), 0);
  assert_int_equal (give_batch (self->intake, 7, 3), 0);
  const ctl_intake_stats_t *stats = ctl_intake_stats (self->intake);
  assert_int_equal (stats->batches, 3);
  assert_int_equal (stats->duplicates, 2);
  assert_int_equal (stats->reports, 3);
  assert_int_equal (correlated (self), 3);
  ctl_instance_t *instance = ctl_instances_at (self->links.instances, 0);
  assert_int_equal (ctl_instances_count (self->links.instances), 1);
  assert_int_equal (instance->stored, 3);
  assert_int_equal (instance->losses[WEFT_LOSS_RING_FULL], 5);
  uint64_t losses[WEFT_LOSS_COUNT];
  /* 10..20 of the sender's boottime are 1000010..1000020 on the wall. */
  ctl_instances_losses_in (self->links.instances, 1000015, 1000016, losses);
  assert_int_equal (losses[WEFT_LOSS_RING_FULL], 5);
  ctl_instances_losses_in (self->links.instances, 0, 1000, losses);
  assert_int_equal (losses[WEFT_LOSS_RING_FULL], 0);
}

/* What an instance has heard of in its HELLO is not what it works under. */
static void test_epoch_is_acknowledged_by_ack_only (void **state)
{
  life_t *self = *state;
  assert_int_equal (message (self->intake, WEFT_UP_HELLO, 7, 55), 0);
  ctl_instance_t *instance = ctl_instances_at (self->links.instances, 0);
  assert_int_equal (instance->epoch, 0);
  assert_int_equal (message (self->intake, WEFT_UP_ACK, 7, 101), 0);
  assert_int_equal (instance->epoch, 101);
  assert_int_equal (message (self->intake, WEFT_UP_HELLO, 7, 102), 0);
  assert_int_equal (instance->epoch, 101);
  assert_int_equal (message (self->intake, WEFT_UP_BYE, 7, 0), 0);
  assert_int_equal (instance->presence, CTL_INSTANCE_LEFT);
}

static void test_garbage_is_counted (void **state)
{
  life_t *self = *state;
  const ctl_intake_stats_t *stats = ctl_intake_stats (self->intake);
  assert_int_equal (ctl_intake_frame (self->intake, "", 0), WEFT_E_MALFORMED);
  assert_int_equal (ctl_intake_frame (self->intake, "\xc1", 1), WEFT_E_MALFORMED);
  assert_int_equal (stats->malformed, 2);
  assert_int_equal (ctl_intake_frame (self->intake, "\x93\x02\x00\x04", 4), WEFT_E_VERSION);
  assert_int_equal (stats->version, 1);
  assert_int_equal (ctl_intake_frame (self->intake, "\x94\x01\x00\x63\x80", 5), WEFT_E_UNSUPPORTED);
  assert_int_equal (stats->unsupported, 1);
  char *large = calloc (1, WEFT_FRAME_MAX + 1);
  assert_int_equal (ctl_intake_frame (self->intake, large, WEFT_FRAME_MAX + 1), WEFT_E_RANGE);
  free (large);
  assert_int_equal (stats->malformed, 3);
  assert_int_equal (give_batch (self->intake, 7, 1), 0); /* and everything else goes on */
  assert_int_equal (give_batch (self->intake, 7, 500), WEFT_E_RANGE);
  assert_int_equal (stats->gap, 1);
  assert_int_equal (stats->frames, 7);
  assert_int_equal (correlated (self), 1);
}

/* Every frame cut short, in memory of its exact size. */
static void test_truncated_batches (void **state)
{
  life_t *self = *state;
  uint8_t *frame = malloc (WEFT_BATCH_MAX);
  size_t size = batch (frame, 7, 1, 0);
  for (size_t n = 0; n < size; n++) {
    uint8_t *exact = malloc (n ? n : 1);
    memcpy (exact, frame, n);
    ctl_intake_frame (self->intake, exact, n);
    free (exact);
  }
  free (frame);
  assert_true (correlated (self) <= 1);
  assert_int_equal (ctl_intake_stats (self->intake)->frames, size);
}

/* N1, N2 over a crash: a second life reads the first one's journal. */
static void test_recovery (void **state)
{
  life_t *first = *state, *second = NULL;
  char dir[] = "/tmp/weft-intake-XXXXXX", why[300] = "";
  assert_non_null (mkdtemp (dir));
  assert_int_equal (ctl_journal_open (dir, 0, &first->links.journal, why, sizeof why), 0);
  ctl_intake_link (first->intake, &first->links);
  message (first->intake, WEFT_UP_HELLO, 7, 0);
  message (first->intake, WEFT_UP_ACK, 7, 101);
  give_batch (first->intake, 7, 41);
  give_batch (first->intake, 7, 42);
  assert_int_equal (ctl_journal_records (first->links.journal), 3); /* ACKs are of the moment only */
  ctl_journal_close (&first->links.journal);

  void *other = NULL;
  assert_int_equal (setup (&other), 0);
  second = other;
  ctl_recovery_t recovery = {0};
  assert_int_equal (ctl_recovery_run (dir, second->intake, second->links.instances, &recovery), 0);
  assert_int_equal (recovery.frames, 3);
  assert_int_equal (recovery.damaged, 0);
  assert_int_equal (correlated (second), 2);
  ctl_instance_t *instance = ctl_instances_at (second->links.instances, 0);
  assert_string_equal (instance->service, "orders");
  assert_int_equal (instance->presence, CTL_INSTANCE_LEFT);
  assert_int_equal (give_batch (second->intake, 7, 42), 0); /* sent again: its ack was lost */
  assert_int_equal (give_batch (second->intake, 7, 43), 0);
  assert_int_equal (correlated (second), 3);
  teardown (&other);
  char path[64];
  snprintf (path, sizeof path, "%s/00000001.weftj", dir);
  unlink (path);
  rmdir (dir);
}

/* N2 over a crash behind a checkpoint: what is in the store is known, counted and not correlated. */
static void test_recovery_behind_a_checkpoint (void **state)
{
  life_t *first = *state;
  char dir[] = "/tmp/weft-intake-XXXXXX", why[300] = "";
  assert_non_null (mkdtemp (dir));
  assert_int_equal (ctl_journal_open (dir, 0, &first->links.journal, why, sizeof why), 0);
  ctl_intake_link (first->intake, &first->links);
  message (first->intake, WEFT_UP_HELLO, 7, 0);
  for (uint64_t n = 1; n <= 3; n++)
    assert_int_equal (give_batch (first->intake, 7, n), 0);
  assert_int_equal (checkpoint_life (first), 0);
  assert_int_equal (give_batch (first->intake, 7, 4), 0);
  ctl_journal_close (&first->links.journal);

  void *other = NULL;
  assert_int_equal (setup (&other), 0);
  life_t *second = other;
  ctl_recovery_t recovery = {0};
  assert_int_equal (ctl_recovery_run (dir, second->intake, second->links.instances, &recovery), 0);
  assert_int_equal (correlated (second), 1);
  ctl_instance_t *instance = ctl_instances_at (second->links.instances, 0);
  assert_int_equal (instance->stored, 4);
  assert_int_equal (instance->losses[WEFT_LOSS_RING_FULL], 5); /* told by batch 2 */
  assert_int_equal (give_batch (second->intake, 7, 3), 0);     /* its acknowledgement was lost */
  assert_int_equal (give_batch (second->intake, 7, 4), 0);
  assert_int_equal (ctl_intake_stats (second->intake)->duplicates, 2);
  assert_int_equal (instance->stored, 4);
  assert_int_equal (correlated (second), 1);
  teardown (&other);
  char path[64];
  snprintf (path, sizeof path, "%s/00000001.weftj", dir);
  unlink (path);
  snprintf (path, sizeof path, "%s/checkpoint", dir);
  unlink (path);
  rmdir (dir);
}

/* N1: without room in the correlator a batch is neither journalled nor acknowledged; settling makes room. */
static void test_no_room (void **state)
{
  life_t *self = *state;
  enum { TASKS = WEFT_EVICTED_MAX + 2 * WEFT_BATCH_REPORTS_MAX };
  char dir[] = "/tmp/weft-intake-XXXXXX", why[300] = "", path[64];
  assert_non_null (mkdtemp (dir));
  snprintf (path, sizeof path, "%s/store.db", dir);
  ctl_correlate_destroy (&self->links.correlate);
  self->links.correlate = ctl_correlate_new (self->links.instances, 1);
  ctl_intake_link (self->intake, &self->links);
  uint64_t number = 1;
  uint8_t *frame = malloc (WEFT_BATCH_MAX);
  int rc = 0;
  for (uint64_t tasks = 0; rc == 0 && tasks < TASKS; tasks += 256, number++) {
    size_t size = batch_of (frame, 7, number, 256);
    rc = ctl_intake_frame (self->intake, frame, size);
  }
  assert_int_equal (rc, WEFT_E_FULL);
  number--;
  assert_int_equal (ctl_intake_stats (self->intake)->deferred, 1);
  ctl_instance_t *instance = ctl_instances_at (self->links.instances, 0);
  assert_true (instance->last_batch == number - 1);
  ctl_store_t *store = NULL;
  assert_int_equal (ctl_store_open (path, NULL, NULL, &store, why, sizeof why), 0);
  self->links.sink = ctl_sink_new (self->links.correlate, store);
  ctl_intake_link (self->intake, &self->links);
  size_t size = batch_of (frame, 7, number, 256);
  assert_int_equal (ctl_intake_frame (self->intake, frame, size), 0); /* the same one again */
  assert_true (instance->last_batch == number);
  assert_true (instance->stored == number * 256);
  free (frame);
  ctl_sink_destroy (&self->links.sink);
  ctl_store_destroy (&store);
  const char *const names[] = {"store.db", "store.db-wal", "store.db-shm"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    snprintf (path, sizeof path, "%s/%s", dir, names[n]);
    unlink (path);
  }
  assert_int_equal (rmdir (dir), 0);
}

/* N1: what the journal refuses is neither correlated nor remembered. */
static void test_journal_that_fails (void **state)
{
  life_t *self = *state;
  char dir[] = "/tmp/weft-intake-XXXXXX", why[300] = "";
  assert_non_null (mkdtemp (dir));
  assert_int_equal (ctl_journal_open (dir, 0, &self->links.journal, why, sizeof why), 0);
  assert_int_equal (rmdir (dir), 0); /* no segment can be made */
  ctl_intake_link (self->intake, &self->links);
  assert_int_equal (give_batch (self->intake, 7, 1), WEFT_E_IO);
  assert_int_equal (ctl_intake_stats (self->intake)->unjournalled, 1);
  assert_int_equal (correlated (self), 0);
  ctl_journal_close (&self->links.journal);
  ctl_intake_link (self->intake, &self->links);
  assert_int_equal (give_batch (self->intake, 7, 1), 0);
  assert_int_equal (correlated (self), 1);
}

/* ---- what comes by the socket ------------------------------------------------ */
typedef struct {
  char dir[32], address[48];
  void *context, *push, *sub;
} wire_t;

static void open_wire (life_t *self, wire_t *wire)
{
  char why[300] = "", endpoint[WEFT_ENDPOINT_MAX];
  int wait_ms = 20000;
  strcpy (wire->dir, "/tmp/weft-intake-XXXXXX");
  assert_non_null (mkdtemp (wire->dir));
  snprintf (wire->address, sizeof wire->address, "ipc://%s", wire->dir);
  assert_int_equal (ctl_broadcast_new (wire->address, NULL, &self->links.broadcast, why, sizeof why), 0);
  assert_int_equal (ctl_journal_open (wire->dir, 0, &self->links.journal, why, sizeof why), 0);
  ctl_intake_link (self->intake, &self->links);
  assert_int_equal (ctl_intake_listen (self->intake, why, sizeof why), 0);
  wire->context = zmq_ctx_new ();
  wire->push = zmq_socket (wire->context, ZMQ_PUSH);
  wire->sub = zmq_socket (wire->context, ZMQ_SUB);
  zmq_setsockopt (wire->sub, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
  zmq_setsockopt (wire->sub, ZMQ_SUBSCRIBE, "instance/", 9);
  weft_endpoint (wire->address, WEFT_ENDPOINT_REPORTS, endpoint, why, sizeof why);
  assert_int_equal (zmq_connect (wire->push, endpoint), 0);
  weft_endpoint (wire->address, WEFT_ENDPOINT_INSTRUCTIONS, endpoint, why, sizeof why);
  assert_int_equal (zmq_connect (wire->sub, endpoint), 0);
  while (ctl_broadcast_pump (self->links.broadcast) == 0)
    usleep (1000);
}

static void close_wire (life_t *self, wire_t *wire)
{
  char path[64];
  zmq_close (wire->push);
  zmq_close (wire->sub);
  zmq_ctx_term (wire->context);
  ctl_intake_destroy (&self->intake); /* its socket is of the broadcast's context */
  ctl_broadcast_destroy (&self->links.broadcast);
  ctl_journal_close (&self->links.journal);
  const char *const names[] = {"00000001.weftj", "instructions", "reports"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    snprintf (path, sizeof path, "%s/%s", wire->dir, names[n]);
    unlink (path);
  }
  assert_int_equal (rmdir (wire->dir), 0);
}

static void push_batch (wire_t *wire, uint8_t who, uint64_t number)
{
  uint8_t *frame = malloc (WEFT_BATCH_MAX);
  size_t size = batch (frame, who, number, 0);
  assert_int_equal (zmq_send (wire->push, frame, size, 0), (int) size);
  free (frame);
}

/* Acknowledgements until both are at their last number; how many. */
static unsigned hear_until (wire_t *wire, uint64_t seven, uint64_t nine)
{
  uint64_t heard[256] = {0};
  unsigned acks = 0;
  char topic[WEFT_TOPIC_MAX], map[1024];
  uint8_t who[WEFT_UUID_SIZE];
  while (heard[7] < seven || heard[9] < nine) {
    weft_bus_message_t ack;
    int size = zmq_recv (wire->sub, topic, sizeof topic, 0);
    assert_int_equal (size, 9 + 36);
    topic[size] = 0;
    assert_int_equal (weft_uuid_get (who, topic + 9), 0);
    size = zmq_recv (wire->sub, map, sizeof map, 0);
    assert_true (size > 0);
    assert_int_equal (weft_bus_unpack (map, (size_t) size, &ack), 0);
    assert_int_equal (ack.kind, WEFT_BUS_BATCH_ACK);
    assert_true (ack.number >= heard[who[0]]);
    heard[who[0]] = ack.number;
    weft_bus_clear (&ack);
    acks++;
  }
  assert_int_equal (heard[7], seven);
  assert_int_equal (heard[9], nine);
  return acks;
}

/* What is there at once is journalled together, in its order and each once; one answer for each start
 * and group. 7 sends 1 to 11, its fourth twice and its sixth after its seventh; 9 sends 1 and 2. */
static void test_together (void **state)
{
  life_t *self = *state;
  static const uint8_t sent[][2] = {{7, 1}, {9, 1}, {7, 2}, {7, 3}, {7, 4}, {7, 4},  {7, 5},
                                    {7, 7}, {7, 6}, {7, 8}, {9, 2}, {7, 9}, {7, 10}, {7, 11}};
  enum { SENT = sizeof sent / sizeof *sent, TWICE = 1 };
  wire_t wire;
  open_wire (self, &wire);
  for (unsigned n = 0; n < SENT; n++)
    push_batch (&wire, sent[n][0], sent[n][1]);
  const ctl_intake_stats_t *stats = ctl_intake_stats (self->intake);
  usleep (50000); /* all of them are there: one burst. If not, there are only more answers */
  for (int i = 0; i < 5000 && stats->frames < SENT; i++)
    if (ctl_intake_pump (self->intake) == 0)
      usleep (1000);
  assert_int_equal (stats->batches, SENT - TWICE);
  assert_int_equal (stats->duplicates, TWICE);
  assert_int_equal (stats->gap + stats->malformed + stats->refused + stats->unjournalled, 0);
  assert_int_equal (correlated (self), SENT - TWICE);
  assert_int_equal (ctl_journal_records (self->links.journal), SENT - TWICE);
  unsigned acks = hear_until (&wire, 11, 2);
  assert_true (acks < SENT);
  ctl_journal_reader_t *reader = NULL;
  assert_int_equal (ctl_journal_reader_open (wire.dir, 0, &reader), 0);
  for (unsigned n = 0; n < SENT; n++) {
    const void *frame;
    size_t size;
    ctl_journal_position_t position;
    weft_batch_reader_t at;
    if (n > 0 && memcmp (sent[n], sent[n - 1], sizeof sent[n]) == 0)
      continue;
    assert_int_equal (ctl_journal_reader_next (reader, &frame, &size, &position), 1);
    assert_int_equal (weft_batch_reader_begin (&at, frame, size), 0);
    assert_int_equal (at.head.instance[0], sent[n][0]);
    assert_int_equal (at.head.number, sent[n][1]);
  }
  ctl_journal_reader_close (&reader);
  close_wire (self, &wire);
}

/* N1: with a journal that refuses, nothing of a group is acknowledged, remembered or correlated. */
static void test_together_refused (void **state)
{
  life_t *self = *state;
  wire_t wire;
  open_wire (self, &wire);
  ctl_journal_t *good = self->links.journal;
  char dir[] = "/tmp/weft-intake-XXXXXX", why[300] = "";
  assert_non_null (mkdtemp (dir));
  assert_int_equal (ctl_journal_open (dir, 0, &self->links.journal, why, sizeof why), 0);
  assert_int_equal (rmdir (dir), 0);
  ctl_intake_link (self->intake, &self->links);
  const ctl_intake_stats_t *stats = ctl_intake_stats (self->intake);
  for (uint64_t n = 1; n <= 5; n++)
    push_batch (&wire, 7, n);
  for (int i = 0; i < 5000 && stats->frames < 5; i++)
    if (ctl_intake_pump (self->intake) == 0)
      usleep (1000);
  assert_int_equal (stats->unjournalled, 5);
  assert_int_equal (correlated (self), 0);
  usleep (50000);
  char nothing[8];
  assert_int_equal (zmq_recv (wire.sub, nothing, sizeof nothing, ZMQ_DONTWAIT), -1);
  ctl_journal_close (&self->links.journal);
  self->links.journal = good;
  ctl_intake_link (self->intake, &self->links);
  for (uint64_t n = 1; n <= 5; n++)
    push_batch (&wire, 7, n);
  for (int i = 0; i < 5000 && stats->frames < 10; i++)
    if (ctl_intake_pump (self->intake) == 0)
      usleep (1000);
  assert_int_equal (correlated (self), 5);
  assert_int_equal (stats->duplicates, 0);
  push_batch (&wire, 9, 1);
  while (stats->frames < 11)
    ctl_intake_pump (self->intake);
  hear_until (&wire, 5, 1);
  close_wire (self, &wire);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
int main (void)
{
  const struct CMUnitTest tests[] = {
      TEST (test_batches_once),
      TEST (test_together),
      TEST (test_together_refused),
      TEST (test_epoch_is_acknowledged_by_ack_only),
      TEST (test_garbage_is_counted),
      TEST (test_truncated_batches),
      TEST (test_recovery),
      TEST (test_journal_that_fails),
      TEST (test_recovery_behind_a_checkpoint),
      TEST (test_no_room),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
