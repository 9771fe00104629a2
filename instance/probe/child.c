/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../common/ids.h"
#include "../../common/status.h"

#define PAGE_TRIES 1000 /* a sidecar writes a configuration in less */

/* ---- what it has -------------------------------------------------------- */
static int copy_configuration (void *parent, void *child)
{
  const shm_control_t *from = shm_control (parent);
  shm_control_t *to = shm_control (child);
  for (int i = 0; i < PAGE_TRIES; i++) {
    uint32_t seq = __atomic_load_n (&from->config_seq, __ATOMIC_ACQUIRE);
    if (seq & 1)
      continue;
    to->actions = from->actions;
    to->carrier = from->carrier;
    to->embed_to = from->embed_to;
    to->rule_count = from->rule_count;
    memcpy (to->rules, from->rules, sizeof to->rules);
    memcpy (shm_filter (child), shm_filter (parent), sizeof (shm_filter_t));
    __atomic_thread_fence (__ATOMIC_ACQUIRE);
    if (__atomic_load_n (&from->config_seq, __ATOMIC_RELAXED) == seq) {
      to->config_seq = seq;
      return 0;
    }
  }
  to->actions = to->rule_count = 0;
  memset (shm_filter (child), 0, sizeof (shm_filter_t));
  return WEFT_E_BUSY;
}

void probe_child_inherit (void *parent, void *child)
{
  const shm_control_t *from = shm_control (parent);
  shm_control_t *to = shm_control (child);
  if (copy_configuration (parent, child) == 0)
    to->lease_until_ns = __atomic_load_n (&from->lease_until_ns, __ATOMIC_ACQUIRE);
  to->tree = from->tree;
  memcpy (to->service, from->service, sizeof to->service);
}

int probe_child_tree (shm_tree_t *ret_tree)
{
  const char *text = getenv (PROBE_TREE_ENVIRONMENT);
  return text && strlen (text) == 2 * sizeof *ret_tree &&
         weft_hex_get ((uint8_t *) ret_tree, text, sizeof *ret_tree) == 0;
}

/* ---- how it says so ------------------------------------------------------- */
static socklen_t name_of (const shm_tree_t *tree, struct sockaddr_un *ret_address)
{
  memset (ret_address, 0, sizeof *ret_address);
  ret_address->sun_family = AF_UNIX;
  char *at = ret_address->sun_path + 1; /* abstract: a zero first */
  memcpy (at, SHM_TREE_PREFIX, sizeof SHM_TREE_PREFIX - 1);
  at += sizeof SHM_TREE_PREFIX - 1;
  weft_hex_put (at, tree->name, sizeof tree->name);
  return (socklen_t) (at + 2 * sizeof tree->name - (char *) ret_address);
}

/* The name may be anybody's once its sidecar has died. */
static int may_have_it (int fd)
{
  struct ucred peer;
  socklen_t size = sizeof peer;
  return getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == 0 || peer.uid == geteuid ());
}

static int hand_over (int fd, const shm_announcement_t *word, int memory_fd)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE (sizeof (int))];
  } control;
  memset (&control, 0, sizeof control);
  struct iovec part;
  part.iov_base = (void *) (uintptr_t) word;
  part.iov_len = sizeof *word;
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR (&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN (sizeof memory_fd);
  memcpy (CMSG_DATA (header), &memory_fd, sizeof memory_fd);
  return sendmsg (fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t) sizeof *word ? 0 : WEFT_E_BUSY;
}

int probe_child_announce (const shm_tree_t *tree, shm_arrival_t kind,
                          const uint8_t parent_start[WEFT_UUID_SIZE], int memory_fd)
{
  static const shm_tree_t none;
  struct sockaddr_un address;
  if (memcmp (tree, &none, sizeof none) == 0)
    return WEFT_E_NOT_FOUND;
  shm_announcement_t word = {.magic = SHM_MAGIC, .kind = kind};
  memcpy (word.key, tree->key, sizeof word.key);
  memcpy (word.parent_start, parent_start, sizeof word.parent_start);
  int fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return WEFT_E_BUSY;
  int status = WEFT_E_BUSY;
  if (connect (fd, (struct sockaddr *) &address, name_of (tree, &address)) == 0)
    status = may_have_it (fd) ? hand_over (fd, &word, memory_fd) : WEFT_E_DENIED;
  close (fd);
  return status;
}
