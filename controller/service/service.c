/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/log.h"
#include "../../common/status.h"
#include "audit.h"
#include "background.h"
#include "checkpoint.h"
#include "claims.h"
#include "control.h"
#include "exporter.h"
#include "guard.h"
#include "intake.h"
#include "overload.h"
#include "place.h"
#include "recovery.h"
#include "sink.h"
#include "sums.h"

#define CARRY_TELL_MS 2000

typedef struct {
  ctl_service_options_t options;
  char listen[WEFT_ENDPOINT_MAX], store_path[512], journal_dir[520];
  int listen_lock_fd, journal_lock_fd, signal_fd;
  ctl_house_t house;
  ctl_control_t *control;
  ctl_collector_t *collector;                             /* until the exporter takes it */
  uint64_t heartbeat_ns, settle_ns, complain_ns, used_ns; /* next, next, next, last; CLOCK_MONOTONIC */
  uint64_t strangers_ns, collector_ns;                    /* next complaint of them */
  uint64_t carry_told_ns;                                 /* last */
  uint64_t heartbeat_seq;
  ctl_checkpoint_t checkpoint;
  ctl_journal_position_t summed; /* as saved */
  uint64_t sums_ns;              /* next */
  ctl_overload_t overload;
  ctl_intake_stats_t told;       /* what the last complaint knew */
  uint64_t audit_lost;           /* and of the audit */
  ctl_exporter_stats_t exported; /* and of the exporter */
  int store_failing;
  int untidy, retiring; /* tasks go: more at once, any so far */
  int unsettled;        /* the last run of the sink left something */
  int ending;
} service_t;

/* ---- start -------------------------------------------------------------- */

static int find_places (service_t *self)
{
  const char *given = self->options.listen;
  int rc = given ? 0 : weft_endpoint_default (self->listen);
  if (given && (size_t) snprintf (self->listen, sizeof self->listen, "%s", given) >= sizeof self->listen)
    rc = WEFT_E_RANGE;
  char why[300] = "", dir[400] = "";
  if (rc == 0)
    rc = ctl_place_check (self->listen, self->options.keys || self->options.plain_tcp, why, sizeof why);
  if (rc < 0) {
    weft_log_error ("cannot listen at %s: %s", given ? given : self->listen,
                    *why ? why : weft_status_text (rc));
    return rc;
  }
  if (!self->options.store && (rc = ctl_place_state_dir (dir, sizeof dir)) < 0) {
    weft_log_error ("no place for the store: neither XDG_STATE_HOME nor HOME says where; use --store FILE");
    return rc;
  }
  if (self->options.store)
    rc = (size_t) snprintf (self->store_path, sizeof self->store_path, "%s", self->options.store) <
                 sizeof self->store_path
             ? 0
             : WEFT_E_RANGE;
  else
    snprintf (self->store_path, sizeof self->store_path, "%s/weft.db", dir);
  if (self->options.journal)
    rc = (size_t) snprintf (self->journal_dir, sizeof self->journal_dir, "%s", self->options.journal) <
                 sizeof self->journal_dir
             ? rc
             : WEFT_E_RANGE;
  else
    snprintf (self->journal_dir, sizeof self->journal_dir, "%s.journal", self->store_path);
  if (rc < 0)
    weft_log_error ("a path is too long; choose a shorter --store or --journal");
  return rc;
}

/* P1, P2: nobody else listens here, nobody else writes there. */
static int claim_places (service_t *self)
{
  char why[600] = "";
  long pid = 0;
  const char *dir = ctl_place_ipc_dir (self->listen);
  if (dir) {
    int rc = ctl_place_claim (dir, CTL_PLACE_PRIVATE, &self->listen_lock_fd, &pid, why, sizeof why);
    if (rc < 0) {
      weft_log_error ("cannot listen at %s: %s%s", self->listen, why,
                      rc == WEFT_E_BUSY ? "; use it, or choose another --listen" : "");
      return rc;
    }
    ctl_place_sweep (dir); /* of one that was killed */
  }
  int rc =
      ctl_place_claim (self->journal_dir, CTL_PLACE_PARENTS, &self->journal_lock_fd, &pid, why, sizeof why);
  if (rc < 0)
    weft_log_error ("cannot use the journal %s: %s%s", self->journal_dir, why,
                    rc == WEFT_E_BUSY ? "; use it, or choose another --store" : "");
  return rc;
}

