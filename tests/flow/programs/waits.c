/* SPDX-License-Identifier: Apache-2.0 */
/* waits: a program that is easily offended. `waits MODE FILE` does one thing over and over, counts in the
 * first eight bytes of FILE how often, and aborts at the first surprise: a call that is interrupted, that
 * comes back too early or much too late, a register or a vector that is not what it was, memory of its own
 * that changed. Ends by SIGKILL only. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAP_MS  30
#define LATE_MS 2000 /* the machine may be busy */
#define THREADS 8

static volatile uint64_t *counter;

static void count (void)
{
  __atomic_add_fetch (counter, 1, __ATOMIC_RELAXED);
}

static void offended (const char *what)
{
  fprintf (stderr, "waits: %s (errno %s)\n", what, strerror (errno));
  abort ();
}

static double now_ms (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* A wait that began at `began` is over because its time was up. */
static void in_time (double began, const char *what)
{
  double spent = now_ms () - began;
  if (spent < NAP_MS - 1 || spent > NAP_MS + LATE_MS) {
    fprintf (stderr, "%s took %.1f ms instead of %d\n", what, spent, NAP_MS);
    offended ("a wait of another length");
  }
  count ();
}

static struct timespec nap (void)
{
  return (struct timespec){0, NAP_MS * 1000000L};
}

static struct timespec nap_until (clockid_t clock)
{
  struct timespec t;
  clock_gettime (clock, &t);
  t.tv_nsec += NAP_MS * 1000000L;
  if (t.tv_nsec >= 1000000000L) {
    t.tv_sec++;
    t.tv_nsec -= 1000000000L;
  }
  return t;
}

/* ---- waits with a timeout ---------------------------------------------------- */
static void wait_poll (void)
{
  double began = now_ms ();
  struct pollfd nobody = {.fd = -1};
  if (poll (&nobody, 1, NAP_MS) != 0)
    offended ("poll");
  in_time (began, "poll");
}

static void wait_ppoll (void)
{
  double began = now_ms ();
  struct timespec t = nap ();
  sigset_t none;
  sigemptyset (&none);
  if (ppoll (NULL, 0, &t, &none) != 0)
    offended ("ppoll");
  in_time (began, "ppoll");
}

static void wait_select (void)
{
  double began = now_ms ();
  struct timeval t = {0, NAP_MS * 1000};
  if (select (0, NULL, NULL, NULL, &t) != 0)
    offended ("select");
  in_time (began, "select");
}

static void wait_epoll (void)
{
  static int epoll = -1;
  if (epoll < 0)
    epoll = epoll_create1 (0);
  double began = now_ms ();
  struct epoll_event event;
  if (epoll_wait (epoll, &event, 1, NAP_MS) != 0)
    offended ("epoll_wait");
  in_time (began, "epoll_wait");
}

static void wait_nanosleep (void)
{
  double began = now_ms ();
  struct timespec t = nap ();
  if (nanosleep (&t, NULL) != 0)
    offended ("nanosleep");
  in_time (began, "nanosleep");
}

static void wait_clock (void)
{
  double began = now_ms ();
  struct timespec t = nap_until (CLOCK_MONOTONIC);
  if (clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
    offended ("clock_nanosleep");
  in_time (began, "clock_nanosleep");
}

static void wait_sem (void)
{
  static sem_t sem;
  struct timespec t = nap_until (CLOCK_REALTIME);
  double began = now_ms ();
  if (sem_timedwait (&sem, &t) == 0 || errno != ETIMEDOUT)
    offended ("sem_timedwait");
  in_time (began, "sem_timedwait");
}

static void wait_recv (void)
{
  static int pair[2] = {-1, -1};
  struct timeval t = {0, NAP_MS * 1000};
  char byte;
  if (pair[0] < 0 && (socketpair (AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
                      setsockopt (pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) < 0))
    offended ("socketpair");
  double began = now_ms ();
  if (recv (pair[0], &byte, 1, 0) >= 0 || errno != EAGAIN)
    offended ("recv");
  in_time (began, "recv");
}

static void wait_signal (void)
{
  sigset_t set;
  sigemptyset (&set);
  sigaddset (&set, SIGUSR1);
  sigprocmask (SIG_BLOCK, &set, NULL);
  struct timespec t = nap ();
  double began = now_ms ();
  if (sigtimedwait (&set, NULL, &t) >= 0 || errno != EAGAIN)
    offended ("sigtimedwait");
  in_time (began, "sigtimedwait");
}

/* ---- waits for somebody -------------------------------------------------------- */
static int ends[2];

static void *feed (void *arg)
{
  for (;;) {
    struct timespec t = nap ();
    nanosleep (&t, NULL);
    if (write (ends[1], "x", 1) != 1)
      offended ("write");
  }
  return NULL;
}

static void wait_read (void)
{
  char byte;
  if (!ends[1]) {
    pthread_t thread;
    if (pipe (ends) < 0 || pthread_create (&thread, NULL, feed, NULL) != 0)
      offended ("pipe");
  }
  if (read (ends[0], &byte, 1) != 1 || byte != 'x')
    offended ("read");
  count ();
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static unsigned turns;

static void *turn (void *arg)
{
  for (;;) {
    struct timespec t = nap ();
    nanosleep (&t, NULL);
    pthread_mutex_lock (&mutex);
    turns++;
    pthread_cond_signal (&condition);
    pthread_mutex_unlock (&mutex);
  }
  return NULL;
}

static void wait_condition (void)
{
  static unsigned seen, started;
  if (!started++) {
    pthread_t thread;
    pthread_create (&thread, NULL, turn, NULL);
  }
  pthread_mutex_lock (&mutex);
  while (turns == seen)
    pthread_cond_wait (&condition, &mutex);
  seen = turns;
  pthread_mutex_unlock (&mutex);
  count ();
}

static void wait_child (void)
{
  int state;
  pid_t child = fork ();
  if (child == 0) {
    struct timespec t = nap ();
    nanosleep (&t, NULL);
    _exit (7);
  }
  if (waitpid (child, &state, 0) != child || !WIFEXITED (state) || WEXITSTATUS (state) != 7)
    offended ("waitpid");
  count ();
}

/* ---- no wait at all ----------------------------------------------------------- */
/* The same orbits twice: they stay between 0 and 1 and are chaotic, so whatever is changed in between,
 * were it by one bit, makes them end elsewhere. */
static void busy (void)
{
  uint64_t sum[2][9];
  for (int pass = 0; pass < 2; pass++) {
    double a = 0.11, b = 0.12, c = 0.13, d = 0.14, e = 0.15, f = 0.16, g = 0.17, h = 0.18;
    uint64_t w = 0x9e3779b97f4a7c15ull;
    for (int i = 0; i < 200000; i++) {
      a = 3.99 * a * (1 - a), b = 3.98 * b * (1 - b), c = 3.97 * c * (1 - c), d = 3.96 * d * (1 - d);
      e = 3.95 * e * (1 - e), f = 3.94 * f * (1 - f), g = 3.93 * g * (1 - g), h = 3.92 * h * (1 - h);
      w = (w ^ (w >> 29)) * 0xbf58476d1ce4e5b9ull + (uint64_t) i;
    }
    double last[8] = {a, b, c, d, e, f, g, h};
    memcpy (sum[pass], last, sizeof last);
    sum[pass][8] = w;
  }
  if (memcmp (sum[0], sum[1], sizeof sum[0]) != 0)
    offended ("an orbit that ended elsewhere");
  count ();
}

static void allocate (void)
{
  static __thread unsigned seed;
  for (int i = 0; i < 200; i++) {
    size_t size = 16 + (size_t) rand_r (&seed) % 5000;
    unsigned char *p = malloc (size);
    memset (p, (int) (size & 0xff), size);
    unsigned char *q = realloc (p, size * 2);
    if (!q || q[0] != (size & 0xff) || q[size - 1] != (size & 0xff))
      offended ("memory that changed");
    free (q);
  }
  count ();
}

static void *allocate_and_load (void *arg)
{
  for (unsigned i = 0;; i++) {
    allocate ();
    if (i % 16 == 0) {
      void *library = dlopen ("libm.so.6", RTLD_NOW);
      if (!library || !dlsym (library, "cos") || dlclose (library) != 0)
        offended ("dlopen");
    }
  }
  return NULL;
}

static void threads (void)
{
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++)
    pthread_create (&thread[i], NULL, allocate_and_load, NULL);
  allocate_and_load (NULL);
}

static void on_alarm (int number)
{
  count ();
}

/* malloc under a timer: its handler interrupts malloc, too. */
static void alarmed (void)
{
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  struct itimerval every = {{0, 500}, {0, 500}};
  sigaction (SIGALRM, &action, NULL);
  setitimer (ITIMER_REAL, &every, NULL);
  for (;;)
    allocate ();
}

/* All waits that are offended by EINTR, one after another. */
static void mixed (void)
{
  wait_poll ();
  wait_recv ();
  wait_nanosleep ();
  wait_sem ();
  wait_epoll ();
  wait_signal ();
}

/* ---- what is not to be joined --------------------------------------------------- */
static void install (struct sock_filter *code, unsigned short size)
{
  struct sock_fprog program = {size, code};
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    offended ("seccomp");
}

#define LOAD_NUMBER BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr))
#define SAY(action) BPF_STMT (BPF_RET | BPF_K, action)

/* It may do everything. */
static void filtered (void)
{
  struct sock_filter code[] = {SAY (SECCOMP_RET_ALLOW)};
  install (code, 1);
  for (;;)
    wait_poll ();
}

/* It ends when it makes a memfd, and when the kernel resumes a wait for it. */
static void forbidden (void)
{
  struct sock_filter code[] = {LOAD_NUMBER, BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0),
                               BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 0, 1),
                               SAY (SECCOMP_RET_KILL_PROCESS), SAY (SECCOMP_RET_ALLOW)};
  install (code, 5);
  for (;;)
    wait_poll ();
}

/* One of its threads may less than the others. */
static void *under_a_filter (void *arg)
{
  filtered ();
  return NULL;
}

static void uneven (void)
{
  pthread_t thread;
  pthread_create (&thread, NULL, under_a_filter, NULL);
  for (;;)
    wait_poll ();
}

static void exchange (int client, int server)
{
  static const char question[] = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n",
                    answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
  char text[512];
  if (send (client, question, sizeof question - 1, 0) != sizeof question - 1 ||
      recv (server, text, sizeof text, 0) <= 0 ||
      send (server, answer, sizeof answer - 1, 0) != sizeof answer - 1 ||
      recv (client, text, sizeof text, 0) <= 0)
    offended ("an exchange");
  wait_poll ();
}

/* It ends at any call but its own, and those that joining and the probe are to do with. */
static void allowed (void)
{
  static const int numbers[] = {SYS_sendto,
                                SYS_recvfrom,
                                SYS_mmap,
                                SYS_mprotect,
                                SYS_munmap,
                                SYS_clone,
                                SYS_clone3,
                                SYS_set_robust_list,
                                SYS_rseq,
                                SYS_rt_sigprocmask,
                                SYS_rt_sigaction,
                                SYS_rt_sigreturn,
                                SYS_restart_syscall,
                                SYS_prlimit64,
                                SYS_geteuid,
                                SYS_sched_yield,
                                SYS_nanosleep,
                                SYS_clock_nanosleep,
                                SYS_memfd_create,
                                SYS_ftruncate,
                                SYS_fcntl,
                                SYS_openat,
                                SYS_open,
                                SYS_read,
                                SYS_pread64,
                                SYS_write,
                                SYS_fstat,
                                SYS_newfstatat,
                                SYS_lseek,
                                SYS_close,
                                SYS_brk,
                                SYS_madvise,
                                SYS_getpid,
                                SYS_gettid,
                                SYS_prctl,
                                SYS_getrandom,
                                SYS_clock_gettime,
                                SYS_futex,
                                SYS_membarrier,
                                SYS_poll,
                                SYS_getsockopt,
                                SYS_getsockname,
                                SYS_getpeername,
                                SYS_ioctl,
                                SYS_sendmsg,
                                SYS_recvmsg,
                                SYS_socket,
                                SYS_connect,
                                SYS_exit};
  enum { COUNT = sizeof numbers / sizeof numbers[0] };
  struct sock_filter code[COUNT + 3] = {LOAD_NUMBER};
  for (unsigned i = 0; i < COUNT; i++)
    code[i + 1] = (struct sock_filter) BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, (unsigned) numbers[i],
                                                 (unsigned char) (COUNT - i), 0);
  code[COUNT + 1] = (struct sock_filter) SAY (SECCOMP_RET_KILL_PROCESS);
  code[COUNT + 2] = (struct sock_filter) SAY (SECCOMP_RET_ALLOW);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int door = socket (AF_INET, SOCK_STREAM, 0), client = socket (AF_INET, SOCK_STREAM, 0);
  if (bind (door, (struct sockaddr *) &address, size) < 0 || listen (door, 1) < 0 ||
      getsockname (door, (struct sockaddr *) &address, &size) < 0 ||
      connect (client, (struct sockaddr *) &address, size) < 0)
    offended ("socket");
  int server = accept (door, NULL, NULL);
  install (code, COUNT + 3);
  for (;;)
    exchange (client, server);
}

