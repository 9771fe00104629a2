/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs.h"

#include <string.h>

#define COUNT(list) (sizeof (list) / sizeof *(list))

/* Options that several verbs share, word for word. */
#define OPT_ON                                                                                               \
  {                                                                                                          \
    "on", "SEL", "where: service=, vm=, host=, instance=, pid=; comma is and, repeated is or; * is all", 1   \
  }
#define OPT_ROOT                                                                                             \
  {                                                                                                          \
    "root", "SEL", "where tasks may start", 1                                                                \
  }
#define OPT_EMBED                                                                                            \
  {                                                                                                          \
    "embed", "SEL", "where requests that are sent carry the task id", 1                                      \
  }
#define OPT_CAPTURE                                                                                          \
  {                                                                                                          \
    "capture", "SEL", "where the task id of received requests is read", 1                                    \
  }
#define OPT_MATCH                                                                                            \
  {                                                                                                          \
    "match", "PATTERN", "only tasks like 'POST /checkout'; * within a segment, ** any rest", 0               \
  }
#define OPT_MATCH_HEADER                                                                                     \
  {                                                                                                          \
    "match-header", "NAME", "only tasks whose request has a header field of this name", 0                    \
  }
#define OPT_EXCLUDE                                                                                          \
  {                                                                                                          \
    "exclude", "PATTERN", "start no task here; beside /health, /metrics and the like, unless none", 1        \
  }
#define OPT_SAMPLE                                                                                           \
  {                                                                                                          \
    "sample", "1/N", "one task in N", 0                                                                      \
  }
#define OPT_MAX                                                                                              \
  {                                                                                                          \
    "max", "N", "at most N tasks per instance", 0                                                            \
  }
#define OPT_CARRIER                                                                                          \
  {                                                                                                          \
    "carrier", "NAME", "traceparent (the default), or weft: always the private header", 0                    \
  }
#define OPT_EMBED_TO                                                                                         \
  {                                                                                                          \
    "embed-to", "WHERE", "private (the default), any, or networks: 10.0.0.0/8,192.168.7.0/24,fd00::/8", 1    \
  }
#define OPT_JSON                                                                                             \
  {                                                                                                          \
    "json", NULL, "one JSON object a line", 0                                                                \
  }
#define OPT_CSV                                                                                              \
  {                                                                                                          \
    "csv", NULL, "comma-separated values with a header line", 0                                              \
  }
#define OPT_ALL                                                                                              \
  {                                                                                                          \
    "all", NULL, "every process VM that can be joined", 0                                                    \
  }
#define OPT_SERVICE                                                                                          \
  {                                                                                                          \
    "service", "NAME", "call the service so, whatever its environment says", 0                               \
  }

const ctl_option_t ctl_common_options[] = {
    {"controller", "ADDR", "ipc://DIR or tcp://HOST:PORT; else WEFT_CONTROLLER, else the user's own", 0},
    {"keys", "DIR", "keys for a controller on tcp, made by `weft keys`; else WEFT_KEYS", 0},
    {"plain-tcp", NULL, "without keys use tcp also beyond this host: for networks that nobody else reaches",
     0},
    {"verbose", NULL, "say more on stderr", 0},
    {"help", NULL, "this text", 0},
};
const uint32_t ctl_common_option_count = COUNT (ctl_common_options);

static const ctl_option_t profile_options[] = {
    OPT_ALL,      {"for", "DURATION", "length of the window, 10s if not given", 0},
    OPT_ON,       OPT_ROOT,
    OPT_EMBED,    OPT_CAPTURE,
    OPT_MATCH,    OPT_MATCH_HEADER,
    OPT_EXCLUDE,  OPT_SAMPLE,
    OPT_MAX,      OPT_CARRIER,
    OPT_EMBED_TO, OPT_JSON,
};

static const ctl_option_t controller_options[] = {
    {"listen", "ADDR", "ipc://DIR, or tcp://HOST:PORT (that port and the two behind it)", 0},
    {"journal", "DIR", "where reports are kept as they came; else beside the store", 0},
    {"journal-max", "SIZE", "how much the journal keeps at most, such as 2G; 256M if not given", 0},
    {"journal-age", "DURATION", "how long the journal keeps what is in the store; 168h if not given", 0},
    {"store", "FILE", "database of executions; else weft.db in the state directory", 0},
    {"store-max", "SIZE", "how large the store grows, its oldest tasks go beyond; 4G if not given", 0},
    {"store-age", "DURATION", "how long the store keeps a task; 720h if not given", 0},
    {"tasks-max", "N", "tasks in memory at once, fewer near it are taken, whole ones; 1048576 if not given",
     0},
    {"memory-max", "SIZE",
     "what tasks in memory may take, the oldest is written early beyond; 1G if not given", 0},
    {"otlp", "URL", "send each execution on to an OTLP/HTTP collector, such as http://127.0.0.1:4318", 0},
    {"background", NULL, "return when it listens", 0},
    {"idle-exit", "DURATION", "end when no instance and no client was there for so long", 0},
};

