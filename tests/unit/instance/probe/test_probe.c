/* SPDX-License-Identifier: Apache-2.0 */
/* probe: its life in this very process, which plays the sidecar as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "../../../../common/clocks.h"
#include "../../../../common/status.h"
#include "../../../../instance/probe/connection.h"
#include "../../../../instance/probe/context.h"
#include "../../../../instance/probe/patience.h"
#include "../../../../instance/probe/probe.h"
#include "../../../../instance/probe/quiet.h"
#include "../../../../instance/probe/reach.h"
#include "../../../../instance/probe/socket_calls.h"
#include "../../../../instance/probe/state.h"
#include "../../../../instance/shm/reader.h"
#include "../../../../instance/shm/writer.h"
#include "fixture.h"

#define WAIT_MS 10000

static shm_reader_t *reader;
static const shm_filter_t no_filter;
static uint32_t flushes, resets, child_resets;
/* Inserts that wait: `finishing` looks in a row see one each; what they saw of probe_actions. */
static uint32_t finishing, finish_looks, seen_active = UINT32_MAX, seen_embed, flushed_early;

/* ---- recorders in place of connection and context ------------------------------ */
uint8_t probe_quiet[PROBE_FDS_MAX];
__thread uint8_t probe_context_count;
uint8_t probe_context_adapted;
void probe_connections_count (void) {}
int probe_reach_begin (probe_reach_t *ret_reach)
{
  return 0;
}
void probe_reach_connect (int fd, const probe_reach_t *reach, const struct sockaddr *address, socklen_t size,
                          int error)
{
}
void probe_reach_told (int fd, int error) {}
int probe_reach_lookup (const char *node, int flags, probe_reach_t *ret_reach)
{
  return 0;
}
void probe_reach_looked_up (const probe_reach_t *reach, int again) {}
void probe_connections_flush (void)
{
  __atomic_add_fetch (&flushes, 1, __ATOMIC_SEQ_CST);
  flushed_early |= finishing;
}
int probe_connection_finish (int fd)
{
  return 1;
}
unsigned probe_connections_pending (void)
{
  finish_looks++;
  seen_active &= probe_actions;
  seen_embed |= probe_actions & WEFT_ACTION_EMBED;
  return finishing ? finishing-- : 0;
}
void probe_leases_begin (void) {}
void probe_connections_reset (void)
{
  child_resets++;
}
void probe_context_reset (void)
{
  __atomic_add_fetch (&resets, 1, __ATOMIC_SEQ_CST);
}
void probe_context_use (const probe_slot_t *slot) {}
void probe_context_use_none (void) {}
void probe_context_event_loop (void) {}
void probe_connection_born (int fd, probe_role_t role) {}
void probe_connection_refused (int fd, int error) {}
void probe_connection_closing (int fd) {}
void probe_patience_waited (int fd) {}
void probe_connection_shared (int fd) {}
void probe_connection_shutdown (int fd, int how) {}
void probe_connection_sent_opaque (int fd, size_t size) {}
probe_write_how_t probe_connection_before_write (int fd, const struct iovec *iov, int count, int flags,
                                                 probe_write_t *write)
{
  return PROBE_WRITE_PLAIN;
}
ssize_t probe_connection_after_write (int fd, probe_write_t *write, ssize_t result)
{
  return result;
}
int probe_connection_before_read (int fd, probe_read_t *ret_read)
{
  return 0;
}
void probe_connection_after_read (int fd, const probe_read_t *read, const struct iovec *iov, int count,
                                  ssize_t result)
{
}

/* ---- looking on ------------------------------------------------------------------- */
static void pause_ms (long ms)
{
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep (&t, NULL);
}

static int wait_state (shm_state_t state)
{
  shm_status_t status;
  for (int i = 0; i < WAIT_MS; i++, pause_ms (1)) {
    shm_reader_status (reader, &status);
    if (status.state == (uint32_t) state)
      return 1;
  }
  return 0;
}

static int wait_seen (uint32_t seq)
{
  shm_status_t status;
  for (int i = 0; i < WAIT_MS; i++, pause_ms (1)) {
    shm_reader_status (reader, &status);
    if (status.config_seen == seq)
      return 1;
  }
  return 0;
}

