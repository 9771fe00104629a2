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
#include "../../../../controller/service/intake.h"
#include "../../../../controller/service/recovery.h"

/* A controller without sockets. */
typedef struct {
  ctl_intake_links_t links;
  ctl_intake_t *intake;
} fixture_t;

static int setup (void **state)
{
  fixture_t *self = calloc (1, sizeof *self);
  self->links.instances = ctl_instances_new ();
  self->links.instructions = ctl_instructions_new (100, 0);
  self->links.correlate = ctl_correlate_new (self->links.instances, 0);
  self->intake = ctl_intake_new (&self->links);
  *state = self;
  return self->intake ? 0 : -1;
}

static int teardown (void **state)
{
  fixture_t *self = *state;
  ctl_intake_destroy (&self->intake);
  ctl_correlate_destroy (&self->links.correlate);
  ctl_instructions_destroy (&self->links.instructions);
  ctl_instances_destroy (&self->links.instances);
  free (self);
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

static uint64_t correlated (const fixture_t *self)
{
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (self->links.correlate, &stats);
  return stats.captures;
}

static void test_batches_once (void **state)
{
  fixture_t *self = *state;
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
  fixture_t *self = *state;
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
  fixture_t *self = *state;
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
  fixture_t *self = *state;
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
  fixture_t *first = *state, *second = NULL;
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
  fixture_t *first = *state;
  char dir[] = "/tmp/weft-intake-XXXXXX", why[300] = "";
  assert_non_null (mkdtemp (dir));
  assert_int_equal (ctl_journal_open (dir, 0, &first->links.journal, why, sizeof why), 0);
  ctl_intake_link (first->intake, &first->links);
  message (first->intake, WEFT_UP_HELLO, 7, 0);
  for (uint64_t n = 1; n <= 3; n++)
    assert_int_equal (give_batch (first->intake, 7, n), 0);
  assert_int_equal (ctl_journal_checkpoint (first->links.journal), 0);
  assert_int_equal (give_batch (first->intake, 7, 4), 0);
  ctl_journal_close (&first->links.journal);

  void *other = NULL;
  assert_int_equal (setup (&other), 0);
  fixture_t *second = other;
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
  fixture_t *self = *state;
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
  assert_int_equal (ctl_store_open (path, &store, why, sizeof why), 0);
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
  fixture_t *self = *state;
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

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
int main (void)
{
  const struct CMUnitTest tests[] = {
      TEST (test_batches_once),
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