static const ctl_option_t run_options[] = {OPT_SERVICE};
static const ctl_option_t attach_options[] = {
    OPT_ALL,
    OPT_SERVICE,
    {"any", NULL, "join also a process that is no known VM: its HTTP, no more", 0},
    OPT_JSON,
};
static const ctl_option_t doctor_options[] = {
    {"any", NULL, "judge a process that is no known VM as `attach --any` would", 0},
    OPT_JSON,
};
static const ctl_option_t detach_options[] = {
    {"all", NULL, "every VM that is joined", 0},
    OPT_JSON,
};
static const ctl_option_t ls_options[] = {
    {"all", NULL, "also instances that have left", 0},
    {"losses", NULL, "what each wrote and what was lost, by cause; with --json by interval", 0},
    OPT_JSON,
    OPT_CSV,
};

static const ctl_option_t instruct_options[] = {
    OPT_ON,
    OPT_ROOT,
    OPT_EMBED,
    OPT_CAPTURE,
    OPT_MATCH,
    OPT_MATCH_HEADER,
    OPT_EXCLUDE,
    OPT_SAMPLE,
    OPT_MAX,
    {"for", "DURATION", "stop by itself after so long", 0},
    {"lease", "DURATION", "how long an instance goes on without a heartbeat (2s to 60s), 5s if not given", 0},
    OPT_CARRIER,
    OPT_EMBED_TO,
    OPT_JSON,
};

static const ctl_option_t stop_options[] = {OPT_JSON};

/* Which executions are meant; see which.h. */
#define OPTS_WHICH                                                                                           \
  {"name", "PATTERN", "only tasks like 'POST /checkout'; * within a segment, ** any rest", 0},               \
      {"service", "NAME", "only tasks that begin in this service", 0},                                       \
      {"slower", "DURATION", "only executions that took longer, such as 100ms", 0},                          \
      {"errors", NULL, "only executions in which something went wrong", 0},                                  \
      {"since", "DURATION", "only what began within so long, such as 10m", 0},                               \
      {"last", "DURATION", "the same as --since", 0},                                                        \
  {                                                                                                          \
    "instruction", "N", "only tasks that instruction N started", 1                                           \
  }

static const ctl_option_t tasks_options[] = {
    {"each", NULL, "one line an execution, not a task name", 0},
    {"edges", NULL, "one line an edge of each task name: who calls whom, how often, how long", 0},
    {"sort", "KEY", "count (the default), total, p50, p99 or errors; with --each: newest or slowest", 0},
    {"limit", "N", "at most N of them", 0},
    OPTS_WHICH,
    OPT_JSON,
    OPT_CSV,
};

static const ctl_option_t top_options[] = {
    {"once", NULL, "one plain table and no more, as where stdout is no terminal", 0},
    {"sort", "KEY", "count (the default), total, p50, p99 or errors", 0},
    {"limit", "N", "at most N of them", 0},
    OPTS_WHICH,
    OPT_JSON,
    OPT_CSV,
};

static const ctl_option_t report_options[] = {
    {"o", "FILE", "where the page goes, written over if it is there; - is stdout", 0},
    {"limit", "N", "list at most N executions, 10000 if not given: the newest", 0},
    OPTS_WHICH,
};

static const ctl_option_t keys_options[] = {
    {"for", "NAME", "also make DIR/NAME, the keys of another host, and admit them", 0},
    OPT_JSON,
};

static const ctl_option_t show_options[] = {
    {"full", NULL, "do not fold similar calls into one line", 0},
    OPT_JSON,
    OPT_CSV,
};

static const ctl_option_t export_options[] = {
    {"format", "NAME",
     "otlp: spans for a tracing backend; perfetto: JSON for ui.perfetto.dev, chrome://tracing", 0},
    {"o", "FILE", "write to FILE; - is stdout", 0},
    {"to", "URL", "with --format otlp: send to an OTLP/HTTP collector, such as http://127.0.0.1:4318", 0},
    {"limit", "N", "at most N executions, the newest; a trace for Perfetto has 100000 at most", 0},
    OPTS_WHICH,
};

static const ctl_option_t record_options[] = {
    {"for", "DURATION", "end by itself after so long", 0},
    {"all", NULL, "begin with the oldest that the controller's journal still has", 0},
    {"journal", "DIR", "copy this journal directory; no controller is asked", 0},
    OPT_JSON,
};

static const ctl_option_t replay_options[] = {
    {"speed", "N|max", "times the pace of the recording, 1 if not given; max: as fast as it is taken", 0},
    {"repeat", "N", "send it N times at once, as N times the instances with N times the tasks", 0},
    {"seed", "N", "draw the ids of the repeats from N: the same ones again", 0},
    OPT_JSON,
};

#define OPTIONS(list) list, COUNT (list)

