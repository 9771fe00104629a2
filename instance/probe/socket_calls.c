/* SPDX-License-Identifier: Apache-2.0 */
/* socket_calls: the replacement functions. Each hook is made from the one list
 * in socket_calls.h: one load, one branch, and either the original as a tail
 * call or probe_active_<name> (socket_hooks.h). */
#include "socket_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

#include "../../common/status.h"
#include "quiet.h"
#include "socket_hooks.h"

probe_calls_t probe_real;
__thread uint32_t probe_inside;

/* ---- the unborn ---------------------------------------------------------- */
static int (*give_birth) (void);

void probe_calls_birth (int (*birth) (void))
{
  give_birth = birth;
}

__attribute__ ((noinline)) static int born (void)
{
  return give_birth ? give_birth () : 0;
}

__attribute__ ((noinline)) static int born_by_read (int fd)
{
  int saved = errno;
  struct stat info;
  int is_socket = fstat (fd, &info) == 0 && S_ISSOCK (info.st_mode);
  errno = saved;
  return is_socket && born ();
}

static inline int unborn (void)
{
  return PROBE_UNLIKELY (probe_active () & PROBE_UNBORN);
}

/* ---- the hooks ----------------------------------------------------------- */
#define HOOK(passes, type, name, params, args)                                                               \
  type probe_hook_##name params                                                                              \
  {                                                                                                          \
    if (PROBE_LIKELY (!probe_active ()) || (passes))                                                         \
      return probe_real.name args;                                                                           \
    return probe_active_##name args;                                                                         \
  }
#define XX(type, name, params, args) HOOK (unborn (), type, name, params, args)
PROBE_OTHER_MAP (XX)
#undef XX
#define XX(type, name, params, args) HOOK (unborn () && !born (), type, name, params, args)
PROBE_WAIT_MAP (XX)
#undef XX

/* All answers are one tail call: nothing is saved for a quiet fd. */
#define XX(type, name, params, args)                                                                         \
  HOOK (probe_quiet_read (fd) || (unborn () && !born_by_read (fd)), type, name, params, args)
PROBE_READ_MAP (XX)
#undef XX
#define XX(type, name, params, args) HOOK (probe_quiet_write (fd) || unborn (), type, name, params, args)
PROBE_WRITE_MAP (XX)
#undef XX

/* Where the check of the fortified call would fail, it is the one to say so. */
ssize_t probe_hook___read_chk (int fd, void *data, size_t size, size_t room)
{
  return size <= room ? probe_hook_read (fd, data, size) : probe_real.__read_chk (fd, data, size, room);
}

ssize_t probe_hook___recv_chk (int fd, void *data, size_t size, size_t room, int flags)
{
  return size <= room ? probe_hook_recv (fd, data, size, flags)
                      : probe_real.__recv_chk (fd, data, size, room, flags);
}

ssize_t probe_hook___recvfrom_chk (int fd, void *data, size_t size, size_t room, int flags,
                                   struct sockaddr *from, socklen_t *from_size)
{
  return size <= room ? probe_hook_recvfrom (fd, data, size, flags, from, from_size)
                      : probe_real.__recvfrom_chk (fd, data, size, room, flags, from, from_size);
}

int probe_hook___poll_chk (struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
  return room / sizeof *fds >= count ? probe_hook_poll (fds, count, timeout_ms)
                                     : probe_real.__poll_chk (fds, count, timeout_ms, room);
}

int probe_hook___ppoll_chk (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                            const sigset_t *mask, size_t room)
{
  return room / sizeof *fds >= count ? probe_hook_ppoll (fds, count, timeout, mask)
                                     : probe_real.__ppoll_chk (fds, count, timeout, mask, room);
}

/* ---- originals ----------------------------------------------------------- */
/* Names that libc exports for the same function. */
#define ALIAS_MAP(XX)                                                                                        \
  XX (__read, read)                                                                                          \
  XX (__write, write)                                                                                        \
  XX (__connect, connect)                                                                                    \
  XX (__send, send)                                                                                          \
  XX (__close, close)                                                                                        \
  XX (__dup2, dup2)                                                                                          \
  XX (__fcntl, fcntl)                                                                                        \
  XX (__poll, poll)                                                                                          \
  XX (__select, select)

#define XX(type, name, params, args) +1
#define YY(alias, name)              +1
#define TABLE_MAX                    (0 PROBE_CALL_MAP (XX) PROBE_CHECKED_MAP (XX) ALIAS_MAP (YY))
static probe_call_t table[TABLE_MAX];
#undef XX
#undef YY
static uint32_t table_count;

/* A lazily bound slot goes to whatever the global scope has first. In a
 * fixed-address executable that takes a function's address this is its own PLT
 * entry, an undefined symbol with a value; behind it stands the same original. */
static int binds_to (const char *name, const void *original)
{
  void *first = dlsym (RTLD_DEFAULT, name);
  if (first == original)
    return 1;
  Dl_info info;
  void *found = NULL;
  if (!first || !dladdr1 (first, &info, &found, RTLD_DL_SYMENT) || !found)
    return 0;
  const ElfW (Sym) *symbol = found;
  return symbol->st_shndx == SHN_UNDEF;
}

int probe_call_find (const char *name, probe_call_t *ret_call)
{
  void *original = dlsym (RTLD_NEXT, name);
  if (!original)
    return WEFT_E_NOT_FOUND;
  ret_call->name = name;
  ret_call->original = original;
  ret_call->lazy_ok = binds_to (name, original);
  return 0;
}

static void add (const char *name, void *hook, void *field)
{
  probe_call_t call = {.hook = hook};
  if (probe_call_find (name, &call) != 0)
    return;
  memcpy (field, &call.original, sizeof call.original);
  table[table_count++] = call;
}

/* Where a library preloaded over libc has one name but not the other, the two
 * are no longer the same call. */
static void add_alias (const char *name, void *hook, const void *original)
{
  probe_call_t call = {.hook = hook};
  if (probe_call_find (name, &call) == 0 && call.original == original)
    table[table_count++] = call;
}

int probe_calls_resolve (void)
{
  table_count = 0;
#define XX(type, name, params, args) add (#name, (void *) probe_hook_##name, &probe_real.name);
  PROBE_CALL_MAP (XX)
  PROBE_CHECKED_MAP (XX)
#undef XX
#define XX(alias, name) add_alias (#alias, (void *) probe_hook_##name, (const void *) probe_real.name);
  ALIAS_MAP (XX)
#undef XX
  dlerror (); /* what a missing name left behind is not the application's error */
  /* The hooks call these on behalf of others. */
  return probe_real.read && probe_real.sendmsg && probe_real.close ? 0 : WEFT_E_NOT_FOUND;
}

const probe_call_t *probe_calls_table (uint32_t *ret_count)
{
  *ret_count = table_count;
  return table;
}
