/* SPDX-License-Identifier: Apache-2.0 */
#include "arrivals.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/ids.h"
#include "../../common/status.h"
#include "target.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define DOOR UINT32_MAX /* epoll's word for the listening socket; else a place in waiting[] */

typedef struct {
  int fd; /* -1: free */
  uint64_t since_ns;
} waiting_t;

struct car_arrivals_t {
  shm_tree_t tree;
  int door, epoll;
  waiting_t waiting[CAR_ARRIVALS_WAITING_MAX];
  unsigned inside; /* of waiting[] */
  int shut;        /* all places are taken: the door is not looked at */
  uint64_t refused;
};

/* ---- the door ------------------------------------------------------------- */

int car_arrivals_draw (shm_tree_t *ret_tree)
{
  return getrandom (ret_tree, sizeof *ret_tree, 0) == (ssize_t) sizeof *ret_tree ? 0 : WEFT_E_IO;
}

int car_arrivals_drawn (const shm_tree_t *tree)
{
  static const shm_tree_t none;
  return tree && memcmp (tree, &none, sizeof none) != 0;
}

/* A socket belongs for ever to the network namespace it was made in, and abstract
 * names are known in theirs alone. */
static int open_socket (pid_t of)
{
  char path[64];
  int fd = -1;
  if (of == 0 || car_target_shares (of, "net") != 0)
    return socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  snprintf (path, sizeof path, "/proc/%d/ns/net", (int) of);
  int theirs = open (path, O_RDONLY | O_CLOEXEC);
  int ours = open ("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (theirs >= 0 && ours >= 0 && setns (theirs, CLONE_NEWNET) == 0) {
    fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (setns (ours, CLONE_NEWNET) != 0 && fd >= 0) {
      close (fd);
      fd = -1;
    }
  }
  if (theirs >= 0)
    close (theirs);
  if (ours >= 0)
    close (ours);
  return fd;
}

static int bind_name (int fd, const shm_tree_t *tree)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char *at = stpcpy (address.sun_path + 1, SHM_TREE_PREFIX); /* abstract: a zero first */
  weft_hex_put (at, tree->name, SHM_TREE_NAME_SIZE);
  at += 2 * SHM_TREE_NAME_SIZE;
  return bind (fd, (struct sockaddr *) &address, (socklen_t) (at - (char *) &address));
}

static int open_door (car_arrivals_t *self, pid_t of, const shm_tree_t *wanted)
{
  self->door = open_socket (of);
  if (self->door < 0)
    return WEFT_E_IO;
  if (car_arrivals_drawn (wanted))
    self->tree = *wanted;
  if (!car_arrivals_drawn (wanted) || bind_name (self->door, wanted) != 0) {
    int status = car_arrivals_draw (&self->tree);
    if (status < 0 || bind_name (self->door, &self->tree) != 0)
      return status < 0 ? status : WEFT_E_IO;
  }
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = DOOR};
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  return listen (self->door, CAR_ARRIVALS_BACKLOG) == 0 && self->epoll >= 0 &&
                 epoll_ctl (self->epoll, EPOLL_CTL_ADD, self->door, &event) == 0
             ? 0
             : WEFT_E_IO;
}

int car_arrivals_new (pid_t of, const shm_tree_t *wanted, car_arrivals_t **ret_self)
{
  car_arrivals_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->door = self->epoll = -1;
  for (unsigned i = 0; i < CAR_ARRIVALS_WAITING_MAX; i++)
    self->waiting[i].fd = -1;
  int status = open_door (self, of, wanted);
  if (status < 0)
    car_arrivals_destroy (&self);
  else
    *ret_self = self;
  return status;
}

void car_arrivals_destroy (car_arrivals_t **self_p)
{
  car_arrivals_t *self = *self_p;
  if (!self)
    return;
  for (unsigned i = 0; i < CAR_ARRIVALS_WAITING_MAX; i++)
    if (self->waiting[i].fd >= 0)
      close (self->waiting[i].fd);
  if (self->door >= 0)
    close (self->door);
  if (self->epoll >= 0)
    close (self->epoll);
  free (self);
  *self_p = NULL;
}

/* ---- who comes in --------------------------------------------------------- */

static void set_door (car_arrivals_t *self, int shut)
{
  struct epoll_event event = {.events = shut ? 0 : EPOLLIN, .data.u32 = DOOR};
  if (epoll_ctl (self->epoll, EPOLL_CTL_MOD, self->door, &event) == 0)
    self->shut = shut;
}

static void drop (car_arrivals_t *self, waiting_t *place)
{
  close (place->fd);
  place->fd = -1;
  self->inside--;
  if (self->shut)
    set_door (self, 0);
}