const ctl_verb_t ctl_verbs[] = {
    {"profile", "[PID…]", "join process VMs, follow their tasks for a while, report, leave",
     "Attaches where it must, broadcasts the instruction, collects, prints where the time of each task goes, "
     "and leaves every VM as it was. Ctrl-C ends the window early, with the report; a second one ends at "
     "once. "
     "Without PID, --all or --on it lists what could be joined.",
     OPTIONS (profile_options), 0, -1, 0, ctl_verb_profile},
    {"controller", "", "run the controller",
     "Verbs that need a controller start one in the background if none listens at a local address. Run it by "
     "hand to choose its places or to keep it.",
     OPTIONS (controller_options), 0, 0, 0, ctl_verb_controller},
    {"run", "[--] COMMAND…", "start a process VM under weft",
     "The command keeps its pid, its streams, its signals and its exit code. What it forks, and what it "
     "starts "
     "that talks, is followed, too.",
     OPTIONS (run_options), 1, -1, 1, ctl_verb_run},
    {"attach", "PID…", "join running process VMs",
     "Joining changes nothing that a task would notice; the VM idles until an instruction holds for it.",
     OPTIONS (attach_options), 0, -1, 0, ctl_verb_attach},
    {"detach", "PID…", "leave process VMs, and verify that they are as before", NULL,
     OPTIONS (detach_options), 0, -1, 0, ctl_verb_detach},
    {"doctor", "[PID…]", "say what joining a process VM would come across, and do nothing",
     "What it is, its namespaces and rights, the call slots that would be hooked, what would be missed, what "
     "it "
     "would print, the verdict with the way in, or what is in the way and what helps. Without PID: this "
     "host, "
     "and every process VM on it. Exits with 0 where each can be joined, with 1 where one cannot.",
     OPTIONS (doctor_options), 0, -1, 0, ctl_verb_doctor},
    {"ls", "", "list instances: what runs where, under which instructions, what was lost", NULL,
     OPTIONS (ls_options), 0, 0, 0, ctl_verb_ls},
    {"instruct", "", "broadcast a long-lived profile instruction",
     "--on gives the place of all three actions; --root, --embed and --capture give one action a place of "
     "its own instead. Without --on only the actions that are named are in force.",
     OPTIONS (instruct_options), 0, 0, 0, ctl_verb_instruct},
    {"stop", "ID…", "end instructions", NULL, OPTIONS (stop_options), 1, -1, 0, ctl_verb_stop},
    {"tasks", "", "list tasks by name, their edges, or each execution", NULL, OPTIONS (tasks_options), 0, 0,
     0, ctl_verb_tasks},
    {"show", "TASK", "show one execution as a waterfall; the first digits of its id are enough", NULL,
     OPTIONS (show_options), 1, 1, 0, ctl_verb_show},
    {"top", "", "task names as they come in: how many a second, how long, how many failed",
     "Of the last minute, or of --since, drawn again every second. q or Ctrl-C ends it.",
     OPTIONS (top_options), 0, 0, 0, ctl_verb_top},
    {"report", "-o FILE.html [TASK]", "write one HTML page: why slow, distributions, service map, waterfalls",
     "Of one task: its waterfall, among all of its name. Else of the tasks that the options name, or of the "
     "last window. "
     "The page is one file and asks no network for anything; names, addresses and times are in it, no "
     "bodies.",
     OPTIONS (report_options), 0, 1, 0, ctl_verb_report},
    {"export", "[TASK…|all]", "hand executions to other tools: OTLP collectors, Perfetto",
     "Which: tasks by the first digits of their ids, those that the options name, or all. In OTLP a task is "
     "a trace of "
     "the same id, a subtask a SERVER span of the same id, a request a CLIENT span of the same id; what is "
     "not known is left out. A collector that is busy is asked again for a minute.",
     OPTIONS (export_options), 0, -1, 0, ctl_verb_export},
    {"record", "FILE", "copy what comes in into a file",
     "Begins now and ends with Ctrl-C. The file can be replayed up to its last whole record, whatever ended "
     "the recording.",
     OPTIONS (record_options), 1, 1, 0, ctl_verb_record},
    {"replay", "FILE", "send a recording to a controller as its instances did",
     "Tasks keep the ids that they were recorded with, in repeats they get fresh ones. The instances are "
     "marked as replayed: nothing is ever asked of them. Lost, repeated and damaged parts of the file are "
     "counted.",
     OPTIONS (replay_options), 1, 1, 0, ctl_verb_replay},
    {"keys", "[DIR]", "make the keys of a controller on tcp, and list them",
     "Makes what is missing in DIR and writes over nothing: controller.key stays on the controller's host; "
     "client.key may give instructions, instance.key may report; clients/ and instances/ hold the public "
     "keys that "
     "are admitted, read at each connection: delete one there to shut it out. For another host --for NAME "
     "makes "
     "DIR/NAME: move it there and name it with --keys or WEFT_KEYS.",
     OPTIONS (keys_options), 0, 1, 0, ctl_verb_keys},
};
const uint32_t ctl_verb_count = COUNT (ctl_verbs);

const ctl_verb_t *ctl_verb_find (const char *name)
{
  for (uint32_t n = 0; n < ctl_verb_count; n++)
    if (strcmp (ctl_verbs[n].name, name) == 0)
      return &ctl_verbs[n];
  return NULL;
}