/* Who may connect, and where it is written down what they do. */
static int make_guard (service_t *self)
{
  char why[1200] = "";
  int rc = ctl_guard_new (self->listen, self->options.keys, &self->house.guard, why, sizeof why);
  if (rc == 0)
    rc = ctl_audit_open (self->store_path, &self->house.audit, why, sizeof why);
  if (rc < 0)
    weft_log_error ("%s", *why ? why : weft_status_text (rc));
  else if (!self->options.keys && !ctl_place_ipc_dir (self->listen) &&
           !weft_endpoint_is_loopback (self->listen))
    weft_log_error (
        "WARNING: %s is plain tcp: whoever reaches it can instruct every VM and read every report; make "
        "keys with `weft keys DIR` and give --keys DIR",
        self->listen);
  return rc;
}

/* A store of an older weft is carried over before anything else: every other second it is said how far. */
static void tell_carried (uint64_t done, uint64_t of, void *arg)
{
  service_t *self = arg;
  uint64_t now_ns = weft_mono_ns ();
  if (now_ns < self->carry_told_ns + CARRY_TELL_MS * WEFT_NS_PER_MS)
    return;
  if (self->carry_told_ns)
    weft_log_error ("carrying the store over from an older weft: %llu of %llu tasks",
                    (unsigned long long) done, (unsigned long long) of);
  self->carry_told_ns = now_ns;
}

static int make_house (service_t *self)
{
  ctl_house_t *house = &self->house;
  char why[600] = "";
  int rc = ctl_store_open (self->store_path, tell_carried, self, &house->store, why, sizeof why);
  if (rc < 0) {
    weft_log_error ("%s", why);
    return rc;
  }
  ctl_store_retain (house->store, self->options.store_max, self->options.store_age_ms);
  uint64_t epoch = weft_clock_ns (CLOCK_REALTIME) / WEFT_NS_PER_MS; /* I1 */
  house->instances = ctl_instances_new ();
  house->instructions = ctl_instructions_new (epoch, ctl_store_last_instruction (house->store));
  if (house->instances)
    house->correlate = ctl_correlate_new_within (house->instances, (uint32_t) self->options.tasks_max,
                                                 self->options.memory_max);
  house->sink = house->correlate ? ctl_sink_new (house->correlate, house->store) : NULL;
  ctl_intake_links_t links = {.instances = house->instances,
                              .instructions = house->instructions,
                              .correlate = house->correlate,
                              .sink = house->sink};
  house->intake = ctl_intake_new (&links);
  house->claims = ctl_claims_new ();
  if (!house->instances || !house->instructions || !house->correlate || !house->sink || !house->intake ||
      !house->claims) {
    weft_log_error ("cannot start: %s", weft_status_text (WEFT_E_NOMEM));
    return WEFT_E_NOMEM;
  }
  return 0;
}

static int find_collector (service_t *self)
{
  char why[200] = "";
  if (!self->options.otlp)
    return 0;
  int rc = ctl_collector_new (self->options.otlp, &self->collector, why, sizeof why);
  if (rc < 0)
    weft_log_error ("cannot use URL '%s' for --otlp: %s", self->options.otlp,
                    *why ? why : weft_status_text (rc));
  return rc;
}

/* Before anything is recovered: what goes to the store from there goes on, too. */
static int open_exporter (service_t *self)
{
  if (!self->collector)
    return 0;
  int rc = ctl_exporter_new (&self->collector, self->house.instances, &self->house.exporter);
  if (rc < 0)
    weft_log_error ("cannot start: %s", weft_status_text (rc));
  else
    ctl_sink_onward (self->house.sink, ctl_exporter_put, self->house.exporter);
  return rc;
}

static int open_journal (service_t *self)
{
  ctl_recovery_t recovery = {0};
  int rc = ctl_recovery_run (self->journal_dir, self->house.intake, self->house.instances, &recovery);
  if (recovery.damaged)
    weft_log_error (
        "journal %s: segment %u is damaged at byte %llu; what stands behind it there is lost, the "
        "rest was read",
        self->journal_dir, recovery.first_damage.segment, (unsigned long long) recovery.first_damage.offset);
  char why[600] = "";
  if (rc == 0)
    rc = ctl_journal_open (self->journal_dir, 0, &self->house.journal, why, sizeof why);
  if (rc == WEFT_E_FULL)
    weft_log_error ("store %s: no room for what the journal %s holds; make room on the disk, nothing is lost",
                    self->store_path, self->journal_dir);
  else if (rc < 0)
    weft_log_error ("cannot open the journal %s: %s", self->journal_dir, *why ? why : weft_status_text (rc));
  if (rc < 0)
    return rc;
  self->checkpoint.dir = self->journal_dir;
  self->checkpoint.instances = self->house.instances;
  ctl_journal_retain (self->house.journal, self->options.journal_max, self->options.journal_age_ms);
  ctl_instructions_skip (self->house.instructions, ctl_journal_last_number (self->house.journal)); /* I1 */
  self->told = *ctl_intake_stats (self->house.intake);
  return 0;
}