static unsigned probe_threads (void)
{
  unsigned found = 0;
  DIR *directory = opendir ("/proc/self/task");
  for (struct dirent *e; (e = readdir (directory));) {
    char path[300], name[32] = {0};
    snprintf (path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
    FILE *file = fopen (path, "r");
    if (file && fgets (name, sizeof name, file))
      found += strcmp (name, "weft-probe\n") == 0;
    if (file)
      fclose (file);
  }
  closedir (directory);
  return found;
}

/* A thread names itself a moment after it was made. */
static unsigned wait_thread (void)
{
  unsigned found = 0;
  for (int i = 0; i < WAIT_MS && !(found = probe_threads ()); i++)
    pause_ms (1);
  return found;
}

static unsigned probe_fds (void)
{
  unsigned found = 0;
  for (int fd = 0; fd < 256; fd++) {
    char path[64], link[64] = {0};
    snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink (path, link, sizeof link - 1) > 0)
      found += strstr (link, "memfd:weft-probe") != NULL;
  }
  return found;
}

static void *library;

static int hooked (const char *name)
{
  return fixture_find (name, (uint64_t) (uintptr_t) probe_hook_read) != NULL;
}

static int begin (void **state)
{
  flushes = resets = 0;
  return probe_start () || shm_reader_open (getpid (), &reader);
}

static int end (void **state)
{
  int left = 1;
  if (reader) {
    shm_command (reader, SHM_COMMAND_LEAVE);
    left = wait_state (SHM_STATE_LEFT);
    shm_reader_destroy (&reader);
  }
  for (int i = 0; i < WAIT_MS && probe_threads (); i++)
    pause_ms (1);
  return !left || probe_threads ();
}

/* A lease that does not end before a busy machine has seen to what it is for. */
#define LEASE_MS     1000
#define LEASE_END_MS (LEASE_MS + 1000) /* what is promised */

static void activate (uint32_t actions, uint64_t lease_ms, const shm_rule_t *rules, uint32_t count)
{
  shm_renew_lease (reader, weft_mono_ns () + lease_ms * WEFT_NS_PER_MS);
  shm_configure_with (reader, actions, 0, 0, rules, count, &no_filter);
  assert_true (wait_seen (shm_config_seq (reader)));
}

/* ---- idle ------------------------------------------------------------------------- */
static void test_start_is_idle (void **state)
{
  shm_status_t status;
  shm_reader_status (reader, &status);
  assert_int_equal (status.state, SHM_STATE_IDLE);
  assert_int_equal (probe_actions, 0);
  assert_int_equal (wait_thread (), 1);
  assert_int_equal (probe_fds (), 1);
  assert_true (hooked ("fixture.so"));
  assert_true (status.slots_written >= 3 && status.objects >= 2);
  assert_int_equal (probe_start (), 0); /* one life at a time */
  assert_int_equal (probe_threads (), 1);
}

/* P2: nothing but the parked thread's futex, no timeout. */
static void test_idle_never_wakes (void **state)
{
  shm_status_t before, after;
  pause_ms (300);
  shm_reader_status (reader, &before);
  pause_ms (300);
  shm_reader_status (reader, &after);
  assert_true (before.heartbeat_ns == after.heartbeat_ns);
}

/* ---- configuration ------------------------------------------------------------------ */
static void test_active_then_idle_at_the_end_of_the_lease (void **state)
{
  activate (WEFT_ACTION_EMBED | WEFT_ACTION_ROOT, LEASE_MS, NULL, 0);
  assert_int_equal (probe_actions, WEFT_ACTION_EMBED | WEFT_ACTION_ROOT);
  uint64_t serial = probe_config->serial;
  assert_true (serial != 0);
  assert_int_equal (flushes, 0);
  uint64_t start = weft_mono_ns ();
  assert_true (wait_state (SHM_STATE_IDLE));
  assert_true (weft_mono_ns () - start < LEASE_END_MS * WEFT_NS_PER_MS);
  assert_int_equal (probe_actions, 0);
  assert_int_equal (flushes, 1);
  assert_int_equal (resets, 1);
  /* The lease comes back: the same configuration under a new serial. */
  shm_renew_lease (reader, weft_mono_ns () + 5 * WEFT_NS_PER_S);
  assert_true (wait_state (SHM_STATE_ACTIVE));
  assert_int_equal (probe_actions, WEFT_ACTION_EMBED | WEFT_ACTION_ROOT);
  assert_true (probe_config->serial > serial);
}

