/* SPDX-License-Identifier: Apache-2.0 */
/* probe: see probe.h. The parked thread is the only writer of the state words
 * and of the configuration. */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <jni.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "../shm/writer.h"
#include "child.h"
#include "config.h"
#include "connection.h"
#include "context.h"
#include "got.h"
#include "look.h"
#include "runtime/hotspot.h"
#include "socket_calls.h"
#include "state.h"

#define PAGE            4096
#define STACK_SIZE      (64 * 1024)
#define STACK_SIZE_NEXT (256 * 1024) /* static TLS of the process lies on the stack and may be large */
#define GRACE_US        2000         /* hooks in flight see probe_actions == 0 and finish */
#define QUIESCE_US      100000       /* a preempted writer gets this long */
#define FINISH_US       5000         /* cut inserts wait for the next write of their application */
#define FINISH_STEP_US  500
#define ACTION_FINISH   0x80000000u /* nobody's: the hooks stay active, if only to finish inserts */
#define START_WAIT_US   2000000
#define START_STEP_US   1000
#define CONFIG_RETRY_NS (10 * WEFT_NS_PER_MS)
#define RESTORE_TRIES   5

#define ANNOUNCE_TRIES 10 /* of a child that nobody heard: doubled pauses, ten seconds in all */
#define ANNOUNCE_NS    (10 * WEFT_NS_PER_MS)

typedef enum { LIFE_DORMANT, LIFE_STARTING, LIFE_RUNNING, LIFE_LEAVING, LIFE_UNBORN, LIFE_CHILD } life_t;

/* ---- the words that every part looks at (state.h) ------------------------- */
/* A page of its own that the kernel clears in every forked child: a child made
 * past the fork handlers (_Fork, clone) is inert too (P5). */
static union {
  uint32_t actions;
  uint8_t page[PAGE];
} wiped __attribute__ ((aligned (PAGE)));
extern uint32_t probe_actions __attribute__ ((alias ("wiped"), visibility ("hidden")));

void *probe_shm;

static __thread uint32_t cached_tid;
static __thread uint32_t ids_seeded;
static __thread weft_ids_t ids;

static uint32_t life; /* life_t */
static int memory_fd = -1;
static struct stat memory_stat;
static struct {
  shm_arrival_t kind;
  shm_tree_t tree; /* of a started one: what it was told */
  uint8_t parent_start[WEFT_UUID_SIZE];
  uint32_t tries;  /* left; 0: nothing is to be said */
  uint64_t due_ns; /* the next one */
} arrival;

uint32_t probe_tid (void)
{
  if (PROBE_UNLIKELY (!cached_tid))
    cached_tid = (uint32_t) syscall (SYS_gettid);
  return cached_tid;
}

weft_ids_t *probe_ids (void)
{
  if (PROBE_UNLIKELY (!ids_seeded)) {
    weft_ids_seed (&ids);
    ids_seeded = 1;
  }
  return &ids;
}

static void pause_us (uint32_t us)
{
  struct timespec pause = {us / 1000000, (long) (us % 1000000) * 1000};
  nanosleep (&pause, NULL);
}

