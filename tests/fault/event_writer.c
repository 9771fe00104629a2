/* SPDX-License-Identifier: Apache-2.0 */
/* event_writer: a VM as the fault tests need one. Started under `weft run`, it
 * carries the shipped probe; its threads write events into that probe's memory
 * with the shipped writer, while the probe's actions are in force, and count in
 * a file what they wrote, so that the counts survive a SIGKILL.
 *
 *   event_writer FILE     the file is the page below; the test makes it, of 4096 zeros,
 *                         and steers by its first words
 *
 * Every event is a task of its own: 8 bytes of tag, then thread and number. Two
 * writers with one tag write of the same tasks. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../instance/shm/writer.h"

#define THREADS   2
#define FDS_MAX   1024
#define NS_PER_MS 1000000

typedef struct {
  uint64_t began, written, refused; /* calls of shm_write: begun, 1, 0 */
  uint64_t reserved[5];
} thread_page_t;

typedef struct {
  uint32_t per_ms;  /* events a thread writes each millisecond; the test's word */
  uint32_t ready;   /* 1: the probe's memory was found */
  uint64_t tag;     /* the test's: the first half of every task id, big endian */
  uint32_t further; /* the test's; 0: each event is the root of its task, 1: a request of it from elsewhere */
  uint32_t reserved0;
  uint64_t reserved[5];
  thread_page_t thread[THREADS];
} page_t;
_Static_assert(sizeof (page_t) == 64 + THREADS * 64, "read by the harness");

static page_t *page;
static void *memory;

static void *find_memory (void)
{
  static const char wanted[] = "/memfd:" SHM_MEMFD_NAME;
  char path[64], link[64];
  for (int fd = 3; fd < FDS_MAX; fd++) {
    snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink (path, link, sizeof link);
    if (n < (ssize_t) sizeof wanted - 1 || memcmp (link, wanted, sizeof wanted - 1) != 0)
      continue;
    void *base = mmap (NULL, SHM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return base == MAP_FAILED ? NULL : base;
  }
  return NULL;
}

static void put_big_endian (uint8_t *out, uint64_t value)
{
  for (int i = 0; i < 8; i++)
    out[i] = (uint8_t) (value >> (56 - 8 * i));
}

static uint64_t boot_ns (void)
{
  struct timespec t;
  clock_gettime (CLOCK_BOOTTIME, &t);
  return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void write_one (unsigned n, uint32_t tid)
{
  thread_page_t *mine = &page->thread[n];
  char name[64];
  uint64_t number = ++mine->began;
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE, .flags = WEFT_REPORT_ROOT, .status = 200};
  report.instruction = shm_control (memory)->rules[0].instruction;
  report.start_ns = boot_ns ();
  report.end_ns = report.start_ns + 1000;
  report.cpu_ns = WEFT_NS_NONE;
  report.subtask = page->further ? ~number : number;
  if (page->further) {
    report.flags = 0;
    report.request = number;
  }
  put_big_endian (report.task, page->tag);
  put_big_endian (report.task + 8, (uint64_t) (n + 1) << 48 | number);
  report.name_size = (uint16_t) snprintf (name, sizeof name, "GET /items/%u", (unsigned) (number % 1000));
  report.name = name;
  if (shm_write (memory, tid, &report))
    mine->written++;
  else
    mine->refused++;
}

static void *work (void *arg)
{
  unsigned n = (unsigned) (uintptr_t) arg;
  uint32_t tid = (uint32_t) syscall (SYS_gettid);
  for (;;) {
    struct timespec pause = {0, NS_PER_MS};
    uint32_t burst = __atomic_load_n (&page->per_ms, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < burst; i++)
      if (__atomic_load_n (&shm_status (memory)->actions, __ATOMIC_RELAXED) != 0)
        write_one (n, tid);
    nanosleep (&pause, NULL);
  }
  return NULL;
}

int main (int argc, char **argv)
{
  int fd = argc == 2 ? open (argv[1], O_RDWR | O_CLOEXEC) : -1;
  void *map = fd < 0 ? MAP_FAILED : mmap (NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) {
    fprintf (stderr, "event_writer: cannot map the page; give a file of 4096 bytes\n");
    return 2;
  }
  page = map;
  for (int i = 0; i < 5000 && !memory; i++) {
    usleep (1000);
    memory = find_memory ();
  }
  if (!memory) {
    fprintf (stderr, "event_writer: no probe's memory; start it under weft run\n");
    return 3;
  }
  pthread_t thread[THREADS];
  for (unsigned n = 0; n < THREADS; n++)
    if (pthread_create (&thread[n], NULL, work, (void *) (uintptr_t) n) != 0)
      return 4;
  __atomic_store_n (&page->ready, 1, __ATOMIC_RELEASE);
  pthread_join (thread[0], NULL);
  return 0;
}
