/* SPDX-License-Identifier: Apache-2.0 */
/* What the promises of the bus cost, in three pairs of the same run:
 *   the way of a report with journal and acknowledgements / without
 *   CPU of a 64 KiB frame under CURVE / in the clear
 *   one message to SUBSCRIBERS, from the first send to the last receipt
 * Two processes each, on the sockets that are shipped where there are such. */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../../controller/service/guard.h"
#include "../../controller/service/intake.h"
#include "../../controller/service/keyring.h"
#include "../../instance/shm/writer.h"
#include "../../instance/sidecar/bus.h"
#include "../../instance/sidecar/drain.h"
#include "bench.h"
#include "full_journal.h"

#define ROUNDS       15 /* short ones: those that are compared are near each other */
#define REPORTS      500000u
#define CHUNK        384u
#define OUT_MAX      32 /* batches under way */
#define FRAMES       1500u
#define CURVE_ROUNDS 15 /* short ones: a neighbour is in few of them */
#define SUBSCRIBERS  200
#define MESSAGES     200
#define MESSAGE      600 /* bytes; two instructions are about so long */
#define WAIT_MS      20000

typedef struct {
  uint64_t lost, sent, last_ns, cpu_ns, ready;
  uint64_t received[SUBSCRIBERS];
} shared_t;
static shared_t *shared;
static char directory[64], key_directory[80], address[96];
static unsigned runs; /* each on sockets of its own */

static void give_up (const char *what)
{
  printf ("bus: %s: FAIL\n", what);
  exit (1);
}

