/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals: children that announce themselves with the probe's own code, and others that
 * come to the same door. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../common/clocks.h"
#include "../../../../common/status.h"
#include "../../../../instance/probe/child.h"
#include "../../../../instance/shm/writer.h"
#include "../../../../instance/sidecar/arrivals.h"

#define CHILDREN    100
#define PATIENCE_MS 20000

static const uint8_t parent_start[WEFT_UUID_SIZE] = {4, 2};
static car_arrivals_t *door;
static unsigned looks; /* that it took: a wait is none */

static int begin (void **state)
{
  return car_arrivals_new (0, NULL, &door);
}

static int end (void **state)
{
  car_arrivals_destroy (&door);
  assert_null (door);
  return 0;
}

/* The next one who is let in; WEFT_E_TIMEOUT: nobody within `ms`. */
static int next (car_arrival_t *ret_arrival, int ms)
{
  struct pollfd item = {.fd = car_arrivals_fd (door), .events = POLLIN};
  looks = 0;
  for (uint64_t until_ns = weft_mono_ns () + (uint64_t) ms * WEFT_NS_PER_MS; weft_mono_ns () < until_ns;
       looks++) {
    if (car_arrivals_take (door, ret_arrival) == 0)
      return 0;
    poll (&item, 1, 10);
    car_arrivals_tidy (door, weft_mono_ns ());
  }
  return WEFT_E_TIMEOUT;
}

static void drop (car_arrival_t *arrival)
{
  shm_reader_destroy (&arrival->reader);
  if (arrival->pidfd >= 0)
    close (arrival->pidfd);
}

/* ---- children ------------------------------------------------------------------ */
static int announce_here (void)
{
  void *base;
  int fd;
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE, .request = 7, .name = "GET /", .name_size = 5};
  if (shm_create (NULL, "cpython", "3", 0, &base, &fd) < 0)
    return 1;
  if (shm_write (base, (uint32_t) getpid (), &report) != 1)
    return 2;
  return probe_child_announce (car_arrivals_tree (door), SHM_ARRIVAL_FORKED, parent_start, fd) == 0 ? 0 : 3;
}

/* All at once, and gone before anybody looks: what each has written is there. */
static void children_that_end_at_once (void **state)
{
  pid_t child[CHILDREN];
  for (int i = 0; i < CHILDREN; i++)
    if ((child[i] = fork ()) == 0)
      _exit (announce_here ());
  for (int i = 0; i < CHILDREN; i++) {
    int status;
    assert_int_equal (waitpid (child[i], &status, 0), child[i]);
    assert_int_equal (status, 0);
  }
  for (int n = 0; n < CHILDREN; n++) {
    car_arrival_t arrival;
    weft_report_t report;
    assert_int_equal (next (&arrival, PATIENCE_MS), 0);
    int known = 0;
    for (int i = 0; i < CHILDREN; i++)
      if (child[i] == arrival.pid) {
        child[i] = 0; /* each once */
        known++;
      }
    assert_int_equal (known, 1);
    assert_memory_equal (arrival.parent_start, parent_start, sizeof parent_start);
    assert_int_equal (arrival.kind, SHM_ARRIVAL_FORKED);
    assert_int_equal (shm_reader_next (arrival.reader, &report), 1);
    assert_true (report.request == 7);
    drop (&arrival);
  }
  assert_int_equal (car_arrivals_refused (door), 0);
}

static void one_that_lives_has_a_pidfd (void **state)
{
  int hold[2];
  assert_int_equal (pipe (hold), 0);
  pid_t child = fork ();
  if (child == 0) {
    char byte;
    close (hold[1]);
    int bad = announce_here ();
    _exit (read (hold[0], &byte, 1) == 0 ? bad : 9);
  }
  car_arrival_t arrival;
  assert_int_equal (next (&arrival, PATIENCE_MS), 0);
  assert_int_equal (arrival.pid, child);
  struct pollfd item = {.fd = arrival.pidfd, .events = POLLIN};
  assert_int_equal (poll (&item, 1, 0), 0);
  close (hold[1]), close (hold[0]);
  assert_int_equal (poll (&item, 1, PATIENCE_MS), 1);
  drop (&arrival);
  waitpid (child, NULL, 0);
}

/* ---- others ----------------------------------------------------------------------- */
static int knock (void)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int at = snprintf (address.sun_path + 1, sizeof address.sun_path - 1, SHM_TREE_PREFIX);
  for (int i = 0; i < SHM_TREE_NAME_SIZE; i++)
    at += sprintf (address.sun_path + 1 + at, "%02x", car_arrivals_tree (door)->name[i]);
  int fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  assert_int_equal (connect (fd, (struct sockaddr *) &address,
                             (socklen_t) (offsetof (struct sockaddr_un, sun_path) + 1 + (size_t) at)),
                    0);
  return fd;
}

static void say (int fd, const void *data, size_t size, const int *memory, int count)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE (8 * sizeof (int))];
  } control;
  memset (&control, 0, sizeof control);
  struct iovec part = {.iov_base = (void *) (uintptr_t) data, .iov_len = size};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE ((size_t) count * sizeof (int));
    struct cmsghdr *header = CMSG_FIRSTHDR (&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN ((size_t) count * sizeof (int));
    memcpy (CMSG_DATA (header), memory, (size_t) count * sizeof (int));
  }
  assert_true (sendmsg (fd, &message, MSG_NOSIGNAL) >= 0);
}

