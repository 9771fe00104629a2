/* SPDX-License-Identifier: Apache-2.0 */
/* got: slots of real shared objects, written and given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../../../common/status.h"
#include "../../../../instance/probe/got.h"
#include "fixture.h"

typedef long (*read_fn) (int, void *, size_t);
typedef int (*close_fn) (int);

static unsigned reads, closes;
static ssize_t hook_read (int fd, void *data, size_t size)
{
  reads++;
  return 1000 + fd;
}
static int hook_close (int fd)
{
  closes++;
  return 2000 + fd;
}
static ssize_t other_hook (int fd, void *data, size_t size)
{
  return 3000;
}

static probe_call_t calls[2];

static void *function (void *library, const char *name)
{
  void *found = dlsym (library, name);
  assert_non_null (found);
  return found;
}

static void *load_as (const char *name, int flags)
{
  char path[128];
  fixture_path (path, sizeof path, name);
  void *library = dlopen (path, RTLD_LAZY | RTLD_LOCAL | flags);
  if (!library)
    fail_msg ("%s", dlerror ());
  return library;
}

static void *load (const char *name)
{
  return load_as (name, 0);
}

static long call_read (void *library, int fd)
{
  read_fn fn = (read_fn) function (library, "fx_read");
  char byte;
  return fn (fd, &byte, 1);
}

static probe_got_counts_t counts (void)
{
  probe_got_counts_t c;
  probe_got_counts (&c);
  return c;
}

static int begin (void **state)
{
  calls[0] = (probe_call_t){.name = "read", .hook = (void *) hook_read, .lazy_ok = 1};
  calls[1] = (probe_call_t){.name = "close", .hook = (void *) hook_close, .lazy_ok = 1, .everywhere = 1};
  calls[0].original = dlsym (RTLD_NEXT, "read");
  calls[1].original = dlsym (RTLD_NEXT, "close");
  reads = closes = 0;
  probe_got_begin ();
  return 0;
}

static int end (void **state)
{
  return probe_got_restore ();
}

/* One object: hooked after patch, its own call after restore, pages as before. */
static void round_trip (const char *name)
{
  char before[4096], between[4096];
  void *library = load (name);
  fixture_maps (name, before, sizeof before);
  assert_int_equal (call_read (library, -1), -1); /* EBADF from the kernel; binds a lazy slot */
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (call_read (library, 5), 1005);
  assert_int_equal (((close_fn) function (library, "fx_close")) (6), 2006);
  fixture_maps (name, between, sizeof between);
  assert_string_equal (before, between);
  probe_got_counts_t patched = counts ();
  assert_true (patched.written >= 2);
  assert_int_equal (patched.deferred, 0);
  assert_int_equal (probe_got_restore (), 0);
  assert_int_equal (call_read (library, -1), -1);
  assert_int_equal (reads, 1);
  assert_null (fixture_find (name, (uint64_t) (uintptr_t) hook_read));
  assert_null (fixture_find (name, (uint64_t) (uintptr_t) hook_close));
  fixture_maps (name, between, sizeof between);
  assert_string_equal (before, between);
  assert_int_equal (counts ().restored, counts ().written);
  assert_int_equal (counts ().failed, 0);
  dlclose (library);
}

static void test_bound_now (void **state)
{
  round_trip ("now.so");
}
static void test_bound_lazily (void **state)
{
  round_trip ("lazy.so");
}
static void test_without_plt (void **state)
{
  round_trip ("noplt.so");
}
/* An address taken: one GLOB_DAT slot serves both. */
static void test_address_taken (void **state)
{
  round_trip ("address.so");
}
static void test_without_relro (void **state)
{
  round_trip ("norelro.so");
}

/* A slot that was never bound holds its stub; it gets the resolved original back. */
static void test_never_bound (void **state)
{
  void *library = load ("lazy.so");
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (call_read (library, 5), 1005);
  assert_int_equal (probe_got_restore (), 0);
  assert_non_null (fixture_find ("lazy.so", (uint64_t) (uintptr_t) calls[0].original));
  assert_int_equal (call_read (library, -1), -1);
  dlclose (library);
}

static void test_never_bound_where_another_would_be_found (void **state)
{
  void *library = load ("lazy.so");
  calls[0].lazy_ok = 0;
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (call_read (library, -1), -1);
  assert_true (counts ().foreign >= 1);
  dlclose (library);
}

static void test_twice_is_once (void **state)
{
  void *library = load ("now.so");
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  probe_got_counts_t once = counts ();
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (counts ().written, once.written);
  assert_int_equal (counts ().foreign, once.foreign);
  assert_int_equal (counts ().objects, once.objects);
  dlclose (library);
}

/* G1: what another tool put there stays. */
static void test_foreign_before (void **state)
{
  void *library = load ("now.so");
  probe_call_t others[1] = {calls[0]};
  others[0].original = (void *) other_hook; /* no slot holds this */
  others[0].lazy_ok = 0;
  assert_int_equal (probe_got_patch (others, 1, 0), 0);
  assert_int_equal (call_read (library, -1), -1);
  assert_int_equal (counts ().written, 0);
  assert_true (counts ().foreign >= 1);
  dlclose (library);
}

static void poke (uint64_t *slot, uint64_t value)
{
  void *page = (void *) ((uintptr_t) slot & ~4095ul);
  assert_int_equal (mprotect (page, 4096, PROT_READ | PROT_WRITE), 0);
  *slot = value;
  assert_int_equal (mprotect (page, 4096, PROT_READ), 0);
}