/* V3 */
void car_arrivals_tidy (car_arrivals_t *self, uint64_t mono_ns)
{
  for (unsigned i = 0; self->inside && i < CAR_ARRIVALS_WAITING_MAX; i++) {
    waiting_t *place = &self->waiting[i];
    if (place->fd < 0 || mono_ns <= place->since_ns + CAR_ARRIVALS_WAIT_MS * WEFT_NS_PER_MS)
      continue; /* the caller's time may be a little older */
    drop (self, place);
    self->refused++;
  }
}

static void let_in (car_arrivals_t *self, uint64_t now)
{
  unsigned i = 0;
  while (i < CAR_ARRIVALS_WAITING_MAX && self->waiting[i].fd >= 0)
    i++;
  if (i == CAR_ARRIVALS_WAITING_MAX) { /* they stay in the backlog */
    set_door (self, 1);
    return;
  }
  int fd = accept4 (self->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
  if (fd < 0)
    return;
  if (epoll_ctl (self->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    close (fd);
    self->refused++;
    return;
  }
  self->waiting[i] = (waiting_t){.fd = fd, .since_ns = now};
  self->inside++;
}

/* The descriptors that came along; the first one is returned, any other closed. */
static int take_descriptor (struct msghdr *message)
{
  int first = -1;
  for (struct cmsghdr *part = CMSG_FIRSTHDR (message); part; part = CMSG_NXTHDR (message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
      continue;
    size_t count = (part->cmsg_len - CMSG_LEN (0)) / sizeof (int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy (&fd, CMSG_DATA (part) + i * sizeof fd, sizeof fd);
      if (first < 0)
        first = fd;
      else
        close (fd);
    }
  }
  return first;
}

static ssize_t read_announcement (int fd, shm_announcement_t *ret_announcement, int *ret_memory)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE (4 * sizeof (int))];
  } control;
  struct iovec part = {.iov_base = ret_announcement, .iov_len = sizeof *ret_announcement};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t size = recvmsg (fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  *ret_memory = size >= 0 ? take_descriptor (&message) : -1;
  return size;
}

/* The key is compared in a time that says nothing about it. */
static int is_ours (const car_arrivals_t *self, const shm_announcement_t *announcement)
{
  uint8_t differs = 0;
  for (unsigned i = 0; i < SHM_TREE_KEY_SIZE; i++)
    differs |= announcement->key[i] ^ self->tree.key[i];
  return announcement->magic == SHM_MAGIC && !differs &&
         (announcement->kind == SHM_ARRIVAL_FORKED || announcement->kind == SHM_ARRIVAL_STARTED);
}

static int open_pidfd (int fd, pid_t pid)
{
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (getsockopt (fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
    return pidfd;
  return errno == ENOPROTOOPT ? (int) syscall (SYS_pidfd_open, pid, 0) : -1;
}

static int hear (car_arrivals_t *self, int fd, car_arrival_t *ret_arrival)
{
  struct ucred peer;
  socklen_t peer_size = sizeof peer;
  shm_announcement_t announcement;
  int memory = -1;
  ssize_t size = read_announcement (fd, &announcement, &memory);
  int status = WEFT_E_MALFORMED;
  if (size == (ssize_t) sizeof announcement && memory >= 0 && is_ours (self, &announcement) &&
      getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0 && peer.pid > 0)
    status = shm_reader_of_fd (memory, peer.pid, peer.uid, &ret_arrival->reader);
  if (memory >= 0)
    close (memory);
  if (status < 0)
    return status;
  ret_arrival->pid = peer.pid;
  ret_arrival->pidfd = open_pidfd (fd, peer.pid);
  ret_arrival->kind = (shm_arrival_t) announcement.kind;
  memcpy (ret_arrival->parent_start, announcement.parent_start, WEFT_UUID_SIZE);
  return 0;
}

int car_arrivals_take (car_arrivals_t *self, car_arrival_t *ret_arrival)
{
  struct epoll_event event;
  uint64_t now = weft_mono_ns ();
  for (unsigned i = 0; i < 2 * CAR_ARRIVALS_WAITING_MAX && epoll_wait (self->epoll, &event, 1, 0) == 1; i++) {
    if (event.data.u32 == DOOR) {
      let_in (self, now);
      continue;
    }
    waiting_t *place = &self->waiting[event.data.u32];
    int status = hear (self, place->fd, ret_arrival);
    drop (self, place);
    if (status == 0)
      return 0;
    self->refused++;
  }
  return WEFT_E_NOT_FOUND;
}

const shm_tree_t *car_arrivals_tree (const car_arrivals_t *self)
{
  return &self->tree;
}

int car_arrivals_fd (const car_arrivals_t *self)
{
  return self->epoll;
}

uint64_t car_arrivals_refused (const car_arrivals_t *self)
{
  return self->refused;
}
