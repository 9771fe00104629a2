/* SPDX-License-Identifier: Apache-2.0 */
/* writer: the probe's side of the rings. A ring is borrowed for one write by a
 * compare-and-swap of its owner word; nobody waits for anybody.
 *
 *  W1  only the owner of a ring writes its head and its data
 *  W2  head moves once per record, after the last byte of it (L4): a writer
 *      that dies in between leaves nothing torn, only a lock for the sidecar
 *  W3  nothing in the memory is believed: positions are masked, a tail beyond
 *      the head makes the ring full */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../../common/fault_step.h"
#include "../../common/ids.h"
#include "../../common/status.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u /* Linux 6.3; older kernels answer EINVAL */
#endif

#define HIGH_FD          100 /* applications number their own fds from below, some up to a fixed 64 */
#define QUIESCE_SLEEP_NS 50000
#define NO_RING          UINT32_MAX

/* The ring this thread used last: it is warm and, usually, nobody else's. */
static __thread uint32_t last_ring = NO_RING;

static int make_memfd (void)
{
  int low = memfd_create (SHM_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (low < 0 && errno == EINVAL)
    low = memfd_create (SHM_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (low < 0)
    return -1;
  int high = fcntl (low, F_DUPFD_CLOEXEC, HIGH_FD);
  if (high < 0 && low <= 2)
    high = fcntl (low, F_DUPFD_CLOEXEC, 3);
  if (high < 0 && low > 2)
    return low;
  close (low);
  return high;
}

/* A file size limit would turn ftruncate into SIGXFSZ. */
static int size_allowed (void)
{
  struct rlimit limit;
  return getrlimit (RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= SHM_SIZE;
}

static void fill_head (shm_head_t *head, const char *vm, const char *vm_version, uint64_t probe_base)
{
  head->version = SHM_VERSION;
  head->struct_size = sizeof *head;
  head->total_size = SHM_SIZE;
  head->pid = (uint32_t) getpid ();
  head->uid = (uint32_t) geteuid ();
  head->probe_base = probe_base;
  weft_ids_t ids;
  weft_ids_seed (&ids);
  weft_ids_task (&ids, head->start);
  strncpy (head->vm, vm ? vm : "", sizeof head->vm - 1);
  strncpy (head->vm_version, vm_version ? vm_version : "", sizeof head->vm_version - 1);
  __atomic_store_n (&head->magic, SHM_MAGIC, __ATOMIC_RELEASE);
}

int shm_create (void *fixed, const char *vm, const char *vm_version, uint64_t probe_base, void **ret_base,
                int *ret_fd)
{
  int saved = errno;
  int status = WEFT_E_IO;
  int fd = size_allowed () ? make_memfd () : -1;
  if (fd < 0)
    goto out;
  if (ftruncate (fd, SHM_SIZE) != 0 ||
      fcntl (fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    goto out;
  void *base = mmap (fixed, SHM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | (fixed ? MAP_FIXED : 0), fd, 0);
  if (base == MAP_FAILED)
    goto out;
  fill_head (base, vm, vm_version, probe_base);
  *ret_base = base;
  *ret_fd = fd;
  fd = -1;
  status = 0;
out:
  if (fd >= 0)
    close (fd);
  errno = saved;
  return status;
}

int shm_retire (void *base)
{
  int saved = errno;
  void *p = mmap (base, SHM_SIZE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  errno = saved;
  return p == MAP_FAILED ? WEFT_E_IO : 0;
}

/* Of a few bytes, usually: the string instructions that stand for such a copy cost more to start. */
static inline void copy_name (char *to, const char *from, size_t size)
{
  enum { WORD = 8 };
  if (size < WORD) {
    memcpy (to, from, size);
    return;
  }
  for (size_t at = 0; at < size - WORD; at += WORD)
    memcpy (to + at, from + at, WORD);
  memcpy (to + size - WORD, from + size - WORD, WORD);
}

static void fill_event (shm_event_t *event, uint32_t size, uint32_t tid, const weft_report_t *report,
                        uint32_t name_size)
{
  event->size = size;
  event->kind = report->kind;
  event->error = report->error;
  event->reason = report->reason;
  event->protocol = report->protocol;
  event->status = report->status;
  event->name_size = (uint16_t) name_size;
  event->flags = report->flags | (report->name_size > WEFT_NAME_MAX ? WEFT_REPORT_CUT : 0);
  event->instruction = report->instruction;
  event->tid = tid;
  memcpy (event->task, report->task, sizeof event->task);
  event->request = report->request;
  event->subtask = report->subtask;
  event->start_ns = report->start_ns;
  event->end_ns = report->end_ns;
  event->cpu_ns = report->cpu_ns;
  event->local = report->local;
  event->peer = report->peer;
  if (report->kind == WEFT_REPORT_OPAQUE) {
    memcpy ((char *) event + SHM_EVENT_NAME_AT, &report->opaque, sizeof report->opaque);
    return;
  }
  char *name = (char *) event + SHM_EVENT_NAME_AT;
  if (size > SHM_EVENT_NAME_AT) {
    /* The last word first: its tail past the name must be zero. */
    memset ((char *) event + size - 8, 0, 8);
    copy_name (name, report->name, name_size);
  }
}

/* Into a ring that the caller owns. 1, or 0: full. */
static int put (shm_ring_t *ring, uint8_t *data, uint32_t tid, const weft_report_t *report)
{
  uint32_t name_size = report->name_size > WEFT_NAME_MAX ? WEFT_NAME_MAX : report->name_size;
  uint32_t size = (SHM_EVENT_NAME_AT + name_size + 7u) & ~7u;
  if (report->kind == WEFT_REPORT_OPAQUE) {
    name_size = 0;
    size = SHM_EVENT_OPAQUE;
  }
  /* Damage may have left them unaligned; rounded down, the ring is of use again (W3). */
  uint64_t head = __atomic_load_n (&ring->head, __ATOMIC_RELAXED) & ~7ull;
  uint64_t tail = __atomic_load_n (&ring->tail, __ATOMIC_ACQUIRE) & ~7ull;
  uint64_t used = head - tail;
  uint32_t at = (uint32_t) head & (SHM_RING_SIZE - 1);
  uint32_t room = SHM_RING_SIZE - at;
  uint32_t padding = room < size ? room : 0;
  if (used > SHM_RING_SIZE || SHM_RING_SIZE - used < padding + size)
    return 0;
  if (padding) {
    /* room is a multiple of 8: the size and kind of a padding record always fit. */
    shm_event_t *pad = (shm_event_t *) (data + at);
    pad->size = padding;
    pad->kind = 0;
    at = 0;
  }
  fill_event ((shm_event_t *) (data + at), size, tid, report, name_size);
  __atomic_store_n (&ring->written, ring->written + 1, __ATOMIC_RELAXED);
  __atomic_store_n (&ring->head, head + padding + size, __ATOMIC_RELEASE);
  return 1;
}

int shm_write (void *base, uint32_t tid, const weft_report_t *report)
{
  shm_status_t *status = shm_status (base);
  uint32_t first = last_ring != NO_RING ? last_ring : tid % SHM_RINGS;
  int full = 0;
  for (uint32_t i = WEFT_STEP_FAILS ("ring") ? SHM_RINGS : 0; i < SHM_RINGS; i++) {
    uint32_t n = (first + i) % SHM_RINGS;
    shm_ring_t *ring = shm_ring (base, n);
    uint32_t nobody = 0;
    if (__atomic_load_n (&ring->owner, __ATOMIC_RELAXED) != 0 ||
        !__atomic_compare_exchange_n (&ring->owner, &nobody, tid, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
      continue;
    /* After the lock, not before: the leaving thread stores LEFT, then waits for the locks. */
    if (__atomic_load_n (&status->state, __ATOMIC_SEQ_CST) == SHM_STATE_LEFT) {
      __atomic_store_n (&ring->owner, 0, __ATOMIC_RELEASE);
      return 0;
    }
    int done = put (ring, shm_ring_data (base, n), tid, report);
    __atomic_store_n (&ring->owner, 0, __ATOMIC_RELEASE);
    if (done) {
      last_ring = n;
      return 1;
    }
    full = 1;
  }
  __atomic_fetch_add (&status->lost[full ? WEFT_LOSS_RING_FULL : WEFT_LOSS_RING_BUSY], 1, __ATOMIC_RELAXED);
  return 0;
}

static int borrowed (void *base)
{
  for (uint32_t n = 0; n < SHM_RINGS; n++)
    if (__atomic_load_n (&shm_ring (base, n)->owner, __ATOMIC_SEQ_CST) != 0)
      return 1;
  return 0;
}

int shm_quiesce (void *base, unsigned timeout_us)
{
  int saved = errno;
  uint64_t left_ns = (uint64_t) timeout_us * 1000;
  int status = 0;
  while (borrowed (base)) {
    if (left_ns < QUIESCE_SLEEP_NS) {
      status = WEFT_E_TIMEOUT;
      break;
    }
    left_ns -= QUIESCE_SLEEP_NS;
    struct timespec pause = {0, QUIESCE_SLEEP_NS};
    nanosleep (&pause, NULL);
  }
  errno = saved;
  return status;
}