static void futex_wake (uint32_t *word)
{
  syscall (SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void ring_own_bell (void)
{
  uint32_t *bell = &shm_control (probe_shm)->doorbell;
  __atomic_fetch_add (bell, 1, __ATOMIC_SEQ_CST);
  futex_wake (bell);
}

static void set_state (shm_state_t state)
{
  uint32_t *word = &shm_status (probe_shm)->state;
  __atomic_store_n (word, state, __ATOMIC_SEQ_CST);
  futex_wake (word);
}

static void publish_got (void)
{
  probe_got_counts_t counts;
  shm_status_t *status = shm_status (probe_shm);
  probe_got_counts (&counts);
  __atomic_store_n (&status->slots_written, counts.written, __ATOMIC_RELAXED);
  __atomic_store_n (&status->slots_restored, counts.restored, __ATOMIC_RELAXED);
  __atomic_store_n (&status->slots_foreign, counts.foreign, __ATOMIC_RELAXED);
  __atomic_store_n (&status->objects, counts.objects, __ATOMIC_RELAXED);
}

/* 1: slots are ours, or are just being made so. */
static int hooking (void)
{
  uint32_t now = __atomic_load_n (&life, __ATOMIC_ACQUIRE);
  return now == LIFE_RUNNING || now == LIFE_STARTING || now == LIFE_UNBORN;
}

/* What an unborn one has mapped is its parent's: its own thread looks once it is there. */
static int has_memory (void)
{
  return __atomic_load_n (&life, __ATOMIC_ACQUIRE) != LIFE_UNBORN;
}

static void slots_changed (void)
{
  if (has_memory ())
    publish_got ();
}

static void work_came (void)
{
  if (has_memory ())
    ring_own_bell ();
}

static const probe_look_owner_t owner = {hooking, slots_changed, work_came};

/* ---- configuration ----------------------------------------------------------- */
/* Nothing new is inserted; where part of an insert has left, its rest goes out with
 * the application's next write, or the peer sees half a line. */
static void finish_inserts (void)
{
  uint32_t before = probe_active ();
  if (!(before & WEFT_ACTION_EMBED) && !probe_connections_pending ())
    return;
  __atomic_store_n (&probe_actions, (before & ~WEFT_ACTION_EMBED) | ACTION_FINISH, __ATOMIC_SEQ_CST);
  // One step in any case: a hook that saw EMBED may be in its system call.
  for (uint32_t us = 0; us < FINISH_US; us += FINISH_STEP_US) {
    pause_us (FINISH_STEP_US);
    if (!probe_connections_pending ())
      break;
  }
}

static void go_idle (void)
{
  if (probe_active ())
    finish_inserts ();
  __atomic_store_n (&probe_actions, 0, __ATOMIC_SEQ_CST);
  pause_us (GRACE_US);
  shm_quiesce (probe_shm, QUIESCE_US);
  probe_connections_flush ();
  probe_context_reset ();
}

/* The lease as it may be: none is longer than the longest one allowed. */
static uint64_t lease_left_ns (const shm_control_t *control, uint64_t now_ns)
{
  uint64_t until = __atomic_load_n (&control->lease_until_ns, __ATOMIC_ACQUIRE);
  if (until <= now_ns)
    return 0;
  uint64_t left = until - now_ns, longest = WEFT_LEASE_MAX_MS * WEFT_NS_PER_MS;
  return left < longest ? left : longest;
}

/* Brings what is in force in line with the page; returns how long that holds (0: for ever). */
static uint64_t apply (const shm_control_t *control, uint64_t now_ns)
{
  shm_status_t *status = shm_status (probe_shm);
  int news = probe_config_read (control);
  uint64_t left_ns = lease_left_ns (control, now_ns);
  uint32_t before = probe_active ();
  uint32_t actions = news >= 0 && left_ns ? probe_config_actions () : 0;
  if (news > 0 || actions != before) {
    if (before && !actions)
      go_idle ();
    probe_config_publish (actions);
    __atomic_store_n (&probe_actions, actions, __ATOMIC_SEQ_CST);
    __atomic_store_n (&status->actions, actions, __ATOMIC_RELAXED);
    __atomic_store_n (&status->config_seen, probe_config_seq (), __ATOMIC_RELEASE);
    set_state (actions ? SHM_STATE_ACTIVE : SHM_STATE_IDLE);
  }
  if (news < 0) {
    probe_count (SHM_COUNT_FAULTS, 1);
    return CONFIG_RETRY_NS;
  }
  return actions ? left_ns : 0;
}

/* ---- leaving ------------------------------------------------------------------ */
/* The application may have closed our fd and used its number again. */
static void close_memory (void)
{
  struct stat now;
  if (memory_fd >= 0 && fstat (memory_fd, &now) == 0 && now.st_ino == memory_stat.st_ino &&
      now.st_dev == memory_stat.st_dev)
    close (memory_fd);
  memory_fd = -1;
}

/* Private memory that hooks may scribble on. */
static int reserve_memory (void)
{
  void *p = mmap (NULL, SHM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return WEFT_E_NOMEM;
  __atomic_store_n (&probe_shm, p, __ATOMIC_RELEASE);
  return 0;
}

static void leave_memory (int quiet)
{
  close_memory ();
  if (quiet)
    shm_retire (probe_shm);
  else
    reserve_memory (); /* the old range stays: somebody is in the middle of it */
}

static void leave (void)
{
  __atomic_store_n (&life, LIFE_LEAVING, __ATOMIC_RELEASE);
  set_state (SHM_STATE_LEAVING);
  go_idle ();
  for (int i = 0; i < RESTORE_TRIES && probe_got_restore () != 0; i++)
    pause_us (GRACE_US);
  publish_got ();
  __atomic_store_n (&shm_status (probe_shm)->actions, 0, __ATOMIC_RELAXED);
  int quiet = shm_quiesce (probe_shm, QUIESCE_US) == 0;
  close_memory ();
  /* From here on a writer that gets a ring lets it go untouched (P4). */
  __atomic_store_n (&shm_status (probe_shm)->state, SHM_STATE_LEFT, __ATOMIC_SEQ_CST);
  quiet = quiet && shm_quiesce (probe_shm, QUIESCE_US) == 0;
  futex_wake (&shm_status (probe_shm)->state);
  leave_memory (quiet);
}

/* ---- the parked thread --------------------------------------------------------- */
/* min of two delays where 0 is none */
static uint64_t sooner (uint64_t a, uint64_t b)
{
  return !a || (b && b < a) ? b : a;
}

/* Returns when to try again (0: not). */
static uint64_t announce (uint64_t now_ns)
{
  if (!arrival.tries || now_ns < arrival.due_ns)
    return arrival.tries ? arrival.due_ns : 0;
  int status =
      probe_child_announce (&shm_control (probe_shm)->tree, arrival.kind, arrival.parent_start, memory_fd);
  arrival.tries = status == WEFT_E_BUSY ? arrival.tries - 1 : 0;
  arrival.due_ns = now_ns + (ANNOUNCE_NS << (ANNOUNCE_TRIES - arrival.tries));
  return arrival.tries ? arrival.due_ns : 0;
}

static void *parked (void *arg)
{
  prctl (PR_SET_NAME, "weft-probe", 0, 0, 0);
  shm_control_t *control = shm_control (probe_shm);
  shm_status_t *status = shm_status (probe_shm);
  for (;;) {
    uint32_t bell = __atomic_load_n (&control->doorbell, __ATOMIC_ACQUIRE);
    uint64_t now_ns = weft_mono_ns ();
    __atomic_store_n (&status->heartbeat_ns, now_ns, __ATOMIC_RELAXED);
    if (__atomic_load_n (&control->command, __ATOMIC_ACQUIRE) == SHM_COMMAND_LEAVE)
      break;
    uint64_t look_ns = probe_look_again (now_ns);
    probe_look_for_runtime ();
    uint64_t wait_ns = apply (control, now_ns);
    if (probe_active ())
      probe_connections_count ();
    uint64_t announce_ns = announce (now_ns);
    if (announce_ns)
      wait_ns = sooner (wait_ns, announce_ns > now_ns ? announce_ns - now_ns : 1);
    if (look_ns)
      wait_ns = sooner (wait_ns, look_ns > now_ns ? look_ns - now_ns : 1);
    struct timespec timeout = {(time_t) (wait_ns / WEFT_NS_PER_S), (long) (wait_ns % WEFT_NS_PER_S)};
    syscall (SYS_futex, &control->doorbell, FUTEX_WAIT, bell, wait_ns ? &timeout : NULL, NULL, 0);
  }
  leave ();
  __atomic_store_n (&life, LIFE_DORMANT, __ATOMIC_RELEASE);
  return NULL;
}

static int create_thread (size_t stack_size)
{
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init (&attributes) != 0)
    return -1;
  int error = pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
  if (!error && stack_size)
    error = pthread_attr_setstacksize (&attributes, stack_size);
  if (!error)
    error = pthread_create (&thread, &attributes, parked, NULL);
  pthread_attr_destroy (&attributes);
  return error ? -1 : 0;
}

static int start_thread (void)
{
  sigset_t all, before;
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  int failed = create_thread (STACK_SIZE) && create_thread (STACK_SIZE_NEXT) && create_thread (0);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  return failed ? WEFT_E_NOMEM : 0;
}

static uint64_t own_base (void)
{
  Dl_info self;
  return dladdr (&wiped, &self) ? (uint64_t) (uintptr_t) self.dli_fbase : 0;
}

/* ---- fork ------------------------------------------------------------------------ */
static void before_fork (void)
{
  probe_got_before_fork ();
}

static void after_fork_parent (void)
{
  probe_got_after_fork (0);
}

/* The parent's memory stays mapped in the unborn, to be read at its birth and never
 * written (P5); everything else waits until then: a child that execs costs nothing more. */
static void after_fork_child (void)
{
  int saved = errno;
  probe_got_after_fork (1);
  __atomic_store_n (&probe_actions, 0, __ATOMIC_SEQ_CST);
  int unborn = life == LIFE_RUNNING || life == LIFE_UNBORN;
  if (life == LIFE_RUNNING)
    arrival.kind = SHM_ARRIVAL_FORKED;
  if (life != LIFE_DORMANT)
    life = unborn ? LIFE_UNBORN : LIFE_CHILD;
  arrival.tries = 0;
  cached_tid = 0;
  ids_seeded = 0;
  probe_calls_owner (getpid ());
  close_memory ();
  if (unborn)
    __atomic_store_n (&probe_actions, PROBE_UNBORN, __ATOMIC_SEQ_CST);
  else {
    if (probe_shm)
      shm_retire (probe_shm);
    probe_connections_reset ();
    probe_context_reset ();
  }
  errno = saved;
}

/* ---- birth ----------------------------------------------------------------------- */
static int parent_lives_on (void)
{
  uint32_t state = __atomic_load_n (&shm_status (probe_shm)->state, __ATOMIC_ACQUIRE);
  return arrival.kind != SHM_ARRIVAL_FORKED || state == SHM_STATE_IDLE || state == SHM_STATE_ACTIVE;
}

/* A memory of its own in the place of what is mapped. */
static int take_memory (void)
{
  probe_runtime_t runtime;
  void *fresh, *before = probe_shm;
  const shm_head_t *head = before;
  int forked = arrival.kind == SHM_ARRIVAL_FORKED;
  memset (&runtime, 0, sizeof runtime);
  if (forked) {
    memcpy (runtime.vm, head->vm, sizeof runtime.vm - 1);
    memcpy (runtime.version, head->vm_version, sizeof runtime.version - 1);
    memcpy (arrival.parent_start, head->start, sizeof arrival.parent_start);
  }
  int status = shm_create (NULL, runtime.vm, runtime.version, forked ? head->probe_base : own_base (), &fresh,
                           &memory_fd);
  if (status != 0)
    return status;
  if (forked)
    probe_child_inherit (before, fresh);
  else
    shm_control (fresh)->tree = arrival.tree;
  __atomic_store_n (&probe_shm, fresh, __ATOMIC_RELEASE);
  munmap (before, SHM_SIZE);
  return fstat (memory_fd, &memory_stat) == 0 ? 0 : WEFT_E_IO;
}

static int be_born (void)
{
  int status = parent_lives_on () ? 0 : WEFT_E_STATE;
  probe_connections_reset ();
  probe_context_reset ();
  probe_config_born ();
  if (status == 0)
    status = take_memory ();
  __atomic_store_n (&probe_actions, 0, __ATOMIC_SEQ_CST);
  if (status == 0) {
    publish_got ();
    __atomic_store_n (&shm_status (probe_shm)->state, SHM_STATE_IDLE, __ATOMIC_SEQ_CST);
    arrival.tries = ANNOUNCE_TRIES;
    arrival.due_ns = 0;
    announce (weft_mono_ns ()); /* before the call goes on: its first request may be its last */
    apply (shm_control (probe_shm), weft_mono_ns ());
    status = start_thread ();
  }
  if (status != 0) {
    __atomic_store_n (&probe_actions, 0, __ATOMIC_SEQ_CST);
    probe_got_restore ();
    leave_memory (1);
  }
  return status;
}

/* In the first hook that shows that an unborn one talks. */
static int birth (void)
{
  uint32_t now = LIFE_UNBORN;
  if (!__atomic_compare_exchange_n (&life, &now, LIFE_STARTING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return 0;
  int saved = errno;
  uint32_t next = be_born () == 0 ? LIFE_RUNNING : LIFE_CHILD;
  uint32_t starting = LIFE_STARTING;
  __atomic_compare_exchange_n (&life, &starting, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  errno = saved;
  return probe_active () != 0;
}

/* ---- starting -------------------------------------------------------------------- */
/* What is done once in the life of the process. */
static int prepare_once (void)
{
  static int prepared;
  if (prepared)
    return 0;
  int status = probe_look_resolve (&owner);
  if (status != 0)
    return status;
  if (!probe_shm && (status = reserve_memory ()) != 0)
    return status;
  /* Older kernels refuse: then the fork handlers alone do it. */
  madvise (&wiped, PAGE, MADV_WIPEONFORK);
  probe_leases_begin ();
  probe_calls_birth (birth);
  if (pthread_atfork (before_fork, after_fork_parent, after_fork_child) != 0)
    return WEFT_E_NOMEM;
  prepared = 1;
  return 0;
}

static int begin (void)
{
  int status = prepare_once ();
  if (status != 0)
    return status;
  probe_calls_owner (getpid ());
  probe_runtime_t runtime;
  memset (&runtime, 0, sizeof runtime);
  probe_look_at_runtime (&runtime);
  probe_config_forget ();
  status = shm_create (probe_shm, runtime.vm, runtime.version, own_base (), &probe_shm, &memory_fd);
  if (status != 0)
    return status;
  probe_child_tree (&shm_control (probe_shm)->tree); /* it may fork before its sidecar looks */
  if (fstat (memory_fd, &memory_stat) != 0)
    status = WEFT_E_IO;
  if (status == 0)
    status = probe_look_begin ();
  if (status == 0) {
    publish_got ();
    __atomic_store_n (&shm_status (probe_shm)->state, SHM_STATE_IDLE, __ATOMIC_SEQ_CST);
    status = start_thread ();
  }
  if (status != 0) {
    probe_got_restore ();
    leave_memory (1);
  }
  return status;
}

int probe_start (void)
{
  for (uint32_t waited = 0;; waited += START_STEP_US) {
    uint32_t now = LIFE_DORMANT;
    if (__atomic_compare_exchange_n (&life, &now, LIFE_STARTING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      break;
    if (now == LIFE_RUNNING)
      return 0;
    if (now == LIFE_UNBORN)
      birth ();
    if (now == LIFE_CHILD &&
        __atomic_compare_exchange_n (&life, &now, LIFE_STARTING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      break;
    if (waited >= START_WAIT_US)
      return WEFT_E_BUSY;
    pause_us (START_STEP_US);
  }
  int status = begin ();
  uint32_t starting = LIFE_STARTING;
  __atomic_compare_exchange_n (&life, &starting, status == 0 ? LIFE_RUNNING : LIFE_DORMANT, 0,
                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  return status;
}

/* ---- ways in --------------------------------------------------------------------- */
/* Started below `weft run` by a process that may be followed: hooks alone, until it
 * talks. What never does pays for a walk through its slots. */
static void conceive (void)
{
  if (!probe_child_tree (&arrival.tree) || prepare_once () != 0)
    return;
  arrival.kind = SHM_ARRIVAL_STARTED;
  probe_calls_owner (getpid ());
  if (probe_look_begin () != 0)
    return;
  life = LIFE_UNBORN;
  __atomic_store_n (&probe_actions, PROBE_UNBORN, __ATOMIC_SEQ_CST);
}

/* LD_PRELOAD: at once for the process that was named, when it talks for what it starts. */
__attribute__ ((constructor)) static void probe_load (void)
{
  const char *text = getenv ("WEFT_PROBE_PID");
  if (!text || !*text)
    return;
  int saved = errno;
  char *end;
  long pid = strtol (text, &end, 10);
  if (!*end && pid == (long) getpid ())
    probe_start ();
  else
    conceive ();
  errno = saved;
}

/* Prototypes stand in jvmti.h, which is the adapter's to include. */
JNIEXPORT jint JNICALL Agent_OnLoad (JavaVM *vm, char *options, void *reserved);
JNIEXPORT jint JNICALL Agent_OnAttach (JavaVM *vm, char *options, void *reserved);
JNIEXPORT void JNICALL Agent_OnUnload (JavaVM *vm);

JNIEXPORT jint JNICALL Agent_OnLoad (JavaVM *vm, char *options, void *reserved)
{
  return probe_start () == 0 ? JNI_OK : JNI_ERR;
}

JNIEXPORT jint JNICALL Agent_OnAttach (JavaVM *vm, char *options, void *reserved)
{
  if (probe_start () != 0)
    return JNI_ERR;
  probe_hotspot_prepare ();
  return JNI_OK;
}

/* The VM ends: its memory goes with it, and the sidecar drains what is left. */
JNIEXPORT void JNICALL Agent_OnUnload (JavaVM *vm) {}
