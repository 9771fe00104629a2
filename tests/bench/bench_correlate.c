/* SPDX-License-Identifier: Apache-2.0 */
/* What taking a report costs, from a thousand to five million open tasks, each in
 * turns with a thousand; beside a pointer chase over memory of the same size in the
 * same run; what an open task weighs; and what the store adds.
 *
 * Tasks of 5 subtasks: 9 reports, each of another instance's batch. Step by step
 * through all open tasks in scattered order: every report but the first meets a
 * task that nobody has looked at for as long as there are tasks. */
#define BENCH_CLOCK CLOCK_THREAD_CPUTIME_ID
#include "bench.h"

#include <sys/mman.h>
#include <unistd.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../../controller/service/sink.h"
#include "../../controller/task/reserve.h"

#define SERVICES     5u
#define PER_TASK     9u
#define LEAST_RUNS   4000000u /* reports of one row */
#define WINDOW       50000u
#define TURNS        160u /* windows of a row that have one of the few beside them, at most */
#define FEW          1000u
#define ROW_TASKS    1000000u /* of the rows that are judged beside the chase */
#define STORE_TASKS  50000u
#define STORE_ROUNDS 12u
#define CHASE_LOADS  4000000u

static const uint32_t sizes[] = {FEW, 10000, 100000, ROW_TASKS, 5000000};
#define SIZES (sizeof sizes / sizeof *sizes)

static ctl_instances_t *instances;
static weft_batch_writer_t *writer;
static uint8_t frame[WEFT_BATCH_MAX];
static uint64_t number;

static uint64_t mixed (uint64_t value)
{
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ value >> 27) * 0x94d049bb133111ebull;
  return value ^ value >> 31;
}

/* The report of one step of one task: captures at even steps, the embed that led to the next between. */
static void make_report (uint64_t task, uint32_t step, weft_report_t *report)
{
  static const char *const names[SERVICES] = {"POST /checkout", "GET /orders/{id}", "GET /quote/{id}",
                                              "POST /pay", "GET /stock"};
  uint64_t low = mixed (task * 2 + 1), high = mixed (low + 77);
  memset (report, 0, sizeof *report);
  memcpy (report->task, &low, 8);
  memcpy (report->task + 8, &high, 8);
  uint32_t depth = (step + 1) / 2;
  report->kind = step % 2 ? WEFT_REPORT_EMBED : WEFT_REPORT_CAPTURE;
  report->flags = step ? 0 : WEFT_REPORT_ROOT;
  report->instruction = step == 0;
  report->subtask = mixed (low + (step % 2 ? depth - 1 : depth));
  report->request = depth ? mixed (high + depth) : 0;
  report->status = 200;
  report->name = names[depth];
  report->name_size = (uint16_t) strlen (names[depth]);
  report->start_ns = 1000000000 + task % 1000000 * 1000 + depth * 2000 - step % 2 * 500;
  report->end_ns = report->start_ns + 50000000 - depth * 9000000 + step % 2 * 1000;
  report->cpu_ns = step % 2 ? WEFT_NS_NONE : 700000;
  report->local.family = report->peer.family = 4;
  memset (report->local.ip + 10, 0xff, 2);
  memset (report->peer.ip + 10, 0xff, 2);
  report->local.port = report->peer.port = (uint16_t) (8000 + depth);
}

/* A batch of `step` of the tasks that stand at from.. in the scattered order; returns how many. */
static uint32_t make_frame (uint32_t round, uint32_t tasks, uint32_t from, uint32_t step, size_t *ret_size)
{
  weft_batch_head_t head = {.major = 1, .number = ++number, .anchor = {.real_ns = 1}};
  weft_report_t report;
  uint32_t at = from;
  memset (head.instance, (int) (1 + step / 2), WEFT_UUID_SIZE);
  if (weft_batch_writer_begin (writer, frame, sizeof frame, &head))
    abort ();
  for (; at < tasks && at - from < WEFT_BATCH_REPORTS_MAX; at++) {
    /* 2654435761 is prime and larger than any number of tasks: each comes once */
    make_report ((uint64_t) round * tasks + (uint64_t) at * 2654435761u % tasks, step, &report);
    if (weft_batch_writer_add (writer, &report))
      break;
  }
  if (weft_batch_writer_finish (writer, &head, ret_size))
    abort ();
  return at - from;
}

typedef struct {
  uint64_t ns, reports;
} sum_t;

static void take_frame (ctl_correlate_t *correlate, size_t size, sum_t *sum)
{
  uint32_t taken = 0;
  uint64_t start = bench_now_ns ();
  if (ctl_correlate_batch (correlate, frame, size, &taken))
    bench_failed = 1;
  sum->ns += bench_now_ns () - start;
  sum->reports += taken;
}

static void take_step (ctl_correlate_t *correlate, uint32_t round, uint32_t tasks, uint32_t step, sum_t *sum)
{
  for (uint32_t at = 0; at < tasks;) {
    size_t size;
    at += make_frame (round, tasks, at, step, &size);
    take_frame (correlate, size, sum);
  }
}

static int drop (ctl_execution_t **execution_p, void *arg)
{
  return 0;
}

