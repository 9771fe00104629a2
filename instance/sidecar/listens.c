/* SPDX-License-Identifier: Apache-2.0 */
#include "listens.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../../common/status.h"
#include "target.h"

#define LISTENERS_MAX    256 /* listening sockets of one network namespace that are compared */
#define PORTS_MAX        8   /* printed */
#define TCP_STATE_LISTEN 0x0a
#define ANSWER_MAX       16384 /* bytes of one piece of the kernel's answer */
#define ANSWER_MS        200

typedef struct {
  unsigned long inode;
  unsigned port;
} listener_t;

typedef struct {
  listener_t one[LISTENERS_MAX];
  size_t count;
} listeners_t;

/* ---- from /proc ---------------------------------------------------------------- */
/* "0: LOCAL:PORT REMOTE:PORT STATE queues timer retries uid timeout INODE …" */
static int parse_listener (char *line, listener_t *ret_listener)
{
  enum { LOCAL = 1, STATE = 3, INODE = 9, WORDS };
  char *word[WORDS], *rest = NULL;
  for (unsigned i = 0; i < WORDS; i++)
    if (!(word[i] = strtok_r (i ? NULL : line, " \n", &rest)))
      return WEFT_E_MALFORMED;
  const char *colon = strchr (word[LOCAL], ':');
  if (!colon || strtoul (word[STATE], NULL, 16) != TCP_STATE_LISTEN)
    return WEFT_E_MALFORMED;
  ret_listener->port = (unsigned) strtoul (colon + 1, NULL, 16);
  ret_listener->inode = strtoul (word[INODE], NULL, 10);
  return 0;
}

static void read_table (pid_t pid, const char *file, listeners_t *out)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/net/%s", (int) pid, file);
  FILE *in = fopen (path, "re");
  if (!in)
    return;
  char line[512];
  while (out->count < LISTENERS_MAX && fgets (line, sizeof line, in))
    if (parse_listener (line, &out->one[out->count]) == 0)
      out->count++;
  fclose (in);
}

/* ---- from the kernel -------------------------------------------------------------- */
static int ask (int fd, int family)
{
  struct {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
  } request = {.head = {.nlmsg_len = sizeof request,
                        .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                        .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
               .body = {.sdiag_family = (uint8_t) family,
                        .sdiag_protocol = IPPROTO_TCP,
                        .idiag_states = 1u << TCP_STATE_LISTEN}};
  return send (fd, &request, sizeof request, 0) == (ssize_t) sizeof request ? 0 : WEFT_E_IO;
}

/* Takes one piece. 1: more follows; 0: the end; WEFT_E_IO: no answer to that question. */
static int take_answer (int fd, listeners_t *out)
{
  union {
    struct nlmsghdr head;
    char bytes[ANSWER_MAX];
  } answer;
  ssize_t got = recv (fd, &answer, sizeof answer, 0);
  if (got <= 0)
    return WEFT_E_IO;
  size_t left = (size_t) got;
  for (struct nlmsghdr *head = &answer.head; NLMSG_OK (head, left); head = NLMSG_NEXT (head, left)) {
    if (head->nlmsg_type == NLMSG_DONE)
      return 0;
    if (head->nlmsg_type == NLMSG_ERROR)
      return WEFT_E_IO;
    const struct inet_diag_msg *socket = NLMSG_DATA (head);
    if (head->nlmsg_len < NLMSG_LENGTH (sizeof *socket) || out->count == LISTENERS_MAX)
      continue;
    out->one[out->count++] = (listener_t){socket->idiag_inode, ntohs (socket->id.idiag_sport)};
  }
  return 1;
}

static int ask_kernel (listeners_t *out)
{
  static const int families[] = {AF_INET, AF_INET6};
  struct timeval patience = {.tv_usec = ANSWER_MS * 1000};
  int fd = socket (AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0)
    return WEFT_E_UNSUPPORTED;
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  int status = 0;
  for (unsigned i = 0; i < 2 && status == 0; i++) {
    status = ask (fd, families[i]);
    for (int more = status == 0; more > 0;)
      status = more = take_answer (fd, out);
  }
  close (fd);
  return status;
}

/* ---- both --------------------------------------------------------------------------- */
static int compare_ports (const void *a, const void *b)
{
  unsigned left = *(const unsigned *) a, right = *(const unsigned *) b;
  return left < right ? -1 : left > right;
}

/* Ports of the listeners whose socket is among the descriptors of the process. */
static size_t match_descriptors (pid_t pid, const listeners_t *listeners, unsigned ports[PORTS_MAX])
{
  char path[64], link[64];
  snprintf (path, sizeof path, "/proc/%d/fd", (int) pid);
  DIR *dir = opendir (path);
  if (!dir)
    return 0;
  size_t found = 0;
  struct dirent *entry;
  while (found < PORTS_MAX && (entry = readdir (dir))) {
    ssize_t size = readlinkat (dirfd (dir), entry->d_name, link, sizeof link - 1);
    if (size <= 8 || memcmp (link, "socket:[", 8) != 0)
      continue;
    link[size] = '\0';
    unsigned long inode = strtoul (link + 8, NULL, 10);
    for (size_t i = 0; i < listeners->count && found < PORTS_MAX; i++)
      if (listeners->one[i].inode == inode)
        ports[found++] = listeners->one[i].port;
  }
  closedir (dir);
  return found;
}

void car_listens (pid_t pid, char out[CAR_LISTENS_MAX])
{
  listeners_t listeners = {.count = 0};
  unsigned ports[PORTS_MAX];
  if (car_target_shares (pid, "net") != 1 || ask_kernel (&listeners) < 0) {
    listeners.count = 0;
    read_table (pid, "tcp", &listeners);
    read_table (pid, "tcp6", &listeners);
  }
  size_t found = match_descriptors (pid, &listeners, ports), at = 0;
  qsort (ports, found, sizeof ports[0], compare_ports);
  out[0] = '\0';
  for (size_t i = 0; i < found && at < CAR_LISTENS_MAX; i++)
    if (i == 0 || ports[i] != ports[i - 1])
      at += (size_t) snprintf (out + at, CAR_LISTENS_MAX - at, "%s:%u", at ? " " : "", ports[i]);
}
