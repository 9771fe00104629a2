/* SPDX-License-Identifier: Apache-2.0 */
/* A store of a million tasks of 5 subtasks: tasks by name, one task, the ten newest, as the controller
 * answers them, in CPU time: it waits for nobody. Warm: the better of two. WEFT_BENCH_TASKS draws another number. */
#define BENCH_CLOCK CLOCK_THREAD_CPUTIME_ID
#include "bench.h"

#include <sys/stat.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/ids.h"
#include "../../controller/service/lookups.h"

#define TASKS    1000000u
#define NAMES    40u
#define SUBTASKS 5u
#define SHOWS    50u

static ctl_house_t house;
static weft_ids_t ids;

/* One execution of a chain; what differs between tasks is what a million of them differ in. */
static void fill (ctl_execution_t *execution, ctl_subtask_t *subtasks, uint32_t n)
{
  static char names[NAMES][24];
  uint64_t start_ns = 1700000000000000000ull + n * 1000000ull;
  if (!names[0][0])
    for (unsigned i = 0; i < NAMES; i++)
      snprintf (names[i], sizeof names[i], "GET /orders/%u", i);
  *execution =
      (ctl_execution_t){.subtasks = subtasks, .count = SUBTASKS, .hosts = 1, .name = "", .origin = ""};
  weft_ids_task (&ids, execution->task);
  for (uint32_t i = 0; i < SUBTASKS; i++) {
    subtasks[i] = (ctl_subtask_t){.id = weft_ids_next (&ids),
                                  .request = i ? weft_ids_next (&ids) : 0,
                                  .caller = i ? subtasks[i - 1].id : 0,
                                  .hop = i ? CTL_HOP_PROVEN : CTL_HOP_ROOT,
                                  .answered = 1,
                                  .status = 200,
                                  .instruction = i == 0,
                                  .pid = 100 + i,
                                  .service = "orders",
                                  .vm = "jvm",
                                  .name = names[(n + i) % NAMES],
                                  .start_ns = start_ns + i * 100000,
                                  .end_ns = start_ns + 20000000 - i * 1000000 + n % 5000 * 1000,
                                  .cpu_ns = 700000};
    memset (subtasks[i].instance, (int) i + 1, WEFT_UUID_SIZE);
    subtasks[i].sent_ns = i ? subtasks[i].start_ns - 20000 : 0;
    subtasks[i].answered_ns = i ? subtasks[i].end_ns + 20000 : 0;
  }
}

static void fill_store (uint32_t tasks, uint8_t (*kept)[WEFT_TASK_ID_SIZE])
{
  ctl_subtask_t subtasks[SUBTASKS];
  ctl_execution_t execution;
  for (uint32_t n = 0; n < tasks; n++) {
    fill (&execution, subtasks, n);
    if (n % (tasks / SHOWS) == 0 && n / (tasks / SHOWS) < SHOWS)
      memcpy (kept[n / (tasks / SHOWS)], execution.task, WEFT_TASK_ID_SIZE);
    if (ctl_execution_settle (&execution) || ctl_store_put (house.store, &execution))
      abort ();
  }
  if (ctl_store_commit (house.store))
    abort ();
}

typedef int (lookup_fn) (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);

/* Milliseconds of the better of two. */
static double ask (lookup_fn *fn, json_t *request, uint64_t *ret_executions)
{
  double best = 1e18;
  for (int round = 0; round < 2; round++) {
    ctl_reply_t reply = {.body = json_object ()};
    uint64_t start = bench_now_ns ();
    if (fn (&house, request, &reply))
      bench_failed = 1;
    double ms = (double) (bench_now_ns () - start) / 1e6;
    best = ms < best ? ms : best;
    const json_t *analysis = json_object_get (reply.body, "analysis");
    *ret_executions = analysis ? (uint64_t) json_integer_value (json_object_get (analysis, "executions"))
                               : reply.frame_count;
    ctl_reply_clear (&reply);
  }
  json_decref (request);
  return best;
}

static double show_each (uint8_t (*kept)[WEFT_TASK_ID_SIZE])
{
  double most = 0;
  uint64_t count;
  for (unsigned n = 0; n < SHOWS; n++) {
    char hex[2 * WEFT_TASK_ID_SIZE + 1] = "";
    weft_hex_put (hex, kept[n], WEFT_TASK_ID_SIZE);
    hex[12] = 0; /* as people type them */
    double ms = ask (ctl_lookup_show, json_pack ("{s:s}", "task", hex), &count);
    bench_equal ("tasks shown", count, 1);
    most = ms > most ? ms : most;
  }
  return most;
}

int main (void)
{
  char directory[] = "/tmp/weft-bench-XXXXXX", path[64], why[256], command[64], beside[128];
  uint8_t kept[SHOWS][WEFT_TASK_ID_SIZE];
  const char *given = getenv ("WEFT_BENCH_TASKS");
  uint32_t tasks = given ? (uint32_t) strtoul (given, NULL, 10) : TASKS;
  uint64_t count;
  struct stat st;
  if (!mkdtemp (directory))
    return 1;
  snprintf (path, sizeof path, "%s/bench.db", directory);
  house.instances = ctl_instances_new ();
  house.correlate = ctl_correlate_new (house.instances, 0);
  if (ctl_store_open (path, NULL, NULL, &house.store, why, sizeof why)) {
    fprintf (stderr, "bench_store: %s\n", why);
    return 1;
  }
  weft_ids_seed (&ids);
  uint64_t start = bench_now_ns ();
  fill_store (tasks, kept);
  double put_us = (double) (bench_now_ns () - start) / 1e3 / tasks;
  stat (path, &st);
  snprintf (beside, sizeof beside, "%u tasks, %.0f bytes each, put in %.1f us", tasks,
            (double) st.st_size / tasks, put_us);
  bench_row ("tasks by name", ask (ctl_lookup_tasks, json_object (), &count), "ms", 1, 1000, beside);
  bench_equal ("executions counted", count, tasks);
  bench_row ("show a task, the slowest of 50", show_each (kept), "ms", 1, 20, "by 12 digits");
  bench_row ("the ten newest", ask (ctl_lookup_each, json_pack ("{s:i}", "limit", 10), &count), "ms", 1, 1000,
             "");
  bench_equal ("tasks listed", count, 10);
  ctl_store_destroy (&house.store);
  ctl_correlate_destroy (&house.correlate);
  ctl_instances_destroy (&house.instances);
  snprintf (command, sizeof command, "rm -r '%s'", directory);
  if (system (command))
    bench_failed = 1;
  return bench_failed;
}