/* One is left: with none, the memory would go back to the kernel, and be new again in the next round. */
static int drop_all_but_one (ctl_execution_t **execution_p, void *arg)
{
  uint32_t *left = arg;
  return --*left == 0 ? WEFT_E_FULL : 0;
}

static uint64_t resident (void)
{
  char line[128] = "";
  FILE *file = fopen ("/proc/self/statm", "re");
  if (!file || !fgets (line, sizeof line, file))
    abort ();
  fclose (file);
  char *second = strchr (line, ' ');
  return (second ? strtoull (second, NULL, 10) : 0) * (uint64_t) sysconf (_SC_PAGESIZE);
}

/* ns of a load that must wait for the one before, over `size` bytes in one random circle. */
static double chase (size_t size)
{
  uint64_t count = size / 64, at = 0;
  uint64_t *memory = ctl_reserve (size);
  if (!memory)
    abort ();
  for (uint64_t i = 0; i < count; i++)
    memory[i * 8] = i;
  for (uint64_t i = count - 1; i > 0; i--) { /* Sattolo: one circle */
    uint64_t k = mixed (i * 3) % i, value = memory[i * 8];
    memory[i * 8] = memory[k * 8];
    memory[k * 8] = value;
  }
  uint64_t start = bench_now_ns ();
  for (uint64_t i = 0; i < CHASE_LOADS; i++)
    at = memory[at * 8];
  double ns = (double) (bench_now_ns () - start) / CHASE_LOADS;
  BENCH_KEEP (at);
  munmap (memory, size);
  return ns;
}

/* Tasks that are reported on step by step, all of them, then settled, and again. */
typedef struct {
  ctl_correlate_t *correlate;
  uint32_t tasks, round, step, at;
} load_t;

static void settle (load_t *load)
{
  uint32_t left = load->tasks + (load->round > 0);
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (load->correlate, &stats);
  bench_equal ("open tasks", stats.open_tasks, left);
  ctl_correlate_settle (load->correlate, 0, 1, drop_all_but_one, &left);
}

/* Takes one batch; 0: the round is over. What begins a task is not counted. */
static int take_batch (load_t *load, sum_t *sum)
{
  size_t size;
  sum_t begun = {0};
  load->at += make_frame (load->round, load->tasks, load->at, load->step, &size);
  take_frame (load->correlate, size, load->step ? sum : &begun);
  if (load->at < load->tasks)
    return 1;
  load->at = 0;
  return ++load->step < PER_TASK;
}

static void next_round (load_t *load)
{
  settle (load);
  load->round++;
  load->step = 0;
}

/* The first round is not measured: in it the kernel gives memory. *ret_bytes: of a task. */
static load_t load_new (uint32_t tasks, double *ret_bytes)
{
  load_t load = {.tasks = tasks};
  sum_t sum = {0};
  uint64_t before = resident ();
  load.correlate = ctl_correlate_new_within (instances, tasks + 100, WEFT_OPEN_BYTES_MOST / 16);
  if (!load.correlate)
    abort ();
  while (take_batch (&load, &sum))
    ;
  *ret_bytes = (double) (resident () - before) / tasks;
  next_round (&load);
  return load;
}

/* ns of a report, over so many of them that it can be measured. */
static double window (load_t *load)
{
  sum_t sum = {0};
  while (sum.reports < WINDOW)
    if (!take_batch (load, &sum))
      next_round (load);
  return (double) sum.ns / (double) sum.reports;
}

typedef struct {
  double ns[2]; /* of a report, the best window: of those with even numbers, with odd ones */
  double few;   /* of a report of few tasks, in turns with them */
  double usual; /* median of what the two are to each other */
  double bytes; /* of a task */
} cost_t;

static double least_of (double a, double b)
{
  return a < b ? a : b;
}

static cost_t take_all (uint32_t tasks)
{
  double unused, ratio[TURNS];
  cost_t cost = {.ns = {1e18, 1e18}, .few = 1e18};
  load_t few = load_new (FEW, &unused), load = load_new (tasks, &cost.bytes);
  /* of very many the second round only: settling them takes longer than what is measured */
  uint32_t windows =
      (tasks < ROW_TASKS ? LEAST_RUNS : tasks * (PER_TASK - 1)) / (WINDOW + WEFT_BATCH_REPORTS_MAX);
  uint32_t every = windows / TURNS + 1, turns = 0;
  for (uint32_t n = 0; n < windows; n++) {
    double ns = window (&load);
    cost.ns[n % 2] = least_of (cost.ns[n % 2], ns);
    if (n % every)
      continue;
    double beside = window (&few);
    cost.few = least_of (cost.few, beside);
    ratio[turns++] = ns / beside;
  }
  cost.usual = bench_median (ratio, turns);
  ctl_correlate_destroy (&load.correlate);
  ctl_correlate_destroy (&few.correlate);
  return cost;
}

/* ---- the store -------------------------------------------------------------- */
typedef struct {
  double correlate_ns, hand_out_ns, store_ns; /* of a task */
} stored_t;

