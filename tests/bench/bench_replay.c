/* SPDX-License-Identifier: Apache-2.0 */
/* A recording sent by `weft replay --speed max` to a controller as shipped, its
 * journal and its acknowledgements included, beside bare decode + correlate of
 * the same batches in the same run. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../common/batch.h"
#include "../../common/ids.h"
#include "../../common/status.h"
#include "../../controller/cli/client.h"
#include "../../controller/cli/replayer.h"
#include "../../controller/service/service.h"
#include "../../controller/task/correlate.h"
#include "bench.h"
#include "full_journal.h"

#define REPORTS  900000u
#define ROUNDS   15
#define PER_TASK 9u /* 5 subtasks, 4 requests between them */
#define SERVICES 3u

static char directory[64], recording_path[96];
static double controller_cpu_ns, bare_cpu_ns; /* a report, of the last round */
static uint64_t batches;

/* ---- the recording --------------------------------------------------------- */
static weft_ids_t ids;

static const weft_report_t *make_report (uint32_t n)
{
  static const char *names[] = {"POST /checkout", "GET /orders/{id}", "GET /quote/{id}", "POST /pay",
                                "GET /stock"};
  static weft_report_t report = {.cpu_ns = 700, .status = 200};
  static uint64_t parent;
  unsigned step = n % PER_TASK;
  if (step == 0)
    weft_ids_task (&ids, report.task);
  report.kind = step % 2 ? WEFT_REPORT_EMBED : WEFT_REPORT_CAPTURE;
  report.flags = step ? 0 : WEFT_REPORT_ROOT;
  report.instruction = step == 0;
  if (report.kind == WEFT_REPORT_CAPTURE) {
    report.request = step ? report.request : 0;
    report.subtask = parent = weft_ids_next (&ids);
  } else {
    report.request = weft_ids_next (&ids);
    report.subtask = parent;
  }
  report.name = names[(step + 1) / 2];
  report.name_size = (uint16_t) strlen (report.name);
  report.local.family = report.peer.family = 4;
  report.start_ns += 1000;
  report.end_ns = report.start_ns + 50000;
  return &report;
}

/* A service's batch on its way: what a sidecar under load sends. */
typedef struct {
  weft_batch_writer_t *writer;
  weft_batch_head_t head;
  uint8_t frame[WEFT_BATCH_MAX];
} sending_t;

static int begin (sending_t *self)
{
  self->head.number++;
  batches++;
  return weft_batch_writer_begin (self->writer, self->frame, sizeof self->frame, &self->head);
}

static int finish (sending_t *self, ctl_recording_writer_t *writer)
{
  size_t size = 0;
  int rc = weft_batch_writer_finish (self->writer, &self->head, &size);
  return rc ? rc : ctl_recording_frame (writer, self->frame, size);
}

/* Each report goes into the batch of the service that saw it, as in a real run. */
static int write_batches (ctl_recording_writer_t *writer)
{
  static sending_t sending[SERVICES];
  int rc = 0;
  for (unsigned n = 0; rc == 0 && n < SERVICES; n++) {
    memset (sending[n].head.instance, (int) n + 1, WEFT_UUID_SIZE);
    memset (sending[n].head.start, (int) n + 101, WEFT_UUID_SIZE);
    sending[n].head.anchor.real_ns = 1;
    sending[n].writer = weft_batch_writer_new ();
    rc = sending[n].writer ? begin (&sending[n]) : -1;
  }
  for (uint32_t n = 0; rc == 0 && n < REPORTS; n++) {
    const weft_report_t *report = make_report (n);
    sending_t *to = &sending[n % PER_TASK / 2 % SERVICES];
    rc = weft_batch_writer_add (to->writer, report);
    if (rc == WEFT_E_FULL) {
      rc = finish (to, writer);
      rc = rc ? rc : begin (to);
      rc = rc ? rc : weft_batch_writer_add (to->writer, report);
    }
  }
  for (unsigned n = 0; rc == 0 && n < SERVICES; n++) {
    rc = finish (&sending[n], writer);
    weft_batch_writer_destroy (&sending[n].writer);
  }
  return rc;
}

