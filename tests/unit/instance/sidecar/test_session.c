/* SPDX-License-Identifier: Apache-2.0 */
/* A whole session against a process that plays the probe and a controller that
 * is this test: what crosses, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "../../../../common/batch.h"
#include "../../../../common/clocks.h"
#include "../../../../common/status.h"
#include "../../../../common/wire.h"
#include "../../../../instance/shm/writer.h"
#include "../../../../instance/sidecar/claim.h"
#include "../../../../instance/sidecar/tree.h"

#define PATIENCE_MS 20000

typedef struct {
  char directory[64], base[80];
  void *context, *publisher, *sink;
  pid_t vm, sidecar;
  uint8_t instance[WEFT_UUID_SIZE], start[WEFT_UUID_SIZE], batch_start[WEFT_UUID_SIZE];
  uint32_t actions; /* that a HELLO is answered with */
  uint64_t epoch, seq, batch_last, reports;
} stage_t;

/* ---- the two other processes ---------------------------------------------- */

static void become_another_image (int signal_number)
{
  execl ("/proc/self/exe", "test_session", "probe", (char *) NULL);
  _exit (2);
}

/* Obeys the control page at once; says three more words on its way to idle. */
static void play_probe (void)
{
  void *base;
  int fd;
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE,
                          .task = {1},
                          .request = 2,
                          .subtask = 3,
                          .cpu_ns = WEFT_NS_NONE,
                          .name = "GET /items/123",
                          .name_size = 14};
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  struct sigaction action = {.sa_handler = become_another_image, .sa_flags = SA_NODEFER};
  sigaction (SIGUSR1, &action, NULL);
  if (shm_create (NULL, "cpython", "3.99.1 (test)", 0, &base, &fd) < 0)
    _exit (1);
  shm_status_t *status = shm_status (base);
  shm_control_t *control = shm_control (base);
  status->slots_written = 5;
  status->state = SHM_STATE_IDLE;
  for (;;) {
    usleep (500);
    uint32_t seq = __atomic_load_n (&control->config_seq, __ATOMIC_ACQUIRE);
    if (__atomic_load_n (&control->command, __ATOMIC_ACQUIRE) == SHM_COMMAND_LEAVE) {
      shm_write (base, 77, &report);
      status->slots_restored = 5;
      status->actions = 0;
      __atomic_store_n (&status->state, SHM_STATE_LEFT, __ATOMIC_RELEASE);
      for (;;)
        pause ();
    }
    if (seq % 2 == 0 && seq != status->config_seen) {
      uint32_t actions = control->actions;
      for (int i = 0; i < 3; i++)
        shm_write (base, 77, &report);
      status->actions = actions;
      __atomic_store_n (&status->config_seen, seq, __ATOMIC_RELEASE);
    }
  }
}

static void run_sidecar (stage_t *stage)
{
  char why[256] = "";
  shm_reader_t *reader;
  uint8_t instance[WEFT_UUID_SIZE];
  sigset_t all;
  sigfillset (&all);
  sigprocmask (SIG_SETMASK, &all, NULL);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  prctl (PR_SET_NAME, CAR_CLAIM_PROGRAM);
  car_session_options_t options = {.pid = stage->vm, .service = "shop", .controller = stage->base};
  options.pidfd = (int) syscall (SYS_pidfd_open, stage->vm, 0);
  if (car_claim_await (stage->vm, options.pidfd, NULL, PATIENCE_MS, &reader) < 0 ||
      car_claim_take (reader, stage->instance, instance) < 0)
    _exit (10);
  _exit (car_tree_run (&options, NULL, &reader, instance, why, sizeof why) == 0 ? 0 : 11);
}

/* ---- the controller ---------------------------------------------------------- */

static void publish (stage_t *stage, const char *topic, weft_bus_message_t *message)
{
  void *data;
  size_t size;
  message->controller[0] = 0xcc;
  assert_int_equal (weft_bus_pack (message, &data, &size), 0);
  zmq_send (stage->publisher, topic, strlen (topic), ZMQ_SNDMORE);
  zmq_send (stage->publisher, data, size, 0);
  free (data);
}

static void publish_alone (stage_t *stage, weft_bus_message_t *message)
{
  char topic[WEFT_TOPIC_MAX];
  weft_topic_instance (topic, stage->instance);
  publish (stage, topic, message);
}