/* A cut insert: its application gets some time to write on, under active hooks. */
static void test_inserts_are_finished_first (void **state)
{
  finishing = 3;
  finish_looks = seen_embed = flushed_early = 0;
  seen_active = UINT32_MAX;
  activate (WEFT_ACTION_EMBED, LEASE_MS, NULL, 0);
  assert_true (wait_state (SHM_STATE_IDLE));
  assert_int_equal (finish_looks, 4);
  assert_int_equal (seen_embed, 0);
  assert_true (seen_active != 0);
  assert_int_equal (flushed_early, 0);
  assert_int_equal (flushes, 1);
  assert_int_equal (probe_actions, 0);
}

static void test_unfinished_inserts_hold_nobody_up (void **state)
{
  finishing = UINT32_MAX;
  flushed_early = 0;
  activate (WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE, LEASE_MS, NULL, 0);
  uint64_t start = weft_mono_ns ();
  assert_true (wait_state (SHM_STATE_IDLE));
  assert_true (weft_mono_ns () - start < LEASE_END_MS * WEFT_NS_PER_MS);
  assert_true (flushed_early);
  assert_int_equal (probe_actions, 0);
  finishing = 0;
}

static void test_renewed_lease_keeps_it_active (void **state)
{
  activate (WEFT_ACTION_CAPTURE, LEASE_MS, NULL, 0);
  for (int i = 0; i < 8; i++) {
    shm_renew_lease (reader, weft_mono_ns () + LEASE_MS * WEFT_NS_PER_MS);
    pause_ms (LEASE_MS / 5);
  }
  assert_int_equal (probe_actions, WEFT_ACTION_CAPTURE);
  assert_int_equal (flushes, 0);
}

static void test_no_lease_no_action (void **state)
{
  shm_configure_with (reader, WEFT_ACTION_EMBED, 0, 0, NULL, 0, &no_filter);
  assert_true (wait_seen (shm_config_seq (reader)));
  assert_int_equal (probe_actions, 0);
}

static void test_roots_taken_are_carried_over (void **state)
{
  shm_rule_t rules[2];
  memset (rules, 0, sizeof rules);
  rules[0].instruction = 5;
  rules[0].sample_den = 1;
  activate (WEFT_ACTION_ROOT, 5000, rules, 1);
  probe_config->roots_taken[0] = 17;
  rules[1] = rules[0];
  rules[0].instruction = 6;
  activate (WEFT_ACTION_ROOT, 5000, rules, 2);
  assert_true (probe_config->roots_taken[0] == 0);
  assert_true (probe_config->roots_taken[1] == 17);
  assert_int_equal (flushes, 0); /* never idle in between */
}

/* The page may hold anything: what comes out is within bounds. */
static void test_hostile_configuration (void **state)
{
  shm_control_t *control = shm_control (shm_reader_base (reader));
  shm_renew_lease (reader, UINT64_MAX);
  memset (&control->actions, 0xff, (size_t) ((char *) &control->lease_until_ns - (char *) &control->actions));
  memset (control->rules, 'x', sizeof control->rules);
  control->rules[0].sample_den = 0;
  memset (shm_filter (shm_reader_base (reader)), 0xfe, sizeof (shm_filter_t));
  __atomic_store_n (&control->config_seq, 100, __ATOMIC_RELEASE);
  shm_command (reader, SHM_COMMAND_CONFIGURE);
  assert_true (wait_seen (100));
  assert_int_equal (probe_config->actions, 0x0f);
  assert_int_equal (probe_config->rule_count, SHM_RULES_MAX);
  assert_int_equal (probe_config->rules[0].sample_den, 1);
  assert_int_equal (strnlen (probe_config->rules[3].match, WEFT_MATCH_MAX), WEFT_MATCH_MAX - 1);
  assert_true (probe_config->carrier <= 1 && probe_config->embed_to <= 1);
  assert_int_equal (probe_config->filter.network_count, 0);
  assert_int_equal (probe_config->filter.exclude_count, SHM_EXCLUDES_MAX);
  assert_int_equal (strnlen (probe_config->filter.exclude[SHM_EXCLUDES_MAX - 1], WEFT_MATCH_MAX),
                    WEFT_MATCH_MAX - 1);
  assert_int_equal (strnlen (probe_config->wanted.name[3], WEFT_HEADER_MAX), WEFT_HEADER_MAX - 1);
}