static ctl_plan_t *make_plan (ctl_recording_t **ret_recording)
{
  ctl_recording_writer_t *writer = NULL;
  ctl_plan_t *plan = NULL;
  weft_ids_seed (&ids);
  snprintf (recording_path, sizeof recording_path, "%s/bench.weftr", directory);
  if (ctl_recording_create (recording_path, &writer) || write_batches (writer) ||
      ctl_recording_finish (&writer) || ctl_recording_open (recording_path, ret_recording) ||
      ctl_plan_new (*ret_recording, 0, &plan)) {
    fprintf (stderr, "bench_replay: the recording could not be made\n");
    exit (1);
  }
  bench_equal ("reports in the recording", plan->reports, REPORTS);
  bench_equal ("batches in the recording", plan->batches, batches);
  bench_equal ("tasks in the recording", plan->tasks, REPORTS / PER_TASK);
  return plan;
}

static double cpu_ns (const struct rusage *usage)
{
  return (double) (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1e9 +
         (double) (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e3;
}

/* ---- one round ---------------------------------------------------------------- */
typedef struct {
  double rate, cpu_ns;
  uint64_t reports;
} bare_t;

static bare_t decode_and_correlate (const ctl_plan_t *plan)
{
  ctl_instances_t *instances = ctl_instances_new ();
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  struct rusage before, after;
  getrusage (RUSAGE_SELF, &before);
  uint64_t start = bench_now_ns (), reports = 0;
  for (uint32_t n = 0; n < plan->frame_count; n++) {
    uint32_t taken = 0;
    if (ctl_correlate_batch (correlate, plan->frames[n].frame, plan->frames[n].size, &taken))
      bench_failed = 1;
    reports += taken;
  }
  double seconds = (double) (bench_now_ns () - start) / 1e9;
  getrusage (RUSAGE_SELF, &after);
  ctl_correlate_destroy (&correlate);
  ctl_instances_destroy (&instances);
  return (bare_t){REPORTS / seconds, (cpu_ns (&after) - cpu_ns (&before)) / REPORTS, reports};
}

/* In a process of its own, as the controller is: in one that has correlated before, the memory is
 * there already in some runs and in others not, and the figure is one of two. */
static double bare (const ctl_plan_t *plan)
{
  bare_t result = {0};
  int ends[2];
  fflush (stdout);
  if (pipe (ends) < 0)
    exit (1);
  pid_t child = fork ();
  if (child == 0) {
    unsigned sum = 0;
    for (uint32_t n = 0; n < plan->frame_count; n++) /* the recording's pages are mapped, as they were */
      for (size_t at = 0; at < plan->frames[n].size; at += 4096)
        sum += ((const volatile uint8_t *) plan->frames[n].frame)[at];
    result = decode_and_correlate (plan);
    _exit (write (ends[1], &result, sizeof result) != sizeof result || sum == 1);
  }
  close (ends[1]);
  if (read (ends[0], &result, sizeof result) != sizeof result)
    bench_failed = 1;
  close (ends[0]);
  waitpid (child, NULL, 0);
  bench_equal ("reports correlated", result.reports, REPORTS);
  bare_cpu_ns = result.cpu_ns;
  return result.rate;
}

static uint64_t asked (ctl_client_t *client, const char *part, const char *key)
{
  json_t *reply = NULL;
  if (ctl_client_ask (client, json_pack ("{s:s}", "op", "stats"), NULL, NULL, &reply))
    return 0;
  uint64_t value = (uint64_t) json_integer_value (json_object_get (json_object_get (reply, part), key));
  json_decref (reply);
  return value;
}

/* A controller is no child of who replays: sharing its memory would cost a copy of every page that is
 * written to while it is sent. */
static void share (const ctl_plan_t *plan, int yes)
{
  const ctl_plan_frame_t *last = &plan->frames[plan->frame_count - 1];
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE);
  uintptr_t from = (uintptr_t) plan->frames[0].frame / page * page;
  uintptr_t end = (uintptr_t) last->frame + last->size;
  if (madvise ((void *) from, end - from, yes ? MADV_DOFORK : MADV_DONTFORK))
    bench_failed = 1;
}

static pid_t start_controller (const ctl_plan_t *plan, const char *address, unsigned round)
{
  fflush (stdout);
  share (plan, 0);
  pid_t child = fork ();
  if (child)
    share (plan, 1);
  if (child == 0) {
    char store[128];
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    snprintf (store, sizeof store, "%s/%u.db", directory, round);
    ctl_service_options_t options = {.listen = address,
                                     .store = store,
                                     .journal_max = WEFT_JOURNAL_MAX,
                                     .journal_age_ms = WEFT_JOURNAL_AGE_MS};
    _exit (ctl_service_run (&options) < 0);
  }
  return child;
}

/* What a process has used, in ns. */
static double used_by (pid_t process)
{
  clockid_t clock;
  struct timespec used = {0, 0};
  if (clock_getcpuclockid (process, &clock) || clock_gettime (clock, &used))
    bench_failed = 1;
  return (double) used.tv_sec * 1e9 + (double) used.tv_nsec;
}

static double replay (const ctl_plan_t *plan, unsigned round)
{
  char address[96], socket[128], journal[128], why[256] = "";
  snprintf (address, sizeof address, "ipc://%s/%u", directory, round);
  snprintf (socket, sizeof socket, "%s/%u/control", directory, round);
  snprintf (journal, sizeof journal, "%s/%u.db.journal", directory, round);
  if (mkdir (journal, 0700) || bench_fill_journal (journal))
    bench_failed = 1;
  pid_t controller = start_controller (plan, address, round);
  for (int n = 0; n < 500 && access (socket, F_OK); n++)
    usleep (10000);
  ctl_client_t *client = NULL;
  ctl_replay_options_t options = {.address = address, .repeat = 1, .seed = 1};
  ctl_replay_result_t result = {0};
  double before_ns = 0;
  int rc = ctl_client_open (address, CTL_CLIENT_EXISTING, &client);
  if (rc == 0) {
    before_ns = used_by (controller); /* with reading what was in the journal */
    rc = ctl_replay_run (plan, &options, &result, why, sizeof why);
  }
  if (rc) {
    fprintf (stderr, "bench_replay: %s\n", why);
    bench_failed = 1;
  } else {
    bench_equal ("reports sent and acknowledged", result.whole ? result.reports : 0, REPORTS);
    bench_equal ("reports the controller correlated", asked (client, "correlate", "reports"), REPORTS);
    bench_equal ("batches the controller took", asked (client, "intake", "batches"), batches);
  }
  ctl_client_close (&client);
  kill (controller, SIGKILL); /* writing out what it has is not measured here */
  struct rusage usage = {0};
  wait4 (controller, NULL, 0, &usage);
  controller_cpu_ns = (cpu_ns (&usage) - before_ns) / REPORTS;
  return result.seconds > 0 ? REPORTS / result.seconds : 0;
}

static void remove_round (unsigned round)
{
  char command[256];
  snprintf (command, sizeof command, "rm -rf '%s/%u' '%s/%u.db'*", directory, round, directory, round);
  if (system (command))
    bench_failed = 1;
}

int main (void)
{
  /* A disk's page cache, as a store has it, and little enough that it stays there: how fast a disk
   * takes a journal is another question. */
  snprintf (directory, sizeof directory, "/var/tmp/weft-bench-XXXXXX");
  if (!mkdtemp (directory))
    return 1;
  ctl_recording_t *recording = NULL;
  ctl_plan_t *plan = make_plan (&recording);
  double rate[ROUNDS], yardstick[ROUNDS], ratio[ROUNDS], cpu[ROUNDS], best = 0, best_bare = 0;
  bare (plan); /* the file is in the cache */
  for (unsigned n = 0; n < ROUNDS; n++) {
    rate[n] = replay (plan, n);
    yardstick[n] = bare (plan);
    ratio[n] = rate[n] / yardstick[n];
    cpu[n] = bare_cpu_ns / controller_cpu_ns;
    best = rate[n] > best ? rate[n] : best;
    best_bare = yardstick[n] > best_bare ? yardstick[n] : best_bare;
    remove_round (n);
  }
  char beside[160], rounds[96];
  snprintf (beside, sizeof beside, "%u reports in %llu batches, into a full journal; best round %.2f",
            REPORTS, (unsigned long long) batches, best / 1e6);
  snprintf (rounds, sizeof rounds, "in turns, median of %u; bare %.2f M/s, best round %.2f", ROUNDS,
            bench_median (yardstick, ROUNDS) / 1e6, best_bare / 1e6);
  bench_row ("replay at max", bench_median (rate, ROUNDS) / 1e6, "M/s", 0, 1, beside);
  bench_row ("replay at max / bare decode + correlate", bench_median (ratio, ROUNDS), "", 0, 0.7, rounds);
  bench_note ("the same in CPU time of the controller", bench_median (cpu, ROUNDS), "",
              "sockets, journal and acknowledgements included");
  ctl_plan_destroy (&plan);
  ctl_recording_close (&recording);
  char command[128];
  snprintf (command, sizeof command, "rm -r '%s'", directory);
  if (system (command))
    bench_failed = 1;
  return bench_failed;
}