static void publish_state (stage_t *stage, uint32_t actions, int alone)
{
  stage->actions = actions; /* a HELLO that comes now is answered with the same */
  weft_instruction_t one = {.number = 1,
                            .actions = actions,
                            .selector_count = 1,
                            .sample_num = 1,
                            .sample_den = 1,
                            .lease_ms = 5000,
                            .selectors = {"service=shop"}};
  weft_bus_message_t message = {.kind = WEFT_BUS_STATE, .epoch = stage->epoch};
  message.instruction_count = actions ? 1 : 0;
  message.instructions = &one;
  if (alone)
    publish_alone (stage, &message);
  else
    publish (stage, WEFT_TOPIC_ALL, &message);
}

/* The next frame, HELLOs answered and batches acknowledged on the way (if `ack`). */
static weft_up_kind_t next_frame (stage_t *stage, int ack, weft_up_message_t *ret_message)
{
  static char frame[WEFT_FRAME_MAX];
  weft_up_kind_t kind;
  for (;;) {
    weft_bus_message_t beat = {
        .kind = WEFT_BUS_HEARTBEAT, .epoch = stage->epoch, .seq = ++stage->seq, .sent_ns = weft_mono_ns ()};
    publish (stage, WEFT_TOPIC_ALL, &beat);
    int size = zmq_recv (stage->sink, frame, sizeof frame, 0);
    assert_true (size > 0);
    assert_int_equal (weft_up_kind (frame, (size_t) size, &kind), 0);
    if (kind == WEFT_UP_BATCH) {
      weft_batch_reader_t *reader = malloc (sizeof *reader);
      assert_int_equal (weft_batch_reader_begin (reader, frame, (size_t) size), 0);
      assert_memory_equal (reader->head.instance, stage->instance, WEFT_UUID_SIZE);
      weft_bus_message_t done = {.kind = WEFT_BUS_BATCH_ACK, .number = reader->head.number};
      memcpy (done.start, reader->head.start, WEFT_UUID_SIZE);
      if (memcmp (reader->head.start, stage->batch_start, WEFT_UUID_SIZE) != 0)
        stage->batch_last = 0; /* another probe counts anew */
      memcpy (stage->batch_start, reader->head.start, WEFT_UUID_SIZE);
      if (reader->head.number > stage->batch_last) {
        assert_true (reader->head.number == stage->batch_last + 1);
        stage->batch_last = reader->head.number;
        stage->reports += reader->head.reports;
      }
      free (reader);
      if (ack)
        publish_alone (stage, &done);
      return kind;
    }
    assert_int_equal (weft_up_unpack (frame, (size_t) size, ret_message), 0);
    if (kind != WEFT_UP_HELLO)
      return kind;
    memcpy (stage->start, ret_message->start, WEFT_UUID_SIZE);
    publish_state (stage, stage->actions, 1);
    return kind;
  }
}

static void wait_for (stage_t *stage, weft_up_kind_t wanted, uint64_t epoch, weft_up_message_t *ret_message)
{
  for (int i = 0; i < 200; i++)
    if (next_frame (stage, 1, ret_message) == wanted &&
        (wanted != WEFT_UP_ACK || ret_message->epoch == epoch))
      return;
  fail_msg ("%d did not come", (int) wanted);
}

