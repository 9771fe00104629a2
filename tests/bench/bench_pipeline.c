/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way of a report, ring → batch → PUSH → PULL → journal → decode →
 * correlate, beside bare PUSH/PULL of frames of the same size in the same run.
 *
 * Two processes, as shipped: one writes events and drains them (probe and
 * sidecar), the other takes them in (controller). The acknowledgement travels
 * in a shared word instead of the instruction bus. */
#include <assert.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../../controller/service/intake.h"
#include "../../instance/shm/writer.h"
#include "../../instance/sidecar/drain.h"
#include "bench.h"

#define REPORTS  2000000u
#define ROUNDS   5
#define HWM      64
#define SUBTASKS 5 /* of a task; 4 requests between them: 9 reports */
#define CHUNK    384u

typedef struct {
  uint64_t acknowledged; /* frames that the other side is done with */
  uint64_t reports, tasks, bytes, lost, frames;
  double seconds;
} shared_t;
static shared_t *shared;
static char directory[64], address[96];

/* ---- what a probe would see: tasks of SUBTASKS subtasks ------------------- */
static weft_ids_t ids;
static weft_report_t next_report;
static unsigned step;
static uint64_t parent;

static const weft_report_t *make_report (void)
{
  static const char *names[] = {"POST /checkout", "GET /orders/81723", "GET /quote/55", "POST /pay",
                                "GET /stock"};
  if (step == 0) {
    weft_ids_task (&ids, next_report.task);
    next_report.request = 0;
    next_report.flags = WEFT_REPORT_ROOT;
    next_report.instruction = 1;
  }
  unsigned depth = (step + 1) / 2;
  next_report.kind = step % 2 == 0 ? WEFT_REPORT_CAPTURE : WEFT_REPORT_EMBED;
  if (next_report.kind == WEFT_REPORT_CAPTURE) {
    next_report.subtask = parent = weft_ids_next (&ids);
  } else {
    next_report.request = weft_ids_next (&ids);
    next_report.subtask = parent;
    next_report.flags = 0;
    next_report.instruction = 0;
  }
  next_report.name = names[depth];
  next_report.name_size = (uint16_t) strlen (names[depth]);
  next_report.start_ns += 1000;
  next_report.end_ns = next_report.start_ns + 50000;
  step = (step + 1) % (2 * SUBTASKS - 1);
  return &next_report;
}

static void *socket_at (void *context, int type, int bind_it)
{
  void *socket = zmq_socket (context, type);
  int hwm = HWM, linger = 5000;
  zmq_setsockopt (socket, type == ZMQ_PULL ? ZMQ_RCVHWM : ZMQ_SNDHWM, &hwm, sizeof hwm);
  zmq_setsockopt (socket, ZMQ_LINGER, &linger, sizeof linger);
  int failed = bind_it ? zmq_bind (socket, address) : zmq_connect (socket, address);
  if (failed) {
    perror (address);
    exit (1);
  }
  return socket;
}

static int push_frame (void *to, const void *data, size_t size)
{
  return zmq_send (to, data, size, ZMQ_DONTWAIT) < 0 ? WEFT_E_BUSY : 0;
}

/* ---- the sending process -------------------------------------------------- */
static void send_pipeline (void *socket)
{
  void *base;
  int fd;
  shm_reader_t *reader;
  car_drain_t *drain;
  uint8_t uuid[WEFT_UUID_SIZE] = {1}, start[WEFT_UUID_SIZE];
  if (shm_create (NULL, "bench", "0", 0, &base, &fd) || shm_reader_over (base, &reader) ||
      car_drain_new (reader, uuid, uuid, NULL, &drain))
    exit (1);
  memcpy (start, ((shm_head_t *) base)->start, sizeof start);
  weft_ids_seed (&ids);
  uint64_t done = 0, acknowledged = 0;
  next_report.cpu_ns = 700;
  next_report.status = 200;
  next_report.local.family = next_report.peer.family = 4;
  while (done < REPORTS || car_drain_waiting (drain)) {
    for (unsigned i = 0; i < CHUNK && done < REPORTS; i++, done++)
      if (!shm_write (base, 1, make_report ()))
        shared->lost++;
    car_drain_collect (drain, getpid ());
    uint64_t now = weft_mono_ns ();
    car_drain_push (drain, push_frame, socket, now);
    for (;;) {
      uint64_t seen = __atomic_load_n (&shared->acknowledged, __ATOMIC_ACQUIRE);
      if (seen > acknowledged)
        car_drain_acked (drain, start, acknowledged = seen, now);
      if (car_drain_waiting (drain) < HWM / 2)
        break;
      car_drain_push (drain, push_frame, socket, now);
      usleep (200);
    }
  }
}

