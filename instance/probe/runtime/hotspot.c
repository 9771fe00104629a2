/* SPDX-License-Identifier: Apache-2.0 */
/* hotspot: see hotspot.h. */
#include "hotspot.h"

#include <dlfcn.h>
#include <errno.h>
/* The JDK's header is not as strict as we are. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <jvmti.h>
#pragma GCC diagnostic pop
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "../../../common/status.h"
#include "../context.h"

#define FIRST_VIRTUAL   21    /* JDK that has virtual threads for everybody */
#define STRUCTS_MAX     65536 /* rows of the VM's own table; it has some thousand */
#define MAKING_TRIES    400   /* the VM may hold a safepoint in between */
#define MAKING_SLEEP_NS 50000

typedef jint (*created_vms_fn) (JavaVM **, jsize, jsize *);

typedef enum { ENV_NONE, ENV_MAKING, ENV_READY, ENV_REFUSED } env_state_t;
static uint32_t env_state; /* env_state_t */
static JavaVM *env_vm;
static jvmtiEnv *env;
static created_vms_fn created_vms;
static int wants_slot;

/* ---- version ---------------------------------------------------------------
 * HotSpot exports a table of its own fields for debuggers (vmStructs). Reading
 * it needs no thread of the VM and works while the VM still starts. */
static uint64_t exported (void *library, const char *name)
{
  const uint64_t *value = dlsym (library, name);
  return value ? *value : 0;
}

static const void *static_field (void *library, const char *type, const char *field)
{
  const char *row = (const char *) (uintptr_t) exported (library, "gHotSpotVMStructs");
  uint64_t stride = exported (library, "gHotSpotVMStructEntryArrayStride");
  uint64_t type_at = exported (library, "gHotSpotVMStructEntryTypeNameOffset");
  uint64_t field_at = exported (library, "gHotSpotVMStructEntryFieldNameOffset");
  uint64_t address_at = exported (library, "gHotSpotVMStructEntryAddressOffset");
  if (!row || !stride || type_at >= stride || field_at >= stride || address_at >= stride)
    return NULL;
  for (uint32_t i = 0; i < STRUCTS_MAX; i++, row += stride) {
    const char *row_type, *row_field;
    const void *address;
    memcpy (&row_type, row + type_at, sizeof row_type);
    memcpy (&row_field, row + field_at, sizeof row_field);
    memcpy (&address, row + address_at, sizeof address);
    if (!row_type || !row_field)
      return NULL;
    if (strcmp (row_type, type) == 0 && strcmp (row_field, field) == 0)
      return address;
  }
  return NULL;
}

/* Fills the text, returns the major version, 0: not known. */
static int version (void *library, char *ret_version, size_t size)
{
  ret_version[0] = 0;
  const char *const *release = static_field (library, "Abstract_VM_Version", "_s_vm_release");
  const int *major = static_field (library, "Abstract_VM_Version", "_vm_major_version");
  if (release && *release) {
    size_t length = strcspn (*release, "-");
    if (length >= size)
      length = size - 1;
    memcpy (ret_version, *release, length);
    ret_version[length] = 0;
  }
  return major ? *major : 0;
}

/* ---- the JVMTI slot -------------------------------------------------------- */
/* The bit after can_generate_sampled_object_alloc_events: headers before 21 do
 * not name it, and the order of the bits never changes. */
static void virtual_threads_only (jvmtiCapabilities *capabilities, const jvmtiCapabilities *potential)
{
  jvmtiCapabilities last;
  memset (&last, 0, sizeof last);
  last.can_generate_sampled_object_alloc_events = 1;
  uint8_t bytes[sizeof last];
  memcpy (bytes, &last, sizeof last);
  unsigned bit = 0;
  while (bit < sizeof bytes * 8 && !(bytes[bit / 8] >> bit % 8 & 1))
    bit++;
  bit++;
  memset (capabilities, 0, sizeof *capabilities);
  if (bit >= sizeof bytes * 8)
    return;
  memcpy (bytes, potential, sizeof bytes);
  uint8_t have = bytes[bit / 8] & (uint8_t) (1u << bit % 8);
  memcpy ((uint8_t *) capabilities + bit / 8, &have, 1);
}