static pid_t fork_child (void)
{
  fflush (stdout);
  pid_t child = fork ();
  if (child < 0)
    give_up ("cannot fork");
  if (child == 0)
    prctl (PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* whatever ends this, nothing is left behind */
  return child;
}

static void wait_for (pid_t child)
{
  int status;
  if (waitpid (child, &status, 0) != child || status != 0)
    bench_failed = 1;
}

static uint64_t load (const uint64_t *word)
{
  return __atomic_load_n (word, __ATOMIC_ACQUIRE);
}

/* Until *word is at least `value`. */
static void await (const uint64_t *word, uint64_t value)
{
  for (int i = 0; load (word) < value; i++) {
    if (i == WAIT_MS)
      give_up ("the other side is gone");
    usleep (1000);
  }
}

static uint64_t cpu_ns (int who)
{
  struct rusage use;
  getrusage (who, &use);
  return (uint64_t) (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000u +
         (uint64_t) (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000u;
}

/* ---- journal and acknowledgements ------------------------------------------ */
static const uint8_t instance[WEFT_UUID_SIZE] = {1};

static void make_report (weft_report_t *report, weft_ids_t *ids)
{
  weft_ids_task (ids, report->task);
  report->kind = WEFT_REPORT_CAPTURE;
  report->flags = WEFT_REPORT_ROOT;
  report->instruction = 1;
  report->status = 200;
  report->subtask = weft_ids_next (ids);
  report->start_ns += 1000;
  report->end_ns = report->start_ns + 50000;
  report->name = "GET /orders/81723";
  report->name_size = 17;
}

static void take_acks (car_bus_t *bus, car_drain_t *drain, uint64_t now)
{
  weft_bus_message_t message;
  const char *topic;
  while (car_bus_receive (bus, &message, &topic) == 0) {
    if (message.kind == WEFT_BUS_BATCH_ACK)
      car_drain_acked (drain, message.start, message.number, now);
    weft_bus_clear (&message);
  }
}

/* kept: 1 waits for acknowledgements, 0 frees what it has pushed. */
static void send_reports (int kept)
{
  void *base;
  int fd;
  shm_reader_t *reader;
  car_drain_t *drain;
  car_bus_t *bus;
  weft_ids_t ids;
  weft_report_t report = {.cpu_ns = WEFT_NS_NONE};
  char why[256], topic[WEFT_TOPIC_MAX];
  uint32_t ready;
  weft_topic_instance (topic, instance);
  if (shm_create (NULL, "bench", "0", 0, &base, &fd) || shm_reader_over (base, &reader) ||
      car_drain_new (reader, instance, instance, NULL, &drain) ||
      car_bus_new (address, NULL, &bus, why, sizeof why) || car_bus_subscribe (bus, topic))
    _exit (1);
  weft_ids_seed (&ids);
  usleep (200000); /* the subscription is on its way */
  for (uint64_t done = 0; done < REPORTS || car_drain_waiting (drain);) {
    if (car_drain_waiting (drain) < OUT_MAX)
      for (unsigned i = 0; i < CHUNK && done < REPORTS; i++, done++) {
        make_report (&report, &ids);
        shared->lost += (uint64_t) !shm_write (base, 1, &report);
      }
    car_drain_collect (drain, getpid ());
    uint64_t now = weft_mono_ns ();
    int busy = car_drain_push (drain, car_bus_push, bus, now) < 0;
    if (!kept)
      car_drain_acked (drain, ((shm_head_t *) base)->start, car_drain_number (drain), now);
    take_acks (bus, drain, now);
    if (busy || car_drain_waiting (drain) >= OUT_MAX || done == REPORTS)
      car_bus_wait (bus, NULL, 0, busy, 5, &ready);
  }
  shared->sent = car_drain_number (drain);
  await (&shared->ready, 1); /* what waits to be written is not waited for long by a bus that ends */
  car_bus_destroy (&bus);
  _exit (0);
}

/* Takes them in; reports per second. */
static double take_reports (int kept)
{
  char why[256] = "";
  ctl_broadcast_t *broadcast = NULL;
  ctl_journal_t *journal = NULL;
  ctl_instances_t *instances = ctl_instances_new ();
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  if (ctl_broadcast_new (address, NULL, &broadcast, why, sizeof why) ||
      (kept && ctl_journal_open (directory, 0, &journal, why, sizeof why)))
    give_up (why);
  ctl_intake_links_t links = {
      .broadcast = broadcast, .instances = instances, .correlate = correlate, .journal = journal};
  ctl_intake_t *intake = ctl_intake_new (&links);
  if (ctl_intake_listen (intake, why, sizeof why))
    give_up (why);
  if (!kept)
    links.broadcast = NULL;
  ctl_intake_link (intake, &links);
  const ctl_intake_stats_t *stats = ctl_intake_stats (intake);
  uint64_t began = 0, until_ns = bench_now_ns () + WAIT_MS * 1000000ull;
  while (stats->reports < REPORTS) {
    if (bench_now_ns () > until_ns)
      give_up ("not all reports came");
    ctl_broadcast_pump (broadcast);
    if (ctl_intake_pump (intake) == 0)
      usleep (100);
    else if (!began)
      began = bench_now_ns ();
  }
  double seconds = (double) (bench_now_ns () - began) / 1e9;
  __atomic_store_n (&shared->ready, 1, __ATOMIC_RELEASE);
  bench_equal ("reports taken in", stats->reports, REPORTS);
  bench_equal ("batches malformed, refused or ahead", stats->malformed + stats->refused + stats->gap, 0);
  if (kept)
    bench_equal ("batches journalled", ctl_journal_records (journal), stats->batches);
  for (int i = 0; i < 200 && kept; i++) { /* those of the last ones are on their way */
    ctl_intake_pump (intake);
    usleep (100);
  }
  ctl_intake_destroy (&intake);
  ctl_broadcast_destroy (&broadcast);
  ctl_correlate_destroy (&correlate);
  ctl_instances_destroy (&instances);
  if (journal)
    ctl_journal_close (&journal);
  return REPORTS / seconds;
}

typedef struct {
  double rate, cpu_ns; /* reports a second; of both sides for one */
} reports_t;

static reports_t run_reports (int kept)
{
  snprintf (address, sizeof address, "ipc://%s/%u", directory, runs++);
  if (mkdir (address + strlen ("ipc://"), 0700) != 0)
    give_up (address);
  shared->lost = shared->ready = 0;
  pid_t child = fork_child ();
  if (child == 0)
    send_reports (kept);
  uint64_t before = cpu_ns (RUSAGE_SELF) + cpu_ns (RUSAGE_CHILDREN);
  double rate = take_reports (kept);
  wait_for (child);
  bench_equal ("events lost", shared->lost, 0);
  uint64_t cpu = cpu_ns (RUSAGE_SELF) + cpu_ns (RUSAGE_CHILDREN) - before;
  return (reports_t){rate, (double) cpu / REPORTS};
}

static void bench_journal (void)
{
  double kept[ROUNDS], bare[ROUNDS], ratio[ROUNDS], same[ROUNDS], cpu[ROUNDS];
  if (bench_fill_journal (directory))
    give_up ("no journal could be filled");
  for (unsigned i = 0; i < ROUNDS; i++) {
    reports_t before = run_reports (0), with = run_reports (1), after = run_reports (0);
    bare[i] = before.rate;
    kept[i] = with.rate;
    ratio[i] = 200 * with.rate / (before.rate + after.rate); /* between two of the others */
    cpu[i] = 50 * (before.cpu_ns + after.cpu_ns) / with.cpu_ns;
    same[i] = after.rate / before.rate;
  }
  char beside[128];
  snprintf (beside, sizeof beside, "%.2f M reports/s, without %.2f M/s; A/A %.2f; the journal is full",
            bench_median (kept, ROUNDS) / 1e6, bench_median (bare, ROUNDS) / 1e6,
            bench_median (same, ROUNDS));
  bench_row ("with journal and acks / without", bench_median (ratio, ROUNDS), "%", 0, 85, beside);
  bench_note ("the same in CPU time of both sides", bench_median (cpu, ROUNDS), "%", "");
}

/* ---- CURVE ------------------------------------------------------------------- */
/* The sidecar's side: its socket, its way of waiting when that takes no more. */
static void send_frames (const weft_keys_t *keys)
{
  static const uint8_t frame[WEFT_BATCH_MAX]; /* no message of ours: taken, counted, and that is all */
  char why[256];
  uint32_t ready;
  car_bus_t *bus;
  if (car_bus_new (address, keys, &bus, why, sizeof why))
    _exit (1);
  while (car_bus_push (bus, frame, sizeof frame) < 0) /* the handshake is not measured */
    car_bus_wait (bus, NULL, 0, 1, 10, &ready);
  await (&shared->ready, 1);
  uint64_t began = cpu_ns (RUSAGE_SELF);
  for (unsigned i = 0; i < FRAMES;) {
    if (car_bus_push (bus, frame, sizeof frame) == 0)
      i++;
    else
      car_bus_wait (bus, NULL, 0, 1, 100, &ready);
  }
  await (&shared->ready, 2);
  shared->cpu_ns = cpu_ns (RUSAGE_SELF) - began;
  car_bus_destroy (&bus);
  _exit (0);
}

/* The controller's side, at some ports that are free. */
static void listen_tcp (const char *keys, ctl_guard_t **ret_guard, ctl_broadcast_t **ret_broadcast,
                        ctl_intake_t **ret_intake)
{
  char why[1200] = "";
  for (unsigned i = 0; i < 100; i++) {
    snprintf (address, sizeof address, "tcp://127.0.0.1:%u",
              20000 + ((unsigned) getpid () * 7 + 3 * runs++) % 12000);
    if (ctl_guard_new (address, keys, ret_guard, why, sizeof why))
      give_up (why);
    if (ctl_broadcast_new (address, *ret_guard, ret_broadcast, why, sizeof why) == 0) {
      ctl_intake_links_t links = {.broadcast = *ret_broadcast};
      *ret_intake = ctl_intake_new (&links);
      if (*ret_intake && ctl_intake_listen (*ret_intake, why, sizeof why) == 0)
        return;
      ctl_intake_destroy (ret_intake);
      ctl_broadcast_destroy (ret_broadcast);
    }
    ctl_guard_destroy (ret_guard);
  }
  give_up (why);
}

/* Until `frames` have come; waits as the controller's loop does. */
static void take_frames (ctl_guard_t *guard, ctl_intake_t *intake, uint64_t frames)
{
  int guard_fds[CTL_GUARD_FDS];
  struct pollfd fds[1 + CTL_GUARD_FDS] = {{.fd = ctl_intake_fd (intake), .events = POLLIN}};
  ctl_guard_fds (guard, guard_fds);
  for (int n = 0; n < CTL_GUARD_FDS; n++)
    fds[1 + n] = (struct pollfd){.fd = guard_fds[n], .events = POLLIN};
  uint64_t until_ns = bench_now_ns () + WAIT_MS * 1000000ull;
  while (ctl_intake_stats (intake)->frames < frames)
    if (ctl_guard_pump (guard) + ctl_intake_pump (intake) == 0) {
      poll (fds, 1 + CTL_GUARD_FDS, 100);
      if (bench_now_ns () > until_ns)
        give_up ("the other side is gone");
    }
}

/* CPU of both sides for one frame, in ns. */
static double run_frames (int curve)
{
  char why[1200] = "";
  weft_keys_t keys = {0};
  ctl_guard_t *guard = NULL;
  ctl_broadcast_t *broadcast = NULL;
  ctl_intake_t *intake = NULL;
  listen_tcp (curve ? key_directory : NULL, &guard, &broadcast, &intake);
  if (curve && weft_keys_for (address, key_directory, "instance", &keys, why, sizeof why))
    give_up (why);
  shared->ready = 0;
  pid_t child = fork_child ();
  if (child == 0)
    send_frames (curve ? &keys : NULL);
  take_frames (guard, intake, 1);
  uint64_t began = cpu_ns (RUSAGE_SELF);
  __atomic_store_n (&shared->ready, 1, __ATOMIC_RELEASE);
  take_frames (guard, intake, 1 + FRAMES);
  uint64_t mine = cpu_ns (RUSAGE_SELF) - began;
  __atomic_store_n (&shared->ready, 2, __ATOMIC_RELEASE);
  wait_for (child);
  bench_equal ("frames received", ctl_intake_stats (intake)->malformed, 1 + FRAMES);
  bench_equal ("with keys", (uint64_t) keys.loaded, (uint64_t) curve);
  ctl_intake_destroy (&intake);
  ctl_broadcast_destroy (&broadcast);
  ctl_guard_destroy (&guard);
  weft_keys_clear (&keys);
  return (double) (mine + shared->cpu_ns) / FRAMES;
}

static void made (const char *path, int is_new, void *arg) {}

static void bench_curve (void)
{
  double curve[CURVE_ROUNDS], plain[CURVE_ROUNDS], ratio[CURVE_ROUNDS], same[CURVE_ROUNDS];
  char why[1200] = "";
  snprintf (key_directory, sizeof key_directory, "%s/keys", directory);
  if (ctl_keyring_make (key_directory, made, NULL, why, sizeof why))
    give_up (why);
  for (unsigned i = 0; i < CURVE_ROUNDS; i++) {
    plain[i] = run_frames (0);
    curve[i] = run_frames (1);
    double again = run_frames (0);
    ratio[i] = 2 * curve[i] / (plain[i] + again);
    same[i] = again / plain[i];
  }
  char beside[128];
  snprintf (beside, sizeof beside, "%.0f us of CPU, plain %.0f us, both sides; A/A %.2f",
            bench_median (curve, CURVE_ROUNDS) / 1e3, bench_median (plain, CURVE_ROUNDS) / 1e3,
            bench_median (same, CURVE_ROUNDS));
  bench_row ("64 KiB frame under CURVE / in the clear", bench_median (ratio, CURVE_ROUNDS), "x", 1, 4.5,
             beside);
}

/* ---- broadcast ---------------------------------------------------------------- */
/* Every subscriber takes every message; when the last one has it is noted. */
static void subscribe (const char *endpoint)
{
  void *context = zmq_ctx_new (), *socket[SUBSCRIBERS];
  char topic[WEFT_TOPIC_MAX], message[MESSAGE * 2];
  for (unsigned n = 0; n < SUBSCRIBERS; n++) {
    snprintf (topic, sizeof topic, "subscriber/%u", n);
    socket[n] = zmq_socket (context, ZMQ_SUB);
    if (!socket[n] || zmq_setsockopt (socket[n], ZMQ_SUBSCRIBE, "all", 3) != 0 ||
        zmq_setsockopt (socket[n], ZMQ_SUBSCRIBE, topic, strlen (topic)) != 0 ||
        zmq_connect (socket[n], endpoint) != 0)
      _exit (1);
  }
  for (unsigned i = 0; i < MESSAGES; i++) {
    for (unsigned n = 0; n < SUBSCRIBERS; n++) {
      if (zmq_recv (socket[n], topic, sizeof topic, 0) != 3 ||
          zmq_recv (socket[n], message, sizeof message, 0) < MESSAGE / 2)
        _exit (2);
      shared->received[n]++;
    }
    shared->last_ns = bench_now_ns ();
    __atomic_store_n (&shared->ready, i + 1, __ATOMIC_RELEASE);
  }
  for (unsigned n = 0; n < SUBSCRIBERS; n++)
    zmq_close (socket[n]);
  zmq_ctx_term (context);
  _exit (0);
}

/* XPUB tells of the first subscription to a topic only: each has one of its own, sent last. */
static void await_subscriptions (ctl_broadcast_t *broadcast)
{
  int seen = 0;
  for (int i = 0; seen < SUBSCRIBERS + 1; i++) {
    int more = ctl_broadcast_pump (broadcast);
    seen += more;
    if (i == WAIT_MS)
      give_up ("not everybody subscribed");
    if (!more)
      usleep (1000);
  }
}

static void bench_broadcast (void)
{
  static weft_instruction_t two[2] = {{.number = 1, .actions = 7, .selector_count = 2, .lease_ms = 5000},
                                      {.number = 2, .actions = 7, .selector_count = 1, .lease_ms = 5000}};
  char why[256] = "", endpoint[WEFT_ENDPOINT_MAX];
  ctl_broadcast_t *broadcast = NULL;
  double each[2][MESSAGES / 2], all[MESSAGES];
  for (unsigned n = 0; n < 2; n++) {
    snprintf (two[n].selectors[0], WEFT_SELECTOR_MAX, "service=orders-of-a-long-name,vm=jvm,host=%060u", n);
    snprintf (two[n].selectors[1], WEFT_SELECTOR_MAX, "service=pricing,vm=cpython,host=%060u", n);
    snprintf (two[n].match, WEFT_MATCH_MAX, "POST /checkout/*/items/**");
    two[n].sample_num = two[n].sample_den = 1;
  }
  snprintf (address, sizeof address, "ipc://%s/%u", directory, runs++);
  if (mkdir (address + strlen ("ipc://"), 0700) != 0 ||
      ctl_broadcast_new (address, NULL, &broadcast, why, sizeof why) ||
      weft_endpoint (address, WEFT_ENDPOINT_INSTRUCTIONS, endpoint, why, sizeof why))
    give_up (why);
  memset (shared, 0, sizeof *shared);
  pid_t child = fork_child ();
  if (child == 0)
    subscribe (endpoint);
  await_subscriptions (broadcast);
  weft_bus_message_t state = {
      .kind = WEFT_BUS_STATE, .epoch = 1, .instruction_count = 2, .instructions = two};
  for (unsigned i = 0; i < MESSAGES; i++) {
    uint64_t began = bench_now_ns ();
    if (ctl_broadcast_send (broadcast, "all", &state))
      bench_failed = 1;
    await (&shared->ready, i + 1);
    each[i % 2][i / 2] = all[i] = (double) (shared->last_ns - began) / 1e3 / SUBSCRIBERS;
  }
  wait_for (child);
  for (unsigned n = 0; n < SUBSCRIBERS; n++)
    bench_equal ("messages of one subscriber", shared->received[n], MESSAGES);
  ctl_broadcast_destroy (&broadcast);
  char beside[128];
  snprintf (beside, sizeof beside, "to %d subscribers, first send to last receipt; A/A %.2f", SUBSCRIBERS,
            bench_median (each[0], MESSAGES / 2) / bench_median (each[1], MESSAGES / 2));
  bench_row ("broadcast, for each subscriber", bench_median (all, MESSAGES), "us", 1, 25, beside);
}

static void remove_directory (void)
{
  char command[128];
  snprintf (command, sizeof command, "rm -r '%s'", directory);
  if (system (command))
    bench_failed = 1;
}

int main (void)
{
  strcpy (directory, "/tmp/weft-bench-XXXXXX");
  shared = mmap (NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || !mkdtemp (directory))
    return 1;
  bench_broadcast ();
  bench_curve ();
  bench_journal ();
  remove_directory ();
  return bench_failed;
}
