/* SPDX-License-Identifier: Apache-2.0 */
/* A session for which one allocation after the other fails: what it was given is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../../common/clocks.h"
#include "../../../../common/status.h"
#include "../../../../instance/shm/writer.h"
#include "../../../../instance/sidecar/claim.h"
#include "../../../../instance/sidecar/session.h"

#define NEVER      UINT32_MAX
#define STEPS_MOST 100

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OTHERS_ALLOCATOR
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OTHERS_ALLOCATOR
#endif

/* Stands before that of libc; the sanitizers have their own in this place. */
static uint32_t left = NEVER; /* calls until one fails */
#ifndef OTHERS_ALLOCATOR
extern void *__libc_calloc (size_t count, size_t size);
void *calloc (size_t count, size_t size)
{
  if (left != NEVER && left-- == 0)
    return NULL;
  return __libc_calloc (count, size);
}
#endif

typedef struct {
  car_bus_t *bus;
  void *base;
  int fd;
} room_t;

/* A process of ours plays both parts: it has a probe's memory, and is the sidecar. */
static shm_reader_t *new_reader (room_t *room)
{
  shm_reader_t *reader = NULL;
  assert_int_equal (shm_create (NULL, "cpython", "3.99.1", 0, &room->base, &room->fd), 0);
  assert_int_equal (shm_reader_of_fd (room->fd, getpid (), geteuid (), &reader), 0);
  return reader;
}

static void drop_memory (room_t *room)
{
  munmap (room->base, SHM_SIZE);
  close (room->fd);
}

static uint64_t holder (const room_t *room)
{
  return __atomic_load_n (&shm_control (room->base)->sidecar_pid, __ATOMIC_RELAXED);
}

static int set_up (void **state)
{
  char why[128];
  room_t *room = malloc (sizeof *room);
  if (car_bus_new ("ipc:///tmp/weft-test-nobody", NULL, &room->bus, why, sizeof why) < 0)
    return -1;
  *state = room;
  return 0;
}

static int tear_down (void **state)
{
  room_t *room = *state;
  car_bus_destroy (&room->bus);
  free (room);
  return 0;
}

/* 1: it was made, and is over again. */
static int begin_with (room_t *room, uint32_t allowed)
{
  uint8_t instance[WEFT_UUID_SIZE];
  car_session_t *session = NULL;
  shm_reader_t *reader = new_reader (room);
  int pidfd = (int) syscall (SYS_pidfd_open, getpid (), 0);
  car_session_options_t options = {
      .pid = getpid (), .pidfd = pidfd, .controller = "ipc:///tmp/weft-test-nobody"};
  assert_int_equal (car_claim_take (reader, NULL, instance), 0);
  assert_true (holder (room) == (uint64_t) getpid ());
  left = allowed;
  int status = car_session_new (&options, room->bus, &reader, instance, &session);
  left = NEVER;
  assert_null (reader);
  assert_true (status == 0 || status == WEFT_E_NOMEM);
  assert_true ((session != NULL) == (status == 0));
  car_session_destroy (&session);
  assert_int_equal (fcntl (pidfd, F_GETFD), -1);
  assert_true (status != 0 || holder (room) == 0);
  drop_memory (room);
  return status == 0;
}

static void begins_or_gives_back (void **state)
{
  uint32_t allowed = 0;
#ifdef OTHERS_ALLOCATOR
  allowed = NEVER;
#endif
  while (!begin_with (*state, allowed))
    assert_true (++allowed < STEPS_MOST);
  assert_true (allowed > 3);
}

static int become_with (room_t *room, uint32_t allowed)
{
  uint8_t instance[WEFT_UUID_SIZE];
  room_t other = *room;
  car_session_t *session = NULL;
  shm_reader_t *reader = new_reader (room), *next = new_reader (&other);
  car_session_options_t options = {
      .pid = getpid (), .pidfd = -1, .controller = "ipc:///tmp/weft-test-nobody"};
  assert_int_equal (car_claim_take (reader, NULL, instance), 0);
  assert_int_equal (car_session_new (&options, room->bus, &reader, instance, &session), 0);
  left = allowed;
  int status = car_session_become (session, &next, weft_mono_ns ());
  left = NEVER;
  assert_true (status == 0 || status == WEFT_E_NOMEM);
  assert_true (holder (&other) == (status == 0 ? (uint64_t) getpid () : 0));
  assert_true (holder (room) == (uint64_t) getpid () || status == 0);
  assert_true ((next == NULL) == (status == 0));
  shm_reader_destroy (&next);
  car_session_destroy (&session);
  drop_memory (room);
  drop_memory (&other);
  return status == 0;
}

static void follows_an_exec_or_leaves_it_to_others (void **state)
{
  uint32_t allowed = 0;
#ifdef OTHERS_ALLOCATOR
  allowed = NEVER;
#endif
  while (!become_with (*state, allowed))
    assert_true (++allowed < STEPS_MOST);
  assert_true (allowed > 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (begins_or_gives_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown (follows_an_exec_or_leaves_it_to_others, set_up, tear_down),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