/* On a thread of the VM, once. */
static env_state_t make_env (JavaVM *vm)
{
  jvmtiEnv *made = NULL;
  if ((*vm)->GetEnv (vm, (void **) &made, JVMTI_VERSION_11) != JNI_OK || !made)
    return ENV_REFUSED;
  jvmtiCapabilities potential, wanted, none;
  memset (&none, 0, sizeof none);
  memset (&potential, 0, sizeof potential);
  if ((*made)->GetPotentialCapabilities (made, &potential) == JVMTI_ERROR_NONE) {
    virtual_threads_only (&wanted, &potential);
    if (memcmp (&wanted, &none, sizeof none) != 0 &&
        (*made)->AddCapabilities (made, &wanted) == JVMTI_ERROR_NONE) {
      env = made;
      return ENV_READY;
    }
  }
  (*made)->DisposeEnvironment (made);
  return ENV_REFUSED;
}

/* Another thread makes it right now: once in a life, and only where the VM was
 * preloaded; without the wait these requests would be orphans. */
static uint32_t wait_made (void)
{
  uint32_t state = ENV_MAKING;
  int saved = errno;
  for (int i = 0; i < MAKING_TRIES && state == ENV_MAKING; i++) {
    struct timespec pause = {0, MAKING_SLEEP_NS};
    nanosleep (&pause, NULL);
    state = __atomic_load_n (&env_state, __ATOMIC_ACQUIRE);
  }
  errno = saved;
  return state;
}

/* NULL: not to be had on this thread (now). */
static jvmtiEnv *env_here (void)
{
  JavaVM *vm = __atomic_load_n (&env_vm, __ATOMIC_ACQUIRE);
  if (!vm) {
    jsize count = 0;
    if (!created_vms || created_vms (&vm, 1, &count) != JNI_OK || count < 1)
      return NULL;
    __atomic_store_n (&env_vm, vm, __ATOMIC_RELEASE);
  }
  void *jni = NULL;
  if ((*vm)->GetEnv (vm, &jni, JNI_VERSION_1_6) != JNI_OK)
    return NULL; /* not a thread of the VM */
  uint32_t state = ENV_NONE;
  if (__atomic_compare_exchange_n (&env_state, &state, ENV_MAKING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    state = make_env (vm);
    __atomic_store_n (&env_state, state, __ATOMIC_RELEASE);
    if (state == ENV_REFUSED)
      probe_context_use_none ();
  }
  return (state == ENV_MAKING ? wait_made () : state) == ENV_READY ? env : NULL;
}

void probe_hotspot_prepare (void)
{
  if (wants_slot)
    env_here ();
}

static int slot_get (probe_handle_t *ret_handle)
{
  jvmtiEnv *here = env_here ();
  void *data = NULL;
  if (!here || (*here)->GetThreadLocalStorage (here, NULL, &data) != JVMTI_ERROR_NONE)
    return WEFT_E_STATE;
  *ret_handle = (probe_handle_t) (uintptr_t) data;
  return 0;
}

static int slot_set (probe_handle_t handle)
{
  jvmtiEnv *here = env_here ();
  void *data = (void *) (uintptr_t) handle;
  return here && (*here)->SetThreadLocalStorage (here, NULL, data) == JVMTI_ERROR_NONE ? 0 : WEFT_E_STATE;
}

static const probe_slot_t jvmti_slot = {slot_get, slot_set};

int probe_hotspot_detect (char *ret_version, size_t size)
{
  void *library = dlopen ("libjvm.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!library)
    return WEFT_E_NOT_FOUND;
  void *found = dlsym (library, "JNI_GetCreatedJavaVMs");
  if (!found) {
    dlclose (library);
    return WEFT_E_NOT_FOUND;
  }
  memcpy (&created_vms, &found, sizeof created_vms);
  int major = version (library, ret_version, size);
  /* A version that cannot be read may be one with virtual threads. */
  wants_slot = major <= 0 || major >= FIRST_VIRTUAL;
  probe_context_use (wants_slot ? &jvmti_slot : NULL);
  dlclose (library);
  return 0;
}
