/* SPDX-License-Identifier: Apache-2.0 */
#include "claim.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "../../common/clocks.h"
#include "../../common/status.h"

#define UUID_PATIENCE_MS 200 /* a rival writes its uuid right after its pid */

int car_claim_await (pid_t pid, int pidfd, const uint8_t *not_start, unsigned timeout_ms,
                     shm_reader_t **ret_reader)
{
  uint64_t until_ns = weft_mono_ns () + timeout_ms * WEFT_NS_PER_MS;
  int pause_ms = CAR_CLAIM_POLL_MIN_MS;
  for (;;) {
    shm_reader_t *reader = NULL;
    int status = shm_reader_open (pid, &reader);
    if (status == 0) {
      const shm_head_t *head = shm_reader_base (reader);
      if (!not_start || memcmp (head->start, not_start, WEFT_UUID_SIZE) != 0) {
        *ret_reader = reader;
        return 0;
      }
      shm_reader_destroy (&reader);
    } else if (status == WEFT_E_VERSION)
      return status; /* another release of the probe: it will not change */
    struct pollfd poll_gone = {.fd = pidfd, .events = POLLIN};
    if (poll (&poll_gone, 1, pause_ms) == 1)
      return WEFT_E_GONE;
    if (weft_mono_ns () >= until_ns)
      return status < 0 && status != WEFT_E_NOT_FOUND ? status : WEFT_E_TIMEOUT;
    pause_ms = pause_ms * 3 / 2 < CAR_CLAIM_POLL_MAX_MS ? pause_ms * 3 / 2 : CAR_CLAIM_POLL_MAX_MS;
  }
}

static int is_sidecar (uint64_t pid)
{
  char comm[32];
  if (pid == 0 || pid > INT32_MAX || car_target_read ((pid_t) pid, "comm", comm, sizeof comm) <= 0)
    return 0;
  comm[strcspn (comm, "\n")] = '\0';
  char state = car_target_state ((pid_t) pid, NULL);
  return strcmp (comm, CAR_CLAIM_PROGRAM) == 0 && state && state != 'Z' &&
         state != 'X'; /* a zombie works for nobody */
}

pid_t car_claim_holder (shm_reader_t *reader)
{
  uint64_t pid = __atomic_load_n (&shm_control (shm_reader_base (reader))->sidecar_pid, __ATOMIC_ACQUIRE);
  return is_sidecar (pid) ? (pid_t) pid : 0;
}

int car_claim_take (shm_reader_t *reader, const uint8_t *prefer, uint8_t ret_instance[WEFT_UUID_SIZE])
{
  shm_control_t *control = shm_control (shm_reader_base (reader));
  uint64_t before = __atomic_load_n (&control->sidecar_pid, __ATOMIC_ACQUIRE);
  uint64_t mine = (uint64_t) getpid ();
  if (is_sidecar (before) && before != mine) {
    for (int waited = 0; uuid_is_null (control->instance) && waited < UUID_PATIENCE_MS; waited++)
      poll (NULL, 0, 1);
    memcpy (ret_instance, control->instance, WEFT_UUID_SIZE);
    return WEFT_E_BUSY;
  }
  if (!__atomic_compare_exchange_n (&control->sidecar_pid, &before, mine, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
    if (!is_sidecar (before))
      return WEFT_E_STATE;
    return car_claim_take (reader, prefer, ret_instance); /* a rival was quicker: it is named above */
  }
  uuid_t uuid;
  memcpy (uuid, control->instance, sizeof uuid);
  if (uuid_is_null (uuid)) {
    if (prefer)
      memcpy (uuid, prefer, sizeof uuid);
    else
      uuid_generate_random (uuid);
    memcpy (control->instance, uuid, sizeof uuid);
  }
  memcpy (ret_instance, uuid, sizeof uuid);
  return 0;
}

void car_claim_service (shm_reader_t *reader, const char *given, char out[WEFT_SERVICE_MAX])
{
  char *kept = shm_control (shm_reader_base (reader))->service;
  if (given && given[0])
    snprintf (kept, WEFT_SERVICE_MAX, "%s", given);
  memcpy (out, kept, WEFT_SERVICE_MAX);
  out[WEFT_SERVICE_MAX - 1] = '\0';
}

void car_claim_vm (shm_reader_t *reader, car_target_t *target)
{
  const shm_head_t *head = shm_reader_base (reader);
  char vm[sizeof head->vm + 1] = "", version[sizeof head->vm_version + 1] = "";
  memcpy (vm, head->vm, sizeof head->vm);
  memcpy (version, head->vm_version, sizeof head->vm_version);
  if (!target->vm[0])
    snprintf (target->vm, sizeof target->vm, "%.15s", vm);
  version[strspn (version, "0123456789.")] = '\0'; /* "3.11.7 (main, …)" */
  if (strcmp (target->vm, vm) == 0 && strlen (version) > strlen (target->version) &&
      strncmp (version, target->version, strlen (target->version)) == 0)
    snprintf (target->version, sizeof target->version, "%.47s", version);
}

void car_claim_drop (shm_reader_t *reader)
{
  uint64_t mine = (uint64_t) getpid ();
  __atomic_compare_exchange_n (&shm_control (shm_reader_base (reader))->sidecar_pid, &mine, 0, 0,
                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