static void hidden (void)
{
  if (prctl (PR_SET_DUMPABLE, 0) != 0)
    offended ("prctl");
  for (;;)
    wait_poll ();
}

/* The first thread is in the middle of a read that nothing interrupts: the kernel waits for a page that
 * comes when FILE[8] is 1, and FILE[16] tells that it went on. Another one waits as usual. */
static void *nap_and_give (void *page)
{
  volatile uint64_t *asked = counter + 1;
  for (int given = 0;;) {
    wait_poll ();
    struct uffdio_zeropage zero = {.range = {(uintptr_t) page, 4096}};
    int fd = (int) counter[3];
    if (*asked && !given++ && ioctl (fd, UFFDIO_ZEROPAGE, &zero) != 0)
      offended ("UFFDIO_ZEROPAGE");
  }
  return NULL;
}

static void stuck (void)
{
  pthread_t thread;
  int fd = (int) syscall (SYS_userfaultfd, O_CLOEXEC), pair[2];
  void *page = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register all = {.range = {(uintptr_t) page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (fd < 0 || ioctl (fd, UFFDIO_API, &api) != 0 || ioctl (fd, UFFDIO_REGISTER, &all) != 0)
    exit (77); /* not here */
  counter[3] = (uint64_t) fd;
  if (pipe (pair) < 0 || write (pair[1], "x", 1) != 1)
    offended ("pipe");
  pthread_create (&thread, NULL, nap_and_give, page);
  if (read (pair[0], page, 1) != 1)
    offended ("read");
  counter[2] = 1;
  for (;;)
    pause ();
}

static const struct {
  const char *name;
  void (*act) (void);
} modes[] = {{"poll", wait_poll},
             {"ppoll", wait_ppoll},
             {"select", wait_select},
             {"epoll", wait_epoll},
             {"nanosleep", wait_nanosleep},
             {"clock", wait_clock},
             {"sem", wait_sem},
             {"recv", wait_recv},
             {"signal", wait_signal},
             {"read", wait_read},
             {"condition", wait_condition},
             {"child", wait_child},
             {"busy", busy},
             {"malloc", allocate},
             {"threads", threads},
             {"alarmed", alarmed},
             {"mixed", mixed},
             {"filtered", filtered},
             {"forbidden", forbidden},
             {"uneven", uneven},
             {"allowed", allowed},
             {"hidden", hidden},
             {"stuck", stuck}};

int main (int argc, char **argv)
{
  int fd = argc == 3 ? open (argv[2], O_RDWR | O_CREAT, 0600) : -1;
  if (fd < 0 || ftruncate (fd, 4096) < 0)
    return 2;
  counter = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
    if (strcmp (modes[i].name, argv[1]) == 0)
      for (;;)
        modes[i].act ();
  return 2;
}