static int open_sockets (service_t *self)
{
  ctl_house_t *house = &self->house;
  char why[600] = "";
  int rc = ctl_broadcast_new (self->listen, house->guard, &house->broadcast, why, sizeof why);
  if (rc == 0) {
    ctl_intake_links_t links = {house->broadcast,    house->instances, house->instructions, house->correlate,
                                self->house.journal, house->sink,      house->audit};
    ctl_intake_link (house->intake, &links);
    rc = ctl_intake_listen (house->intake, why, sizeof why);
  }
  if (rc == 0)
    rc = ctl_control_new (house->broadcast, house, &self->control, why, sizeof why);
  if (rc < 0)
    weft_log_error ("cannot listen at %s: %s%s", self->listen, *why ? why : weft_status_text (rc),
                    rc == WEFT_E_BUSY ? "; choose another --listen" : "");
  return rc;
}

/* Blocked before any thread of ZeroMQ is born, so that none of them takes a signal. */
static int take_signals (service_t *self)
{
  sigset_t set;
  sigemptyset (&set);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  sigprocmask (SIG_BLOCK, &set, NULL);
  signal (SIGPIPE, SIG_IGN);
  signal (SIGHUP, SIG_IGN);
  signal (SIGXFSZ, SIG_IGN); /* a file size limit is a full disk, no death */
  self->signal_fd = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return self->signal_fd < 0 ? WEFT_E_IO : 0;
}