static void send_bare (void *socket)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  size_t size = shared->bytes / shared->frames;
  for (uint64_t i = 0; i < shared->frames; i++)
    zmq_send (socket, frame, size, 0);
}

/* ---- the receiving process: this one -------------------------------------- */
static void receive_pipeline (void *socket)
{
  char why[256];
  ctl_journal_t *journal = NULL;
  ctl_instances_t *instances = ctl_instances_new ();
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  if (!instances || !correlate || ctl_journal_open (directory, 0, &journal, why, sizeof why))
    exit (1);
  ctl_intake_links_t links = {.instances = instances, .correlate = correlate, .journal = journal};
  ctl_intake_t *intake = ctl_intake_new (&links);
  zmq_msg_t message;
  zmq_msg_init (&message);
  uint64_t start = bench_now_ns ();
  shared->bytes = shared->frames = 0;
  while (ctl_intake_stats (intake)->reports < REPORTS && zmq_msg_recv (&message, socket, 0) >= 0) {
    if (ctl_intake_frame (intake, zmq_msg_data (&message), zmq_msg_size (&message)))
      bench_failed = 1;
    shared->bytes += zmq_msg_size (&message);
    shared->frames++;
    __atomic_fetch_add (&shared->acknowledged, 1, __ATOMIC_RELEASE);
  }
  shared->seconds = (double) (bench_now_ns () - start) / 1e9;
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (correlate, &stats);
  shared->reports = stats.reports;
  shared->tasks = stats.open_tasks;
  bench_equal ("batches sent twice", ctl_intake_stats (intake)->duplicates, 0);
  bench_equal ("batches journalled", ctl_journal_records (journal), shared->frames);
  zmq_msg_close (&message);
  ctl_intake_destroy (&intake);
  ctl_correlate_destroy (&correlate);
  ctl_instances_destroy (&instances);
  ctl_journal_close (&journal);
}

static void receive_bare (void *socket)
{
  zmq_msg_t message;
  zmq_msg_init (&message);
  uint64_t start = bench_now_ns ();
  for (uint64_t i = 0; i < shared->frames; i++)
    if (zmq_msg_recv (&message, socket, 0) < 0)
      bench_failed = 1;
  shared->seconds = (double) (bench_now_ns () - start) / 1e9;
  zmq_msg_close (&message);
}

/* One run; returns reports per second. */
static double run (int bare)
{
  snprintf (address, sizeof address, "ipc://%s/reports", directory);
  shared->acknowledged = 0;
  fflush (stdout);
  pid_t child = fork ();
  void *context = zmq_ctx_new ();
  void *socket = socket_at (context, child ? ZMQ_PULL : ZMQ_PUSH, child != 0);
  if (child == 0) {
    if (bare)
      send_bare (socket);
    else
      send_pipeline (socket);
    zmq_close (socket);
    zmq_ctx_term (context);
    _exit (0);
  }
  if (bare)
    receive_bare (socket);
  else
    receive_pipeline (socket);
  int status;
  if (waitpid (child, &status, 0) != child || status != 0)
    bench_failed = 1;
  zmq_close (socket);
  zmq_ctx_term (context);
  return REPORTS / shared->seconds;
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
  snprintf (directory, sizeof directory, "/tmp/weft-bench-XXXXXX");
  shared = mmap (NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || !mkdtemp (directory))
    return 1;
  double whole[ROUNDS], bare[ROUNDS], again[ROUNDS], ratio[ROUNDS], same[ROUNDS];
  for (unsigned i = 0; i < ROUNDS; i++) {
    whole[i] = run (0);
    bench_equal ("reports correlated", shared->reports, REPORTS);
    bench_equal ("tasks", shared->tasks, (REPORTS + 2 * SUBTASKS - 2) / (2 * SUBTASKS - 1));
    bench_equal ("events lost", shared->lost, 0);
    bare[i] = run (1);
    again[i] = run (1);
    ratio[i] = 100 * whole[i] / bare[i];
    same[i] = again[i] / bare[i];
  }
  char beside[160];
  snprintf (beside, sizeof beside,
            "%.2f M reports/s; bare %.2f M/s in frames of %.1f KiB, %.0f B a report; A/A %.2f",
            bench_median (whole, ROUNDS) / 1e6, bench_median (bare, ROUNDS) / 1e6,
            (double) shared->bytes / (double) shared->frames / 1024, (double) shared->bytes / REPORTS,
            bench_median (same, ROUNDS));
  bench_row ("whole way / bare PUSH/PULL", bench_median (ratio, ROUNDS), "%", 0, 12, beside);
  remove_directory ();
  return bench_failed;
}