static unsigned count_fds (void)
{
  unsigned count = 0;
  for (int fd = 0; fd < 1024; fd++)
    count += fcntl (fd, F_GETFD) >= 0;
  return count;
}

static void strangers_are_turned_away (void **state)
{
  void *base;
  int good, unsealed = memfd_create (SHM_MEMFD_NAME, MFD_ALLOW_SEALING), null = open ("/dev/null", O_RDWR);
  assert_int_equal (shm_create (NULL, "", "", 0, &base, &good), 0);
  assert_int_equal (ftruncate (unsealed, SHM_SIZE), 0);
  shm_announcement_t right = {.magic = SHM_MAGIC, .kind = SHM_ARRIVAL_FORKED};
  memcpy (right.key, car_arrivals_tree (door)->key, sizeof right.key);
  shm_announcement_t magic = right, kind = right, key = right;
  magic.magic++;
  kind.kind = 3;
  key.key[15] ^= 1;
  int four[4] = {good, good, good, good};
  const struct {
    const void *data;
    size_t size;
    const int *memory;
    int count;
  } words[] = {{&right, sizeof right, NULL, 0},
               {&right, sizeof right - 1, &good, 1},
               {&magic, sizeof magic, &good, 1},
               {&kind, sizeof kind, &good, 1},
               {&key, sizeof key, &good, 1},
               {&key, sizeof key, four, 4},
               {&right, sizeof right, &unsealed, 1},
               {&right, sizeof right, &null, 1},
               {"", 1, NULL, 0}};
  unsigned before = count_fds ();
  car_arrival_t arrival;
  for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
    int fd = knock ();
    say (fd, words[i].data, words[i].size, words[i].memory, words[i].count);
    close (fd);
    assert_int_equal (next (&arrival, 50), WEFT_E_TIMEOUT);
    assert_int_equal (car_arrivals_refused (door), i + 1);
    assert_int_equal (count_fds (), before);
  }
  /* The head names another process: this one is not its owner. */
  ((shm_head_t *) base)->pid++;
  int fd = knock ();
  say (fd, &right, sizeof right, &good, 1);
  assert_int_equal (next (&arrival, 50), WEFT_E_TIMEOUT);
  ((shm_head_t *) base)->pid--;
  close (fd);
  fd = knock ();
  say (fd, &right, sizeof right, four, 4); /* more than one: the first counts, the others are closed */
  assert_int_equal (next (&arrival, PATIENCE_MS), 0);
  assert_int_equal (arrival.pid, getpid ());
  drop (&arrival);
  close (fd);
  assert_int_equal (count_fds (), before);
  munmap (base, SHM_SIZE);
  close (good), close (unsealed), close (null);
}

/* V3: they take all places; who has something to say comes after them. */
static void silent_ones_hold_nobody_up (void **state)
{
  int fd[CAR_ARRIVALS_WAITING_MAX + 8];
  for (unsigned i = 0; i < sizeof fd / sizeof fd[0]; i++)
    fd[i] = knock ();
  pid_t child = fork ();
  if (child == 0)
    _exit (announce_here ());
  car_arrival_t arrival;
  assert_int_equal (next (&arrival, 3 * CAR_ARRIVALS_WAIT_MS + PATIENCE_MS), 0);
  assert_int_equal (arrival.pid, child);
  assert_true (looks < 1000);
  drop (&arrival);
  waitpid (child, NULL, 0);
  for (unsigned i = 0; i < sizeof fd / sizeof fd[0]; i++)
    close (fd[i]);
}

/* One that has just come in is no silent one, also by a clock that was read before. */
static void a_look_of_before_turns_nobody_away (void **state)
{
  uint64_t before_ns = weft_mono_ns ();
  int fd = knock ();
  car_arrival_t arrival;
  assert_int_equal (next (&arrival, 50), WEFT_E_TIMEOUT);
  car_arrivals_tidy (door, before_ns);
  assert_int_equal (car_arrivals_refused (door), 0);
  close (fd);
}

static void a_name_is_kept_or_another_is_drawn (void **state)
{
  shm_tree_t tree = *car_arrivals_tree (door);
  car_arrivals_t *other = NULL;
  assert_int_equal (car_arrivals_new (0, &tree, &other), 0); /* taken: by `door` */
  assert_memory_not_equal (car_arrivals_tree (other), &tree, sizeof tree);
  car_arrivals_destroy (&other);
  car_arrivals_destroy (&door);
  assert_int_equal (car_arrivals_new (0, &tree, &door), 0); /* as its successor does */
  assert_memory_equal (car_arrivals_tree (door), &tree, sizeof tree);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (children_that_end_at_once, begin, end),
      cmocka_unit_test_setup_teardown (one_that_lives_has_a_pidfd, begin, end),
      cmocka_unit_test_setup_teardown (strangers_are_turned_away, begin, end),
      cmocka_unit_test_setup_teardown (silent_ones_hold_nobody_up, begin, end),
      cmocka_unit_test_setup_teardown (a_look_of_before_turns_nobody_away, begin, end),
      cmocka_unit_test_setup_teardown (a_name_is_kept_or_another_is_drawn, begin, end),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
