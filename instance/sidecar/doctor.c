/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/status.h"
#include "processes.h"
#include "target.h"
#include "way_in/boundary.h"
#include "way_in/check.h"
#include "way_in/hotspot.h"
#include "way_in/maps.h"
#include "way_in/rights.h"

#define WARNS_SINCE   21 /* JDK that prints lines about an agent that is loaded into it */
#define OBJECTS_SHOWN 8
#define LABEL         "%-12s"

/* ---- what is found out -------------------------------------------------------- */
static json_t *namespaces (pid_t pid)
{
  static const char *const kinds[] = {"pid", "mnt", "net", "user", "ipc", "uts", "cgroup"};
  json_t *list = json_array ();
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (car_target_shares (pid, kinds[i]) == 0)
      json_array_append_new (list, json_string (kinds[i]));
  return list;
}

static json_t *signals (const car_target_t *target)
{
  json_t *list = json_array ();
  for (int number = 1; number <= SIGSYS; number++)
    if (target->signals_caught & 1ull << (number - 1) && sigabbrev_np (number)) {
      char name[16];
      snprintf (name, sizeof name, "SIG%s", sigabbrev_np (number));
      json_array_append_new (list, json_string (name));
    }
  return list;
}

static void add_text (json_t *list, const char *text)
{
  json_array_append_new (list, json_string (text));
}

/* What would pass the probe by. */
static json_t *missed (const car_target_t *target, const car_boundary_t *boundary)
{
  json_t *list = json_array ();
  char text[160];
  if (boundary->tls[0]) {
    snprintf (text, sizeof text, "what is sent through TLS (%s %s)", boundary->tls,
              boundary->tls_inside ? "has it linked in" : "is loaded");
    add_text (list, text);
  }
  if (boundary->uring)
    add_text (list, "what goes through its io_uring");
  if (boundary->foreign) {
    snprintf (text, sizeof text, "the calls of %u objects that could not be read", boundary->foreign);
    add_text (list, text);
  }
  if (strcmp (target->vm, "jvm") == 0)
    add_text (list, "the JVM's own I/O");
  return list;
}

/* What the process itself would write somewhere because of us. */
static json_t *prints (const car_target_t *target, car_way_t way)
{
  json_t *list = json_array ();
  if (way == CAR_WAY_HOTSPOT && strtol (target->version, NULL, 10) >= WARNS_SINCE &&
      !car_hotspot_has_flag (target->pid, "-XX:+EnableDynamicAgentLoading"))
    add_text (list, "three WARNING lines about an agent on its standard error");
  return list;
}

static json_t *hooks (const car_boundary_t *boundary)
{
  json_t *list = json_array ();
  for (unsigned i = 0; i < boundary->objects; i++)
    json_array_append_new (list, json_pack ("{s:s, s:i}", "object", boundary->object[i].name, "slots",
                                            (int) boundary->object[i].slots));
  return list;
}

static void add_boundary (json_t *object, const car_target_t *target)
{
  car_boundary_t *boundary = malloc (sizeof *boundary);
  if (boundary && target->readable && car_boundary_read (target->pid, boundary) == 0) {
    json_object_set_new (object, "slots", json_integer (boundary->slots));
    json_object_set_new (object, "objects", hooks (boundary));
    json_object_set_new (object, "missed", missed (target, boundary));
    json_object_set_new (object, "probes", json_integer (boundary->probes));
  } else
    json_object_set_new (object, "slots", json_null ());
  free (boundary);
}

static void add_jvm (json_t *object, const car_target_t *target)
{
  char capability = car_hotspot_capability (target), text[2] = {capability, 0};
  if (strcmp (target->vm, "jvm") != 0)
    return;
  json_object_set_new (object, "attach",
                       json_pack ("{s:s?, s:b, s:b}", "capability", capability ? text : NULL, "disabled",
                                  car_hotspot_has_flag (target->pid, "+DisableAttachMechanism"),
                                  "no_dynamic_agents",
                                  car_hotspot_has_flag (target->pid, "-XX:-EnableDynamicAgentLoading")));
}

static void set_text (json_t *object, const char *key, const char *text)
{
  json_object_set_new (object, key, text ? json_string (text) : json_null ());
}