static void take_tasks (ctl_correlate_t *correlate, uint32_t round, sum_t *sum)
{
  for (uint32_t step = 0; step < PER_TASK; step++)
    take_step (correlate, round, STORE_TASKS, step, sum);
}

static double with_to_without (const stored_t *cost)
{
  return (cost->correlate_ns + cost->hand_out_ns) / (cost->correlate_ns + cost->store_ns);
}

/* The best rounds, and what the two halves of the rounds are to each other (*ret_again). */
static stored_t take_and_store (const char *directory, double *ret_again)
{
  char path[128], why[256];
  stored_t half[2] = {{1e18, 1e18, 1e18}, {1e18, 1e18, 1e18}};
  snprintf (path, sizeof path, "%s/bench.db", directory);
  ctl_store_t *store = NULL;
  if (ctl_store_open (path, NULL, NULL, &store, why, sizeof why)) {
    fprintf (stderr, "bench_correlate: %s\n", why);
    exit (1);
  }
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  ctl_sink_t *sink = ctl_sink_new (correlate, store);
  for (uint32_t round = 0; round < 2 * STORE_ROUNDS; round++) {
    sum_t sum = {0};
    take_tasks (correlate, round, &sum);
    sync (); /* what the rounds before wrote: the disk's turn would be measured in some of these */
    uint64_t start = bench_now_ns ();
    if (round % 2 == 0)
      ctl_correlate_settle (correlate, 0, 1, drop, NULL);
    else if (ctl_sink_run (sink, 0, 1))
      bench_failed = 1;
    double ns = (double) (bench_now_ns () - start) / STORE_TASKS, each = (double) sum.ns / STORE_TASKS;
    stored_t *best = &half[round / 2 % 2];
    double *into = round % 2 ? &best->store_ns : &best->hand_out_ns;
    best->correlate_ns = least_of (best->correlate_ns, each);
    *into = least_of (*into, ns);
  }
  ctl_sink_destroy (&sink);
  ctl_correlate_destroy (&correlate);
  ctl_store_destroy (&store);
  *ret_again = with_to_without (&half[0]) / with_to_without (&half[1]);
  return (stored_t){least_of (half[0].correlate_ns, half[1].correlate_ns),
                    least_of (half[0].hand_out_ns, half[1].hand_out_ns),
                    least_of (half[0].store_ns, half[1].store_ns)};
}

static void store_rows (void)
{
  char directory[] = "/tmp/weft-bench-XXXXXX", command[64], beside[160];
  double again;
  if (!mkdtemp (directory))
    exit (1);
  stored_t cost = take_and_store (directory, &again);
  snprintf (beside, sizeof beside,
            "a task of 9 reports: taken %.0f ns, handed out %.0f ns, stored %.0f ns more; A/A %.2f",
            cost.correlate_ns, cost.hand_out_ns, cost.store_ns - cost.hand_out_ns, again);
  bench_row ("with store / decode + correlate", with_to_without (&cost), "x", 0, 0.5, beside);
  snprintf (command, sizeof command, "rm -r '%s'", directory);
  if (system (command))
    bench_failed = 1;
}

/* What it costs beside few tasks. */
static double cost_row (uint32_t tasks)
{
  char what[64], beside[160];
  cost_t cost = take_all (tasks);
  double ns = least_of (cost.ns[0], cost.ns[1]);
  snprintf (what, sizeof what, "correlate a report, %u tasks open", tasks);
  snprintf (beside, sizeof beside, "of %u in turns %.1f, x %.2f, median %.2f; A/A %.2f", FEW, cost.few,
            ns / cost.few, cost.usual, cost.ns[0] / cost.ns[1]);
  bench_note (what, ns, "ns", beside);
  if (tasks < ROW_TASKS)
    return ns / cost.few;
  double load = chase ((size_t) (cost.bytes * tasks));
  snprintf (beside, sizeof beside, "a dependent load in %.0f MiB %.1f ns", cost.bytes * tasks / 1048576,
            load);
  bench_row ("the same", ns / load, "loads", 1, 1.2, beside);
  snprintf (what, sizeof what, "an open task of 5 subtasks, of %u", tasks);
  bench_row (what, cost.bytes, "bytes", 1, 600, "resident, all of the correlator");
  return ns / cost.few;
}

int main (int argc, char **argv)
{
  char beside[160];
  double least = 1e18, most = 0;
  uint32_t limit = argc > 1 ? (uint32_t) strtoul (argv[1], NULL, 10) : UINT32_MAX;
  instances = ctl_instances_new ();
  writer = weft_batch_writer_new ();
  if (!instances || !writer)
    return 1;
  for (unsigned i = 0; i < SIZES && sizes[i] <= limit; i++) {
    double cost = cost_row (sizes[i]);
    least = least_of (least, cost);
    most = cost > most ? cost : most;
  }
  snprintf (beside, sizeof beside, "%.2f to %.2f of what it is with %u", least, most, FEW);
  bench_row ("cost a report: apart from the middle", 100 * (most - least) / (most + least), "%", 1, 20,
             beside);
  store_rows ();
  weft_batch_writer_destroy (&writer);
  ctl_instances_destroy (&instances);
  return bench_failed;
}
