/* SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include <string.h>

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "dlopen.h"
#include "got.h"
#include "socket_calls.h"
#include "state.h"

#define CALLS_MAX 64

static probe_call_t calls[CALLS_MAX];
static uint32_t call_count;
static const probe_look_owner_t *owner;

/* The pauses before each further look. */
static const uint32_t look_ms[] = {1, 4, 20, 100, 500, 2000};
#define LOOKS (sizeof look_ms / sizeof look_ms[0])
static uint32_t look_wanted; /* raised by any thread, taken by the parked one */
static uint32_t look_step;
static uint64_t look_due_ns;
static uint32_t runtime_known;
static uint32_t runtime_wanted = 1; /* raised by any thread */

/* On the thread that called dlopen. */
static void opened (void)
{
  if (!owner->hooking ())
    return;
  probe_got_counts_t counts;
  int status = probe_got_patch (calls, call_count, 0);
  probe_got_counts (&counts);
  if (status == 0)
    owner->changed ();
  int again = status != 0 || counts.deferred;
  if (!again && __atomic_load_n (&runtime_known, __ATOMIC_ACQUIRE))
    return;
  if (again)
    __atomic_store_n (&look_wanted, 1, __ATOMIC_RELEASE);
  __atomic_store_n (&runtime_wanted, 1, __ATOMIC_RELEASE);
  owner->work ();
}

static void opens (void)
{
  if (!owner->hooking ())
    return;
  __atomic_store_n (&look_wanted, 1, __ATOMIC_RELEASE);
  __atomic_store_n (&runtime_wanted, 1, __ATOMIC_RELEASE);
  owner->work ();
}

static const probe_dlopen_watch_t watch = {opened, opens};

int probe_look_resolve (const probe_look_owner_t *the_owner)
{
  int status = probe_calls_resolve ();
  if (status != 0)
    return status;
  uint32_t count;
  const probe_call_t *table = probe_calls_table (&count);
  if (count >= CALLS_MAX)
    return WEFT_E_FULL;
  owner = the_owner;
  memcpy (calls, table, count * sizeof *table);
  if (probe_dlopen_resolve (&watch, &calls[count]) == 0)
    count++;
  call_count = count;
  return 0;
}

int probe_look_begin (void)
{
  probe_got_counts_t counts;
  look_wanted = look_step = 0;
  look_due_ns = 0;
  probe_got_begin ();
  int status = probe_got_patch (calls, call_count, 0);
  probe_got_counts (&counts);
  if (status == 0 && counts.deferred)
    __atomic_store_n (&look_wanted, 1, __ATOMIC_RELEASE);
  return status;
}

uint64_t probe_look_again (uint64_t now_ns)
{
  if (__atomic_exchange_n (&look_wanted, 0, __ATOMIC_ACQ_REL)) {
    look_step = 0;
    look_due_ns = now_ns + look_ms[0] * WEFT_NS_PER_MS;
  }
  if (!look_due_ns || now_ns < look_due_ns)
    return look_due_ns;
  probe_got_patch (calls, call_count, look_step + 1 == LOOKS);
  owner->changed ();
  __atomic_store_n (&runtime_wanted, 1, __ATOMIC_RELEASE);
  look_due_ns = ++look_step < LOOKS ? now_ns + look_ms[look_step] * WEFT_NS_PER_MS : 0;
  return look_due_ns;
}

void probe_look_at_runtime (probe_runtime_t *ret_runtime)
{
  memset (ret_runtime, 0, sizeof *ret_runtime);
  runtime_known = probe_runtime_detect (ret_runtime) == 0;
  runtime_wanted = 0;
}

void probe_look_for_runtime (void)
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