static const char *libc_of (const car_target_t *target)
{
  car_maps_t maps;
  if (target->musl)
    return "musl";
  if (!target->readable || car_maps_read (target->pid, &maps) < 0)
    return NULL;
  int found = car_maps_next (&maps, CAR_MAP_LIBC, NULL) != NULL;
  car_maps_clear (&maps);
  return found ? "glibc" : "none";
}

static json_t *examine (const car_target_t *target, int any)
{
  char user[64], line[CAR_WHY_MAX + 128];
  car_check_t check;
  car_check (target, any, &check);
  int refused = check.way == CAR_WAY_NONE;
  car_target_user (target->uid, user, sizeof user);
  car_check_line (target, check.why, line, sizeof line);
  json_t *object = json_object ();
  json_object_set_new (object, "pid", json_integer (target->pid));
  set_text (object, "command", target->comm);
  set_text (object, "vm", target->vm);
  set_text (object, "version", target->version);
  set_text (object, "service", check.service[0] ? check.service : target->service);
  set_text (object, "user", user);
  set_text (object, "listens", target->listens);
  set_text (object, "executable", target->exe);
  json_object_set_new (object, "joinable", json_boolean (!refused));
  json_object_set_new (object, "joined", json_boolean (check.way == CAR_WAY_JOINED));
  set_text (object, "way_in", refused ? NULL : check.name);
  set_text (object, "why", refused ? check.why : NULL);
  set_text (object, "error", refused ? line : NULL);
  json_object_set_new (object, "namespaces", namespaces (target->pid));
  json_object_set_new (object, "seccomp", json_integer (target->seccomp));
  json_object_set_new (object, "dumpable", json_boolean (target->dumpable));
  json_object_set_new (object, "tracer", json_integer (target->tracer));
  json_object_set_new (object, "signals", signals (target));
  set_text (object, "libc", libc_of (target));
  add_jvm (object, target);
  add_boundary (object, target);
  json_object_set_new (object, "prints", prints (target, check.way));
  return object;
}

static json_t *examine_host (void)
{
  return json_pack ("{s:b, s:i, s:i}", "capable", car_rights_capable (), "ptrace_scope", car_rights_yama (),
                    "uid", (int) geteuid ());
}

/* ---- how it is said --------------------------------------------------------------- */
static const char *text_of (const json_t *object, const char *key)
{
  const char *text = json_string_value (json_object_get (object, key));
  return text ? text : "";
}

static int is_set (const json_t *object, const char *key)
{
  return json_is_true (json_object_get (object, key));
}

static void print_list (FILE *out, const char *label, const json_t *list, const char *empty)
{
  fprintf (out, LABEL, label);
  for (size_t i = 0; i < json_array_size (list); i++)
    fprintf (out, "%s%s", i ? ", " : "", json_string_value (json_array_get (list, i)));
  fprintf (out, "%s\n", json_array_size (list) ? "" : empty);
}

static void print_identity (FILE *out, const json_t *object)
{
  fprintf (out, LABEL "%lld, %s%s%s (%s), service %s, user %s%s%s\n", "process",
           (long long) json_integer_value (json_object_get (object, "pid")),
           car_target_vm_name (text_of (object, "vm")), *text_of (object, "version") ? " " : "",
           text_of (object, "version"), text_of (object, "command"), text_of (object, "service"),
           text_of (object, "user"), *text_of (object, "listens") ? ", listens on " : "",
           text_of (object, "listens"));
  fprintf (out, LABEL "%s\n", "executable", text_of (object, "executable"));
}

static void print_rights (FILE *out, const json_t *object, const json_t *host)
{
  long long seccomp = json_integer_value (json_object_get (object, "seccomp"));
  long long tracer = json_integer_value (json_object_get (object, "tracer"));
  fprintf (out, LABEL "we are uid %lld %s CAP_SYS_PTRACE; ptrace_scope %lld; it is %sdumpable, %s", "rights",
           (long long) json_integer_value (json_object_get (host, "uid")),
           is_set (host, "capable") ? "with" : "without",
           (long long) json_integer_value (json_object_get (host, "ptrace_scope")),
           is_set (object, "dumpable") ? "" : "not ",
           seccomp ? "filters its system calls (seccomp)" : "has no seccomp filter");
  if (tracer)
    fprintf (out, ", is traced by %lld", tracer);
  fputc ('\n', out);
}