/* Connections are descriptors: strangers must not use up those of the journal and the store. */
static void raise_descriptors (void)
{
  struct rlimit limit;
  if (getrlimit (RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= WEFT_DESCRIPTORS_MAX)
    return;
  limit.rlim_cur = limit.rlim_max < WEFT_DESCRIPTORS_MAX ? limit.rlim_max : WEFT_DESCRIPTORS_MAX;
  setrlimit (RLIMIT_NOFILE, &limit);
}

static int start (service_t *self)
{
  umask (077); /* sockets and files alike */
  raise_descriptors ();
  int rc = take_signals (self);
  if (rc == 0)
    rc = find_places (self); /* V1 */
  if (rc == 0)
    rc = find_collector (self);
  if (rc == 0)
    rc = claim_places (self);
  if (rc == 0)
    rc = make_house (self);
  if (rc == 0)
    rc = make_guard (self);
  if (rc == 0)
    rc = open_exporter (self);
  if (rc == 0)
    rc = open_journal (self);
  if (rc == 0)
    rc = open_sockets (self);
  return rc;
}

/* ---- the loop ----------------------------------------------------------- */

static void heartbeat (service_t *self)
{
  weft_bus_message_t beat = {.kind = WEFT_BUS_HEARTBEAT,
                             .epoch = ctl_instructions_epoch (self->house.instructions),
                             .seq = ++self->heartbeat_seq};
  ctl_broadcast_send (self->house.broadcast, WEFT_TOPIC_ALL, &beat);
}

/* Whoever says nothing is silent, then gone; whoever speaks again is there. */
static uint32_t watch_presence (service_t *self, uint64_t now_ns)
{
  uint32_t present = 0;
  for (uint32_t n = 0; n < ctl_instances_count (self->house.instances); n++) {
    ctl_instance_t *instance = ctl_instances_at (self->house.instances, n);
    uint64_t quiet_ms = now_ns > instance->seen_ns ? (now_ns - instance->seen_ns) / WEFT_NS_PER_MS : 0;
    if (instance->presence == CTL_INSTANCE_LEFT)
      continue;
    if (quiet_ms >= WEFT_SILENT_MS)
      ctl_instances_silent (instance);
    if (quiet_ms >= WEFT_LOST_MS)
      instance->presence = CTL_INSTANCE_LEFT;
    else
      instance->presence = quiet_ms >= WEFT_SILENT_MS ? CTL_INSTANCE_SILENT : CTL_INSTANCE_PRESENT;
    present += instance->presence == CTL_INSTANCE_PRESENT;
  }
  return present;
}

static void shed (service_t *self, const ctl_correlate_stats_t *stats, uint64_t now_ns)
{
  ctl_shed_t *shedder = ctl_correlate_shedder (self->house.correlate);
  uint32_t before = ctl_shed_threshold (shedder);
  uint64_t deferred = ctl_intake_stats (self->house.intake)->deferred;
  uint32_t now =
      ctl_overload_look (&self->overload, shedder, stats->open_tasks, stats->open_max, deferred, now_ns);
  if (before == CTL_SHED_NOTHING && now < before)
    weft_log_error (
        "overloaded: tasks are shed, whole ones; `weft ls --losses` counts them, --sample or fewer "
        "instances help");
  if (before < CTL_SHED_NOTHING && now == CTL_SHED_NOTHING)
    weft_log_error ("no longer overloaded: every task is taken again");
}

/* Sums that cannot be saved are added up from the journal, as far as it goes. */
static void save_sums (service_t *self, uint64_t now_ns)
{
  ctl_journal_position_t here;
  ctl_journal_position (self->house.journal, &here);
  int begun = here.segment != self->summed.segment;
  if (!begun && (now_ns < self->sums_ns || here.offset == self->summed.offset))
    return;
  self->sums_ns = now_ns + WEFT_SUMS_EVERY_MS * WEFT_NS_PER_MS;
  ctl_sums_t *sums = ctl_sums_take (self->house.instances);
  if (ctl_sums_save (self->journal_dir, CTL_SUMS_LAST, sums, self->house.instances, &here) == 0)
    self->summed = here;
  free (sums);
}

static int store_settled (service_t *self, uint64_t now_ns, int all)
{
  int rc = ctl_sink_run (self->house.sink, now_ns, all);
  if (rc < 0 && !self->store_failing)
    weft_log_error ("store %s: %s: %s; nothing is lost yet, %s", self->store_path, weft_status_text (rc),
                    ctl_store_why (self->house.store), all ? "the journal keeps it" : "trying again");
  if (rc >= 0 && self->store_failing)
    weft_log_error ("store %s: works again", self->store_path);
  self->store_failing = rc < 0;
  self->unsettled = rc > 0;
  return rc;
}

/* The oldest of a store that is too large or too old; said once, counted always. */
static void tidy_store (service_t *self)
{
  int rc = ctl_store_tidy (self->house.store, weft_clock_ns (CLOCK_REALTIME));
  self->untidy = rc > 0;
  if (rc > 0 && !self->retiring)
    weft_log_error ("store %s: its oldest tasks go, it holds what --store-max and --store-age allow; "
                    "raise these, or `weft record` what comes in",
                    self->store_path);
  self->retiring |= rc > 0;
}

static void settle (service_t *self, uint64_t now_ns, int all)
{
  int rc = store_settled (self, now_ns, all);
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (self->house.correlate, &stats);
  shed (self, &stats, now_ns);
  tidy_store (self);
  if (rc >= 0)
    ctl_checkpoint_run (&self->checkpoint, self->house.journal, now_ns, stats.oldest_ns);
  if (all)
    self->sums_ns = 0;
  save_sums (self, now_ns);
  ctl_journal_tidy (self->house.journal);
}

/* One line for all that was not taken since the last one. */
static void complain (service_t *self)
{
  uint64_t lost = ctl_audit_lost (self->house.audit);
  if (lost != self->audit_lost)
    weft_log_error ("audit.log beside %s: %llu lines could not be written; make room on the disk",
                    self->store_path, (unsigned long long) (lost - self->audit_lost));
  self->audit_lost = lost;
  const ctl_intake_stats_t *now = ctl_intake_stats (self->house.intake), *then = &self->told;
  if (now->unjournalled != then->unjournalled)
    weft_log_error (
        "journal %s: no room for %llu frames; their senders keep them and send again, make room on "
        "the disk",
        self->journal_dir, (unsigned long long) (now->unjournalled - then->unjournalled));
  uint64_t malformed = now->malformed - then->malformed, version = now->version - then->version;
  uint64_t unknown = now->unsupported - then->unsupported, refused = now->refused - then->refused;
  uint64_t gap = now->gap - then->gap;
  if (malformed + version + unknown + refused + gap)
    weft_log_error (
        "reports dropped: %llu malformed, %llu of a newer major version, %llu of an unknown kind, "
        "%llu beyond a limit, %llu too far ahead; see who else writes to %s",
        (unsigned long long) malformed, (unsigned long long) version, (unsigned long long) unknown,
        (unsigned long long) refused, (unsigned long long) gap, self->listen);
  self->told = *now;
}

/* The first line at once, the next ones bundled. */
static int has_complaint (const service_t *self)
{
  const ctl_intake_stats_t *now = ctl_intake_stats (self->house.intake), *then = &self->told;
  return now->unjournalled != then->unjournalled || now->malformed != then->malformed ||
         now->version != then->version || now->unsupported != then->unsupported ||
         now->refused != then->refused || now->gap != then->gap ||
         ctl_audit_lost (self->house.audit) != self->audit_lost;
}

static void complain_of_strangers (service_t *self, uint64_t now_ns)
{
  char text[400];
  if (now_ns < self->strangers_ns || !ctl_guard_complaint (self->house.guard, text, sizeof text))
    return;
  weft_log_error ("%s; see who else connects to %s", text, self->listen);
  self->strangers_ns = now_ns + WEFT_COMPLAIN_EVERY_MS * WEFT_NS_PER_MS;
}

/* When it begins to fail, what it cost since, and that it works again. */
static void complain_of_collector (service_t *self, uint64_t now_ns)
{
  ctl_exporter_stats_t now, *then = &self->exported;
  if (!self->house.exporter || now_ns < self->collector_ns)
    return;
  ctl_exporter_stats (self->house.exporter, &now);
  uint64_t lost = now.given_up + now.rejected - then->given_up - then->rejected;
  const char *url = ctl_exporter_url (self->house.exporter);
  if (lost)
    weft_log_error ("otlp %s: %llu spans given up: %s; they are in the store, `weft export` sends them again",
                    url, (unsigned long long) lost, *now.why ? now.why : "too many wait for it");
  else if (now.failing && !then->failing)
    weft_log_error ("otlp %s: %s; trying again, nothing is given up yet", url, now.why);
  if (then->failing && !now.failing)
    weft_log_error ("otlp %s: works again", url);
  if (lost || now.failing != then->failing)
    self->collector_ns = now_ns + WEFT_COMPLAIN_EVERY_MS * WEFT_NS_PER_MS;
  *then = now;
}

static void tick (service_t *self, uint64_t now_ns)
{
  if (ctl_instructions_expire (self->house.instructions, now_ns))
    ctl_broadcast_state (self->house.broadcast, WEFT_TOPIC_ALL, self->house.instructions);
  if (now_ns >= self->heartbeat_ns) {
    heartbeat (self);
    self->heartbeat_ns = now_ns + WEFT_HEARTBEAT_MS * WEFT_NS_PER_MS;
    if (watch_presence (self, now_ns) > 0)
      self->used_ns = now_ns;
    ctl_claims_tidy (&self->house, now_ns);
  }
  if (now_ns >= self->settle_ns) {
    settle (self, now_ns, 0);
    self->settle_ns = now_ns + WEFT_SETTLE_EVERY_MS * WEFT_NS_PER_MS;
  } else if (self->unsettled)
    store_settled (self, now_ns, 0);
  else if (self->untidy)
    tidy_store (self);
  if (now_ns >= self->complain_ns && has_complaint (self)) {
    complain (self);
    self->complain_ns = now_ns + WEFT_COMPLAIN_EVERY_MS * WEFT_NS_PER_MS;
  }
  complain_of_strangers (self, now_ns);
  complain_of_collector (self, now_ns);
  if (self->options.idle_exit_ms && now_ns - self->used_ns >= self->options.idle_exit_ms * WEFT_NS_PER_MS)
    self->ending = 1;
}

static int timeout_ms (const service_t *self, uint64_t now_ns)
{
  uint64_t next_ns = self->heartbeat_ns < self->settle_ns ? self->heartbeat_ns : self->settle_ns;
  uint64_t expiry_ns = ctl_instructions_next_ns (self->house.instructions);
  if (expiry_ns && expiry_ns < next_ns)
    next_ns = expiry_ns;
  return next_ns <= now_ns || self->unsettled || self->untidy
             ? 0
             : (int) ((next_ns - now_ns) / WEFT_NS_PER_MS) + 1;
}

static void loop (service_t *self)
{
  struct pollfd fds[4 + CTL_GUARD_FDS] = {{.fd = ctl_intake_fd (self->house.intake), .events = POLLIN},
                                          {.fd = ctl_control_fd (self->control), .events = POLLIN},
                                          {.fd = ctl_broadcast_fd (self->house.broadcast), .events = POLLIN},
                                          {.fd = self->signal_fd, .events = POLLIN}};
  int guard_fds[CTL_GUARD_FDS];
  ctl_guard_fds (self->house.guard, guard_fds);
  for (int n = 0; n < CTL_GUARD_FDS; n++)
    fds[4 + n] = (struct pollfd){.fd = guard_fds[n], .events = POLLIN};
  self->used_ns = weft_mono_ns ();
  while (!self->ending) {
    int judged = ctl_guard_pump (self->house.guard);
    int taken = ctl_intake_pump (self->house.intake);
    int asked = ctl_control_pump (self->control);
    uint64_t now_ns = weft_mono_ns ();
    ctl_overload_backlog (&self->overload, taken >= WEFT_INTAKE_BURST, now_ns);
    if (asked)
      self->used_ns = now_ns;
    tick (self, now_ns);
    /* ZeroMQ's fds tell of edges: only a round that found nothing may wait. */
    int wait = judged + taken + asked + ctl_broadcast_pump (self->house.broadcast) == 0;
    if (poll (fds, 4 + CTL_GUARD_FDS, wait ? timeout_ms (self, now_ns) : 0) < 0 && errno != EINTR)
      break;
    self->ending |= self->house.quit || (fds[3].revents & POLLIN);
  }
}

/* ---- end ---------------------------------------------------------------- */

static void end (service_t *self)
{
  ctl_house_t *house = &self->house;
  /* Whoever works for us stops at once, not only when the lease is over. */
  if (house->broadcast && house->instructions) {
    uint32_t count = 0;
    while (ctl_instructions_live (house->instructions, &count), count)
      ctl_instructions_stop (house->instructions,
                             ctl_instructions_live (house->instructions, &count)->number);
    ctl_broadcast_state (house->broadcast, WEFT_TOPIC_ALL, house->instructions);
  }
  if (self->house.journal)
    settle (self, weft_mono_ns (), 1);
  if (house->exporter) {
    ctl_exporter_end (house->exporter);
    complain_of_collector (self, UINT64_MAX);
  }
  ctl_control_destroy (&self->control);
  ctl_intake_destroy (&house->intake);
  ctl_broadcast_destroy (&house->broadcast);
  ctl_guard_destroy (&house->guard);
  ctl_audit_close (&house->audit);
  ctl_checkpoint_clear (&self->checkpoint);
  ctl_journal_close (&self->house.journal);
  ctl_sink_destroy (&house->sink);
  ctl_exporter_destroy (&house->exporter);
  ctl_collector_destroy (&self->collector);
  ctl_correlate_destroy (&house->correlate);
  ctl_instructions_destroy (&house->instructions);
  ctl_instances_destroy (&house->instances);
  ctl_claims_destroy (&house->claims);
  ctl_store_destroy (&house->store);
  const char *dir = ctl_place_ipc_dir (self->listen);
  if (dir && self->listen_lock_fd >= 0)
    ctl_place_sweep (dir);
  if (self->listen_lock_fd >= 0)
    close (self->listen_lock_fd);
  if (self->journal_lock_fd >= 0)
    close (self->journal_lock_fd);
  if (self->signal_fd >= 0)
    close (self->signal_fd);
}

static int run (service_t *self, int ready_fd)
{
  int rc = start (self);
  if (rc == 0) {
    weft_log_debug ("listening at %s, store %s", self->listen, self->store_path);
    if (ready_fd >= 0)
      ctl_background_ready (ready_fd, self->store_path);
    loop (self);
  }
  end (self);
  return rc;
}

int ctl_service_run (const ctl_service_options_t *options)
{
  service_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  /* The frames that come and go at full rate would otherwise take their pages from the kernel each time. */
  mallopt (M_TRIM_THRESHOLD, WEFT_SERVICE_KEEP);
  self->options = *options;
  if (self->options.keys && !*self->options.keys)
    self->options.keys = NULL;
  self->listen_lock_fd = self->journal_lock_fd = self->signal_fd = -1;
  int ready_fd = -1, rc = 0;
  if (options->background)
    rc = ctl_background_fork (&ready_fd);
  if (rc == CTL_BACKGROUND_PARENT)
    rc = 0;
  else if (rc == 0)
    rc = run (self, ready_fd);
  free (self);
  return rc;
}
