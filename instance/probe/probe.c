/* SPDX-License-Identifier: Apache-2.0 */
/* probe: see probe.h. The parked thread is the only writer of the state words
 * and of the configuration. */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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
#include "config.h"
#include "connection.h"
#include "context.h"
#include "dlopen.h"
#include "got.h"
#include "runtime/hotspot.h"
#include "runtime/runtime.h"
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
#define CALLS_MAX       64
#define RESTORE_TRIES   5

typedef enum { LIFE_DORMANT, LIFE_STARTING, LIFE_RUNNING, LIFE_LEAVING, LIFE_CHILD } life_t;

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
static probe_call_t calls[CALLS_MAX];
static uint32_t call_count;

/* ---- looking again at loaded objects --------------------------------------- */
/* A dlopen that was only passed on finishes some time later: the pauses before
 * each further look. The last one takes half-relocated objects as well (G5). */
static const uint32_t look_ms[] = {1, 4, 20, 100, 500, 2000};
#define LOOKS (sizeof look_ms / sizeof look_ms[0])
static uint32_t look_wanted; /* raised by any thread, taken by the parked one */
static uint32_t runtime_known;
static uint32_t runtime_wanted;

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
  return now == LIFE_RUNNING || now == LIFE_STARTING;
}

/* On the thread that called dlopen. */
static void opened (void)
{
  if (!hooking ())
    return;
  probe_got_counts_t counts;
  int status = probe_got_patch (calls, call_count, 0);
  probe_got_counts (&counts);
  if (status == 0)
    publish_got ();
  int again = status != 0 || counts.deferred;
  if (!again && __atomic_load_n (&runtime_known, __ATOMIC_ACQUIRE))
    return;
  if (again)
    __atomic_store_n (&look_wanted, 1, __ATOMIC_RELEASE);
  __atomic_store_n (&runtime_wanted, 1, __ATOMIC_RELEASE);
  ring_own_bell ();
}

static void opens (void)
{
  if (!hooking ())
    return;
  __atomic_store_n (&look_wanted, 1, __ATOMIC_RELEASE);
  __atomic_store_n (&runtime_wanted, 1, __ATOMIC_RELEASE);
  ring_own_bell ();
}

static const probe_dlopen_watch_t watch = {opened, opens};

static void look_for_runtime (void)
{
  if (runtime_known || !__atomic_exchange_n (&runtime_wanted, 0, __ATOMIC_ACQ_REL))
    return;
  probe_runtime_t runtime;
  if (probe_runtime_detect (&runtime) != 0)
    return;
  shm_head_t *head = probe_shm;
  memcpy (head->vm_version, runtime.version, sizeof head->vm_version);
  memcpy (head->vm, runtime.vm, sizeof head->vm);
  __atomic_store_n (&runtime_known, 1, __ATOMIC_RELEASE);
}

/* One step of looking again; *due_ns is when the next one is (0: none). */
static void look_again (uint64_t now_ns, uint32_t *step, uint64_t *due_ns)
{
  if (__atomic_exchange_n (&look_wanted, 0, __ATOMIC_ACQ_REL)) {
    *step = 0;
    *due_ns = now_ns + look_ms[0] * WEFT_NS_PER_MS;
  }
  if (!*due_ns || now_ns < *due_ns)
    return;
  probe_got_patch (calls, call_count, *step + 1 == LOOKS);
  publish_got ();
  __atomic_store_n (&runtime_wanted, 1, __ATOMIC_RELEASE);
  *due_ns = ++*step < LOOKS ? now_ns + look_ms[*step] * WEFT_NS_PER_MS : 0;
}

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

static void *parked (void *arg)
{
  prctl (PR_SET_NAME, "weft-probe", 0, 0, 0);
  shm_control_t *control = shm_control (probe_shm);
  shm_status_t *status = shm_status (probe_shm);
  uint32_t step = 0;
  uint64_t look_due_ns = 0;
  for (;;) {
    uint32_t bell = __atomic_load_n (&control->doorbell, __ATOMIC_ACQUIRE);
    uint64_t now_ns = weft_mono_ns ();
    __atomic_store_n (&status->heartbeat_ns, now_ns, __ATOMIC_RELAXED);
    if (__atomic_load_n (&control->command, __ATOMIC_ACQUIRE) == SHM_COMMAND_LEAVE)
      break;
    look_again (now_ns, &step, &look_due_ns);
    look_for_runtime ();
    uint64_t wait_ns = apply (control, now_ns);
    if (probe_active ())
      probe_connections_count ();
    if (look_due_ns)
      wait_ns = sooner (wait_ns, look_due_ns > now_ns ? look_due_ns - now_ns : 1);
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

/* ---- fork ------------------------------------------------------------------------ */
static void before_fork (void)
{
  probe_got_before_fork ();
}

static void after_fork_parent (void)
{
  probe_got_after_fork (0);
}

static void after_fork_child (void)
{
  int saved = errno;
  probe_got_after_fork (1);
  __atomic_store_n (&probe_actions, 0, __ATOMIC_SEQ_CST);
  if (life != LIFE_DORMANT)
    life = LIFE_CHILD;
  cached_tid = 0;
  ids_seeded = 0;
  probe_calls_owner (getpid ());
  if (probe_shm)
    shm_retire (probe_shm);
  close_memory ();
  probe_connections_reset ();
  probe_context_reset ();
  errno = saved;
}

/* ---- starting -------------------------------------------------------------------- */
/* What is done once in the life of the process. */
static int prepare_once (void)
{
  static int prepared;
  if (prepared)
    return 0;
  int status = probe_calls_resolve ();
  if (status != 0)
    return status;
  uint32_t count;
  const probe_call_t *table = probe_calls_table (&count);
  if (count >= CALLS_MAX)
    return WEFT_E_FULL;
  memcpy (calls, table, count * sizeof *table);
  if (probe_dlopen_resolve (&watch, &calls[count]) == 0)
    count++;
  call_count = count;
  if (!probe_shm && (status = reserve_memory ()) != 0)
    return status;
  /* Older kernels refuse: then the fork handlers alone do it. */
  madvise (&wiped, PAGE, MADV_WIPEONFORK);
  probe_leases_begin ();
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
  runtime_known = probe_runtime_detect (&runtime) == 0;
  look_wanted = 0;
  runtime_wanted = 0;
  probe_config_forget ();
  Dl_info self;
  uint64_t base = dladdr (&wiped, &self) ? (uint64_t) (uintptr_t) self.dli_fbase : 0;
  status = shm_create (probe_shm, runtime.vm, runtime.version, base, &probe_shm, &memory_fd);
  if (status != 0)
    return status;
  if (fstat (memory_fd, &memory_stat) != 0)
    status = WEFT_E_IO;
  probe_got_begin ();
  if (status == 0)
    status = probe_got_patch (calls, call_count, 0);
  if (status == 0) {
    probe_got_counts_t counts;
    probe_got_counts (&counts);
    if (counts.deferred)
      __atomic_store_n (&look_wanted, 1, __ATOMIC_RELEASE);
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
    if (now == LIFE_CHILD)
      return WEFT_E_STATE;
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
/* LD_PRELOAD: only for the process that was named, never for what it starts. */
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