static void print_hooks (FILE *out, const json_t *object)
{
  const json_t *list = json_object_get (object, "objects");
  if (!json_is_integer (json_object_get (object, "slots"))) {
    fprintf (out, LABEL "not known: its memory cannot be read\n", "hooks");
    return;
  }
  fprintf (out, LABEL "%lld call slots in %zu objects:", "hooks",
           (long long) json_integer_value (json_object_get (object, "slots")), json_array_size (list));
  for (size_t i = 0; i < json_array_size (list) && i < OBJECTS_SHOWN; i++) {
    const json_t *one = json_array_get (list, i);
    fprintf (out, "%s %s %lld", i ? "," : "", text_of (one, "object"),
             (long long) json_integer_value (json_object_get (one, "slots")));
  }
  fprintf (out, "%s\n", json_array_size (list) > OBJECTS_SHOWN ? ", …" : "");
  print_list (out, "missed", json_object_get (object, "missed"), "nothing that is known");
}

static void print_attach (FILE *out, const json_t *object)
{
  const json_t *attach = json_object_get (object, "attach");
  if (!attach)
    return;
  const char *capability = text_of (attach, "capability");
  fprintf (out, LABEL "%s; -XX:+DisableAttachMechanism %s, -XX:-EnableDynamicAgentLoading %s\n", "attach",
           *capability == '1'   ? "it says that it takes attachers"
           : *capability == '0' ? "it says that it takes none"
                                : "it does not say whether it takes attachers",
           is_set (attach, "disabled") ? "is given" : "is not given",
           is_set (attach, "no_dynamic_agents") ? "is given" : "is not given");
}

static void print_one (FILE *out, const json_t *object, const json_t *host)
{
  const char *libc = text_of (object, "libc");
  print_identity (out, object);
  print_list (out, "namespaces", json_object_get (object, "namespaces"), "the same as ours");
  print_rights (out, object, host);
  print_list (out, "catches", json_object_get (object, "signals"), "no signal");
  print_attach (out, object);
  fprintf (out, LABEL "%s\n", "libc",
           !*libc                       ? "not known"
           : strcmp (libc, "none") == 0 ? "none: statically linked"
                                        : libc);
  print_hooks (out, object);
  print_list (out, "prints", json_object_get (object, "prints"), "nothing");
  if (is_set (object, "joined"))
    fprintf (out, LABEL "joined already\n", "verdict");
  else if (is_set (object, "joinable"))
    fprintf (out, LABEL "can be joined: %s\n", "verdict", text_of (object, "way_in"));
  else
    fprintf (out, LABEL "%s\n", "verdict", text_of (object, "error"));
}

static void print_json (FILE *out, const json_t *object)
{
  json_dumpf (object, out, JSON_COMPACT);
  fputc ('\n', out);
}

int car_doctor (const car_doctor_t *options, pid_t pid)
{
  car_target_t target;
  int status = car_target_identify (pid, NULL, &target);
  if (status < 0)
    return status;
  json_t *object = examine (&target, options->any), *host = examine_host ();
  if (options->json) {
    json_object_update (object, host);
    print_json (options->out, object);
  } else
    print_one (options->out, object, host);
  status = is_set (object, "joinable") ? 0 : WEFT_E_UNSUPPORTED;
  json_decref (object);
  json_decref (host);
  return status;
}

typedef struct {
  const car_doctor_t *options;
  int status;
} round_t;

static void examine_vm (void *arg, pid_t pid)
{
  round_t *round = arg;
  if (!car_target_is_vm (pid))
    return;
  if (!round->options->json)
    fputc ('\n', round->options->out);
  int one = car_doctor (round->options, pid);
  round->status = one < 0 ? one : round->status;
}

int car_doctor_all (const car_doctor_t *options)
{
  json_t *host = examine_host ();
  round_t round = {.options = options};
  if (options->json)
    print_json (options->out, host);
  else
    fprintf (options->out, LABEL "uid %lld %s CAP_SYS_PTRACE; kernel.yama.ptrace_scope %d\n", "host",
             (long long) geteuid (), is_set (host, "capable") ? "with" : "without", car_rights_yama ());
  car_processes_each (examine_vm, &round);
  json_decref (host);
  return round.status;
}