static void test_foreign_since (void **state)
{
  void *library = load ("now.so");
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  uint64_t *slot = fixture_find ("now.so", (uint64_t) (uintptr_t) hook_read);
  assert_non_null (slot);
  poke (slot, (uint64_t) (uintptr_t) other_hook);
  uint32_t foreign = counts ().foreign;
  assert_int_equal (probe_got_restore (), 0);
  assert_int_equal (counts ().foreign, foreign + 1);
  assert_int_equal (counts ().restored + 1, counts ().written);
  assert_int_equal (call_read (library, -1), 3000);
  dlclose (library);
}

/* G3: a slot whose object is gone is not touched. */
static void test_object_unloaded (void **state)
{
  void *library = load ("now.so");
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  uint32_t written = counts ().written;
  dlclose (library);
  char maps[4096];
  fixture_maps ("now.so", maps, sizeof maps);
  assert_string_equal (maps, "");
  assert_int_equal (probe_got_restore (), 0);
  assert_true (counts ().written < written);
  assert_int_equal (counts ().restored, counts ().written);
}

static void test_object_loaded_again (void **state)
{
  void *library = load ("now.so");
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  dlclose (library);
  library = load ("now.so");
  assert_int_equal (call_read (library, -1), -1);
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (call_read (library, 7), 1007);
  dlclose (library);
}

static void test_object_with_a_read_of_its_own (void **state)
{
#ifndef __SANITIZE_ADDRESS__ /* which forbids RTLD_DEEPBIND */
  void *library = load_as ("own.so", RTLD_DEEPBIND);
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (call_read (library, 5), 4242);
  assert_int_equal (reads, 0);
  dlclose (library);
#endif
}

/* G6: the VM's own I/O runs while the VM is in a state of its own. */
static void test_libjvm_gets_only_what_goes_everywhere (void **state)
{
  void *library = load ("libjvm.so");
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (call_read (library, -1), -1);
  assert_int_equal (((close_fn) function (library, "fx_close")) (6), 2006);
  dlclose (library);
}

static void test_errno_and_dlerror_stay (void **state)
{
  void *library = load ("now.so");
  dlerror ();
  assert_null (dlsym (library, "no_such_name"));
  errno = 55;
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (errno, 55);
  assert_int_equal (probe_got_restore (), 0);
  assert_int_equal (errno, 55);
  const char *text = dlerror ();
  assert_non_null (text);
  assert_non_null (strstr (text, "no_such_name"));
  dlclose (library);
}

/* A dlopen hook that was on its way when the life ended. */
static void test_nothing_is_written_after_restore (void **state)
{
  void *library = load ("now.so");
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (probe_got_restore (), 0);
  assert_int_equal (probe_got_patch (calls, 2, 0), WEFT_E_STATE);
  assert_int_equal (call_read (library, -1), -1);
  probe_got_begin ();
  assert_int_equal (probe_got_patch (calls, 2, 0), 0);
  assert_int_equal (call_read (library, 5), 1005);
  dlclose (library);
}

/* A fork in the middle of scans: the child finds the lock free. */
static uint32_t scanning;
static void *scan_on (void *arg)
{
  while (__atomic_load_n (&scanning, __ATOMIC_RELAXED)) {
    probe_got_begin ();
    probe_got_patch (calls, 2, 0);
    probe_got_restore ();
  }
  return NULL;
}

static void test_fork_between_scans (void **state)
{
  pthread_t thread;
  scanning = 1;
  assert_int_equal (pthread_create (&thread, NULL, scan_on, NULL), 0);
  for (int i = 0; i < 20; i++) {
    probe_got_before_fork ();
    pid_t child = fork ();
    probe_got_after_fork (child == 0);
    if (child == 0) {
      alarm (5);
      probe_got_begin ();
      _exit (probe_got_patch (calls, 2, 0) == 0 && probe_got_restore () == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_int_equal (status, 0);
  }
  __atomic_store_n (&scanning, 0, __ATOMIC_RELAXED);
  pthread_join (thread, NULL);
}

static int group_begin (void **state)
{
  return fixture_begin () || fixture_build ("now.so", "-Wl,-z,now,-z,relro") ||
         fixture_build ("lazy.so", "-Wl,-z,lazy,-z,relro") ||
         fixture_build ("noplt.so", "-fno-plt -Wl,-z,now,-z,relro") ||
         fixture_build ("address.so", "-DADDRESS -Wl,-z,lazy,-z,relro") ||
         fixture_build ("norelro.so", "-Wl,-z,lazy,-z,norelro") ||
         fixture_build ("libjvm.so", "-Wl,-z,now,-z,relro") ||
         fixture_build ("own.so", "-DOWN_READ -Wl,-z,lazy");
}

static int group_end (void **state)
{
  return fixture_end ();
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST (test_bound_now),
      TEST (test_bound_lazily),
      TEST (test_without_plt),
      TEST (test_address_taken),
      TEST (test_without_relro),
      TEST (test_never_bound),
      TEST (test_never_bound_where_another_would_be_found),
      TEST (test_twice_is_once),
      TEST (test_foreign_before),
      TEST (test_foreign_since),
      TEST (test_object_unloaded),
      TEST (test_object_loaded_again),
      TEST (test_object_with_a_read_of_its_own),
      TEST (test_libjvm_gets_only_what_goes_everywhere),
      TEST (test_errno_and_dlerror_stay),
      TEST (test_nothing_is_written_after_restore),
      TEST (test_fork_between_scans),
  };
  return cmocka_run_group_tests (tests, group_begin, group_end);
}