static int set_up (void **state)
{
  char endpoint[WEFT_ENDPOINT_MAX], why[128];
  int zero = 0, wait = PATIENCE_MS;
  stage_t *stage = calloc (1, sizeof *stage);
  stage->instance[0] = 0x11;
  stage->epoch = 1;
  snprintf (stage->directory, sizeof stage->directory, "/tmp/weft-test-session-XXXXXX");
  assert_non_null (mkdtemp (stage->directory));
  snprintf (stage->base, sizeof stage->base, "ipc://%s", stage->directory);
  if ((stage->vm = fork ()) == 0)
    play_probe ();
  if ((stage->sidecar = fork ()) == 0)
    run_sidecar (stage);
  stage->context = zmq_ctx_new ();
  stage->publisher = zmq_socket (stage->context, ZMQ_XPUB);
  stage->sink = zmq_socket (stage->context, ZMQ_PULL);
  zmq_setsockopt (stage->publisher, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt (stage->sink, ZMQ_RCVTIMEO, &wait, sizeof wait);
  weft_endpoint (stage->base, WEFT_ENDPOINT_INSTRUCTIONS, endpoint, why, sizeof why);
  assert_int_equal (zmq_bind (stage->publisher, endpoint), 0);
  weft_endpoint (stage->base, WEFT_ENDPOINT_REPORTS, endpoint, why, sizeof why);
  assert_int_equal (zmq_bind (stage->sink, endpoint), 0);
  *state = stage;
  return 0;
}

static int tear_down (void **state)
{
  stage_t *stage = *state;
  char path[128];
  kill (stage->vm, SIGKILL);
  waitpid (stage->vm, NULL, 0);
  if (stage->sidecar > 0) {
    kill (stage->sidecar, SIGKILL);
    waitpid (stage->sidecar, NULL, 0);
  }
  zmq_close (stage->publisher);
  zmq_close (stage->sink);
  zmq_ctx_term (stage->context);
  snprintf (path, sizeof path, "%s/instructions", stage->directory);
  unlink (path);
  snprintf (path, sizeof path, "%s/reports", stage->directory);
  unlink (path);
  rmdir (stage->directory);
  free (stage);
  return 0;
}

static void ends_well (stage_t *stage)
{
  int code;
  assert_int_equal (waitpid (stage->sidecar, &code, 0), stage->sidecar);
  stage->sidecar = 0;
  assert_int_equal (code, 0);
}

/* ---- tests --------------------------------------------------------------------- */

static void says_who_it_is (void **state)
{
  stage_t *stage = *state;
  weft_up_message_t hello;
  wait_for (stage, WEFT_UP_HELLO, 0, &hello);
  assert_memory_equal (hello.instance, stage->instance, WEFT_UUID_SIZE);
  assert_int_equal (hello.pid, stage->vm);
  assert_string_equal (hello.vm, "cpython");
  assert_string_equal (hello.version, "3.99.1");
  assert_string_equal (hello.service, "shop");
}

static void the_last_batch_precedes_the_ack_and_the_bye (void **state)
{
  stage_t *stage = *state;
  weft_up_message_t message;
  wait_for (stage, WEFT_UP_ACK, 1, &message); /* nothing asked, nothing active */
  assert_int_equal (message.active, 0);
  stage->epoch = 2;
  publish_state (stage, WEFT_ACTION_CAPTURE | WEFT_ACTION_EMBED, 0);
  wait_for (stage, WEFT_UP_ACK, 2, &message);
  assert_int_equal (message.active, WEFT_ACTION_CAPTURE | WEFT_ACTION_EMBED);
  uint64_t before = stage->reports;
  stage->epoch = 3;
  publish_state (stage, 0, 0);
  wait_for (stage, WEFT_UP_ACK, 3, &message);
  assert_int_equal (message.active, 0);
  assert_int_equal (stage->reports, before + 3); /* written on the way to idle */
  weft_bus_message_t leave = {.kind = WEFT_BUS_LEAVE};
  publish (stage, WEFT_TOPIC_ALL, &leave); /* to everybody: means nobody */
  publish_alone (stage, &leave);
  wait_for (stage, WEFT_UP_BYE, 0, &message);
  assert_int_equal (stage->reports, before + 4); /* written while it left */
  assert_string_equal (message.reason, "detach");
  assert_int_equal (message.slots_written, 5);
  assert_int_equal (message.slots_restored, 5);
  assert_int_equal (message.threads_left, 0);
  ends_well (stage);
}

static void a_process_that_dies_is_drained (void **state)
{
  stage_t *stage = *state;
  weft_up_message_t message;
  wait_for (stage, WEFT_UP_ACK, 1, &message);
  stage->epoch = 2;
  publish_state (stage, WEFT_ACTION_CAPTURE, 0);
  wait_for (stage, WEFT_UP_ACK, 2, &message);
  kill (stage->vm, SIGKILL);
  wait_for (stage, WEFT_UP_BYE, 0, &message);
  assert_string_equal (message.reason, "exited");
  ends_well (stage);
}

static void an_exec_is_followed (void **state)
{
  stage_t *stage = *state;
  weft_up_message_t message;
  uint8_t before[WEFT_UUID_SIZE];
  wait_for (stage, WEFT_UP_ACK, 1, &message);
  stage->epoch = 2;
  publish_state (stage, WEFT_ACTION_CAPTURE, 0);
  wait_for (stage, WEFT_UP_ACK, 2, &message);
  memcpy (before, message.start, WEFT_UUID_SIZE);
  stage->actions = WEFT_ACTION_CAPTURE; /* what a HELLO is answered with from now on */
  kill (stage->vm, SIGUSR1);
  do
    wait_for (stage, WEFT_UP_ACK, 2, &message);
  while (memcmp (message.start, before, WEFT_UUID_SIZE) == 0);
  assert_int_equal (message.active, WEFT_ACTION_CAPTURE); /* the new image is armed as the old one was */
  assert_memory_equal (message.instance, stage->instance, WEFT_UUID_SIZE);
  kill (stage->sidecar, SIGTERM);
  wait_for (stage, WEFT_UP_BYE, 0, &message);
  ends_well (stage);
}

static void sigterm_leaves (void **state)
{
  stage_t *stage = *state;
  weft_up_message_t message;
  wait_for (stage, WEFT_UP_HELLO, 0, &message);
  kill (stage->sidecar, SIGTERM);
  wait_for (stage, WEFT_UP_BYE, 0, &message);
  assert_string_equal (message.reason, "detach");
  ends_well (stage);
}

/* Both at once: what descends from it is to be left nevertheless. */
static void one_that_ends_while_it_leaves_was_told_to (void **state)
{
  stage_t *stage = *state;
  weft_up_message_t message;
  char why[256] = "";
  shm_reader_t *reader = NULL;
  car_bus_t *bus = NULL;
  car_session_t *session = NULL;
  wait_for (stage, WEFT_UP_HELLO, 0, &message);
  kill (stage->sidecar, SIGKILL);
  waitpid (stage->sidecar, NULL, 0);
  stage->sidecar = 0;
  car_session_options_t options = {.pid = stage->vm, .pidfd = -1, .controller = stage->base};
  assert_int_equal (car_bus_new (stage->base, NULL, &bus, why, sizeof why), 0);
  assert_int_equal (shm_reader_open (stage->vm, &reader), 0);
  assert_int_equal (car_session_new (&options, bus, &reader, stage->instance, &session), 0);
  assert_false (car_session_leaving (session));
  uint64_t now = weft_mono_ns ();
  car_session_leave (session, now);
  car_session_gone (session, now);
  assert_true (car_session_leaving (session));
  car_session_destroy (&session);
  assert_int_equal (shm_reader_open (stage->vm, &reader), 0);
  assert_int_equal (car_session_new (&options, bus, &reader, stage->instance, &session), 0);
  car_session_gone (session, now);
  assert_false (car_session_leaving (session)); /* it ended by itself */
  car_session_destroy (&session);
  car_bus_destroy (&bus);
}

/* S4: acknowledged by nobody for longer than a detach may take, and yet not given up. */
static void what_a_dead_process_left_waits_for_a_controller (void **state)
{
  stage_t *stage = *state;
  weft_up_message_t message;
  wait_for (stage, WEFT_UP_ACK, 1, &message);
  uint64_t before = stage->reports, batch = stage->batch_last;
  stage->epoch = 2;
  publish_state (stage, WEFT_ACTION_CAPTURE, 0);
  while (stage->batch_last == batch)
    next_frame (stage, 0, &message);
  kill (stage->vm, SIGKILL);
  uint64_t began_ns = weft_mono_ns ();
  while (weft_mono_ns () - began_ns < (CAR_SESSION_CLOSE_MS + 500) * WEFT_NS_PER_MS)
    assert_int_not_equal (next_frame (stage, 0, &message), WEFT_UP_BYE);
  wait_for (stage, WEFT_UP_BYE, 0, &message);
  assert_int_equal (stage->reports, before + 3);
  assert_string_equal (message.reason, "exited");
  ends_well (stage);
}

static void ends_without_a_controller_too (void **state)
{
  stage_t *stage = *state;
  weft_up_message_t message;
  wait_for (stage, WEFT_UP_HELLO, 0, &message);
  zmq_close (stage->sink);
  stage->sink = zmq_socket (stage->context, ZMQ_PULL);
  kill (stage->vm, SIGKILL);
  kill (stage->sidecar, SIGTERM);
  uint64_t began_ns = weft_mono_ns ();
  ends_well (stage);
  assert_true (weft_mono_ns () - began_ns < 2 * (CAR_SESSION_CLOSE_MS + 1000) * WEFT_NS_PER_MS);
}

int main (int argc, char **argv)
{
  if (argc > 1 && strcmp (argv[1], "probe") == 0)
    play_probe ();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (says_who_it_is, set_up, tear_down),
      cmocka_unit_test_setup_teardown (the_last_batch_precedes_the_ack_and_the_bye, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_process_that_dies_is_drained, set_up, tear_down),
      cmocka_unit_test_setup_teardown (an_exec_is_followed, set_up, tear_down),
      cmocka_unit_test_setup_teardown (sigterm_leaves, set_up, tear_down),
      cmocka_unit_test_setup_teardown (one_that_ends_while_it_leaves_was_told_to, set_up, tear_down),
      cmocka_unit_test_setup_teardown (what_a_dead_process_left_waits_for_a_controller, set_up, tear_down),
      cmocka_unit_test_setup_teardown (ends_without_a_controller_too, set_up, tear_down),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