/* A sidecar that died in the middle of a change: no action until there is a whole one. */
static void test_torn_configuration (void **state)
{
  activate (WEFT_ACTION_EMBED, 5000, NULL, 0);
  shm_control_t *control = shm_control (shm_reader_base (reader));
  __atomic_store_n (&control->config_seq, 3, __ATOMIC_RELEASE);
  shm_command (reader, SHM_COMMAND_CONFIGURE);
  assert_true (wait_state (SHM_STATE_IDLE));
  assert_int_equal (probe_actions, 0);
  __atomic_store_n (&control->config_seq, 4, __ATOMIC_RELEASE);
  assert_true (wait_state (SHM_STATE_ACTIVE)); /* it looks again by itself */
  assert_int_equal (probe_actions, WEFT_ACTION_EMBED);
}

/* ---- leaving ---------------------------------------------------------------------- */
static void test_leave_and_come_back (void **state)
{
  void *address = probe_shm;
  for (int i = 0; i < 20; i++) {
    activate (WEFT_ACTION_CAPTURE, 5000, NULL, 0);
    weft_report_t report;
    memset (&report, 0, sizeof report);
    report.kind = WEFT_REPORT_CAPTURE;
    report.name = "";
    assert_int_equal (shm_write (probe_shm, probe_tid (), &report), 1);
    shm_command (reader, SHM_COMMAND_LEAVE);
    assert_true (wait_state (SHM_STATE_LEFT));
    shm_status_t status;
    shm_reader_status (reader, &status);
    assert_int_equal (status.slots_restored, status.slots_written);
    assert_int_equal (status.slots_foreign, 0);
    assert_int_equal (status.actions, 0);
    assert_false (hooked ("fixture.so"));
    assert_int_equal (probe_fds (), 0);
    assert_int_equal (probe_actions, 0);
    /* What was written before is there for the sidecar, which maps it still. */
    assert_int_equal (shm_reader_next (reader, &report), 1);
    /* What is written after reaches nobody. */
    report.name = "";
    shm_write (probe_shm, probe_tid (), &report);
    assert_int_equal (shm_reader_next (reader, &report), 0);
    shm_reader_destroy (&reader);
    assert_int_equal (probe_start (), 0);
    assert_ptr_equal (probe_shm, address);
    assert_int_equal (shm_reader_open (getpid (), &reader), 0);
    assert_true (hooked ("fixture.so"));
  }
  assert_true (flushes >= 20);
}

/* An application closed our fd and got its number for a file of its own. */
static void test_leave_does_not_close_a_reused_fd (void **state)
{
  int ours = -1;
  for (int fd = 3; fd < 256 && ours < 0; fd++) {
    char path[64], link[64] = {0};
    snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink (path, link, sizeof link - 1) > 0 && strstr (link, "memfd:weft-probe"))
      ours = fd;
  }
  assert_true (ours >= 0);
  int file = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  assert_int_equal (dup2 (file, ours), ours);
  shm_command (reader, SHM_COMMAND_LEAVE);
  assert_true (wait_state (SHM_STATE_LEFT));
  assert_true (fcntl (ours, F_GETFD) >= 0);
  close (ours);
  close (file);
}

/* ---- fork ---------------------------------------------------------------------------- */
static int write_in_child (void)
{
  weft_report_t report;
  memset (&report, 0, sizeof report);
  report.kind = WEFT_REPORT_CAPTURE;
  report.name = "";
  return shm_write (probe_shm, probe_tid (), &report);
}

/* Waits for a forked check; its bits, -1: it did not end by itself. */
static int checked (pid_t child)
{
  int status = -1;
  assert_int_equal (waitpid (child, &status, 0), child);
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void test_forked_child_is_unborn (void **state)
{
  activate (WEFT_ACTION_CAPTURE, 5000, NULL, 0);
  uint32_t tid = probe_tid ();
  int pair[2];
  assert_int_equal (pipe (pair), 0);
  weft_ids_t generator = *probe_ids ();
  child_resets = 0;
  pid_t child = fork ();
  if (child == 0) {
    int bad = probe_actions != PROBE_UNBORN;
    bad |= (probe_tid () == tid) << 1;
    bad |= (probe_fds () != 0 || probe_threads () != 0) << 2;
    bad |= (weft_ids_next (&generator) == weft_ids_next (probe_ids ())) << 3;
    /* What a child does on its way to exec. */
    probe_hook_dup2 (pair[1], 90);
    probe_hook_fcntl (90, F_SETFD, 0);
    probe_hook_write (90, "x", 1);
    char byte;
    probe_hook_read (pair[0], &byte, 1);
    probe_hook_close (90);
    bad |= (probe_actions != PROBE_UNBORN || probe_fds () != 0 || probe_threads () != 0) << 4;
    bad |= (child_resets != 0) << 5;
    _exit (bad);
  }
  assert_int_equal (checked (child), 0);
  close (pair[0]), close (pair[1]);
  assert_int_equal (probe_actions, WEFT_ACTION_CAPTURE);
  assert_int_equal (probe_tid (), tid);
}

static int is_born (const uint8_t parent_start[WEFT_UUID_SIZE])
{
  int bad = probe_hook_poll (NULL, 0, 0) != 0;
  const shm_head_t *head = probe_shm;
  const shm_control_t *control = shm_control (probe_shm);
  bad |= (probe_actions != WEFT_ACTION_CAPTURE) << 1; /* at once, before any sidecar knows of it */
  bad |= (probe_fds () != 1 || wait_thread () != 1) << 2;
  bad |= (memcmp (head->start, parent_start, WEFT_UUID_SIZE) == 0 || head->pid != (uint32_t) getpid ()) << 3;
  bad |= (child_resets != 1) << 4;
  bad |= (strcmp (control->service, "shop") != 0 || control->tree.name[3] != 7) << 5;
  bad |= (control->instance[0] || control->sidecar_pid || control->batch_last) << 6;
  bad |= (write_in_child () != 1) << 7;
  return bad;
}

static void test_child_is_born_at_its_first_word (void **state)
{
  activate (WEFT_ACTION_CAPTURE, 5000, NULL, 0);
  shm_control_t *control = shm_control (shm_reader_base (reader));
  strcpy (control->service, "shop");
  control->tree.name[3] = 7;
  control->instance[0] = 9;
  control->sidecar_pid = 1;
  control->batch_last = 3;
  uint8_t start[WEFT_UUID_SIZE];
  memcpy (start, ((const shm_head_t *) probe_shm)->start, sizeof start);
  child_resets = 0;
  pid_t child = fork ();
  if (child == 0)
    _exit (is_born (start));
  assert_int_equal (checked (child), 0);
  weft_report_t report;
  assert_int_equal (shm_reader_next (reader, &report), 0); /* P5 */
  assert_memory_equal (((const shm_head_t *) shm_reader_base (reader))->start, start, sizeof start);
  assert_int_equal (control->doorbell, shm_control (probe_shm)->doorbell);
}

/* A child of an unborn one takes over from the same page; both are instances of their own. */
static void test_grandchild_of_an_unborn (void **state)
{
  activate (WEFT_ACTION_CAPTURE, 5000, NULL, 0);
  pid_t child = fork ();
  if (child == 0) {
    pid_t grandchild = fork ();
    if (grandchild == 0) {
      probe_hook_poll (NULL, 0, 0);
      _exit (probe_actions != WEFT_ACTION_CAPTURE || probe_fds () != 1);
    }
    int bad = checked (grandchild) != 0;
    _exit (bad | (probe_actions != PROBE_UNBORN) << 1);
  }
  assert_int_equal (checked (child), 0);
}

static void test_child_of_one_that_has_left_stays_inert (void **state)
{
  activate (WEFT_ACTION_CAPTURE, 5000, NULL, 0);
  int go[2];
  assert_int_equal (pipe (go), 0);
  pid_t child = fork ();
  if (child == 0) {
    char byte;
    int bad = read (go[0], &byte, 1) != 1;
    probe_hook_poll (NULL, 0, 0);
    bad |= (probe_actions != 0 || probe_fds () != 0 || probe_threads () != 0) << 1;
    _exit (bad);
  }
  shm_command (reader, SHM_COMMAND_LEAVE);
  assert_true (wait_state (SHM_STATE_LEFT));
  assert_int_equal (write (go[1], "x", 1), 1);
  assert_int_equal (checked (child), 0);
  close (go[0]), close (go[1]);
}

/* Told to start by a way in, whatever it was: it is one of its own. */
static void test_child_can_be_joined (void **state)
{
  activate (WEFT_ACTION_CAPTURE, 5000, NULL, 0);
  pid_t child = fork ();
  if (child == 0)
    _exit (probe_start () != 0 || probe_fds () != 1 || wait_thread () != 1);
  assert_int_equal (checked (child), 0);
}

/* Past the fork handlers: the kernel clears the word that makes hooks act. */
static void test_raw_forked_child_is_inert (void **state)
{
  activate (WEFT_ACTION_CAPTURE, 5000, NULL, 0);
  pid_t child = _Fork ();
  if (child == 0)
    _exit (probe_active () ? 1 : 0);
  int status = -1;
  assert_int_equal (waitpid (child, &status, 0), child);
  assert_int_equal (status, 0);
  assert_int_equal (probe_actions, WEFT_ACTION_CAPTURE);
}

/* ---- dlopen --------------------------------------------------------------------------- */
typedef void *(*dlopen_fn) (const char *);

static void test_objects_loaded_later (void **state)
{
  char path[128];
  dlopen_fn open_from = (dlopen_fn) dlsym (library, "fx_dlopen");
  fixture_path (path, sizeof path, "later.so");
  errno = 66;
  void *later = open_from (path);
  assert_non_null (later);
  assert_true (hooked ("later.so")); /* at once */
  dlclose (later);
}

/* By name, along the RUNPATH of the caller: found only if dlopen still sees who
 * calls. A sanitizer's own dlopen does not. */
static void test_objects_found_by_their_caller (void **state)
{
#ifndef __SANITIZE_ADDRESS__
  dlopen_fn open_from = (dlopen_fn) dlsym (library, "fx_dlopen");
  void *named = open_from ("libweftnamed.so");
  assert_non_null (named);
  int seen = 0;
  for (int i = 0; i < WAIT_MS && !(seen = hooked ("libweftnamed.so")); i++)
    pause_ms (1);
  assert_true (seen);
  dlclose (named);
#endif
}

static void test_failing_dlopen_says_why (void **state)
{
  dlopen_fn open_from = (dlopen_fn) dlsym (library, "fx_dlopen");
  assert_null (open_from ("/no/such/object.so"));
  const char *text = dlerror ();
  assert_non_null (text);
  assert_non_null (strstr (text, "/no/such/object.so"));
  assert_null (open_from ("libweftnowhere.so"));
  assert_non_null (dlerror ());
  assert_non_null (open_from (NULL));
}

static int group_begin (void **state)
{
  char path[128];
  if (fixture_begin () || fixture_build ("fixture.so", "-Wl,-z,now,-rpath,'$ORIGIN'") ||
      fixture_build ("later.so", "-Wl,-z,lazy") || fixture_build ("libweftnamed.so", "-Wl,-z,now"))
    return -1;
  fixture_path (path, sizeof path, "fixture.so");
  library = dlopen (path, RTLD_NOW);
  return library ? 0 : -1;
}

static int group_end (void **state)
{
  return fixture_end ();
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST (test_start_is_idle),
      TEST (test_idle_never_wakes),
      TEST (test_active_then_idle_at_the_end_of_the_lease),
      TEST (test_inserts_are_finished_first),
      TEST (test_unfinished_inserts_hold_nobody_up),
      TEST (test_renewed_lease_keeps_it_active),
      TEST (test_no_lease_no_action),
      TEST (test_roots_taken_are_carried_over),
      TEST (test_hostile_configuration),
      TEST (test_torn_configuration),
      TEST (test_leave_and_come_back),
      TEST (test_leave_does_not_close_a_reused_fd),
      TEST (test_forked_child_is_unborn),
      TEST (test_child_is_born_at_its_first_word),
      TEST (test_grandchild_of_an_unborn),
      TEST (test_child_of_one_that_has_left_stays_inert),
      TEST (test_child_can_be_joined),
      TEST (test_raw_forked_child_is_inert),
      TEST (test_objects_loaded_later),
      TEST (test_objects_found_by_their_caller),
      TEST (test_failing_dlopen_says_why),
  };
  return cmocka_run_group_tests (tests, group_begin, group_end);
}
