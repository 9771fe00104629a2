/* SPDX-License-Identifier: Apache-2.0 */
/* got: see got.h for the invariants.
 *
 * What a page's protection is, is read from /proc/self/maps and not guessed
 * from program headers: RELRO ends on partial pages, and objects being loaded
 * by another thread are relocated first and protected later (G5). */
#include "got.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../common/status.h"

#define PAGE          4096ul
#define LOCK_TRIES    200
#define LOCK_SLEEP_NS 500000
#define FORK_TRIES    100
#define SCANNING      0x80000000u

typedef struct {
  uint64_t *slot; /* NULL: free */
  uint64_t original, hook;
  int loaded; /* restore found its object */
} saved_t;

typedef struct {
  uintptr_t from, to;
  int writable;
} range_t;

/* One loaded object, as far as we need it. */
typedef struct {
  uintptr_t base, from, to;
  uintptr_t relro_from, relro_to; /* whole pages only, empty if equal */
  const ElfW (Sym) * symbols;
  const char *strings;
  size_t strings_size;
  const ElfW (Rela) * plt, *rela;
  size_t plt_count, rela_count;
  const char *path;
} object_t;

typedef struct {
  const probe_call_t *calls;
  uint32_t count;
  int last;
} scan_t;

static saved_t saved[PROBE_GOT_SLOTS_MAX];
static uint32_t saved_count; /* rows in use or used before */
static range_t ranges[PROBE_GOT_RANGES_MAX];
static uint32_t range_count;
static struct {
  uintptr_t base;
  const void *headers;
} done[PROBE_GOT_OBJECTS_MAX];
static uint32_t done_count;
static uint64_t done_subs;
static probe_got_counts_t counts;

static int closed; /* since the last restore, until the next begin */

static uint32_t lock_word;

/* ---- lock ---------------------------------------------------------------- */
/* The high bit: a scan runs; below it the number of forks that run or wait. A
 * scan begins only where there is none, so forks wait for one scan at most. */
static int lock (void)
{
  for (int i = 0; i < LOCK_TRIES; i++) {
    uint32_t nobody = 0;
    if (__atomic_compare_exchange_n (&lock_word, &nobody, SCANNING, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return 0;
    struct timespec pause = {0, LOCK_SLEEP_NS};
    nanosleep (&pause, NULL);
  }
  return WEFT_E_BUSY;
}

static void unlock (void)
{
  __atomic_and_fetch (&lock_word, ~SCANNING, __ATOMIC_RELEASE);
}

void probe_got_before_fork (void)
{
  int kept = errno;
  __atomic_add_fetch (&lock_word, 1, __ATOMIC_ACQUIRE);
  /* Bounded: a fork out of a signal handler inside a scan must not hang. */
  for (int i = 0; i < FORK_TRIES && (__atomic_load_n (&lock_word, __ATOMIC_ACQUIRE) & SCANNING); i++) {
    struct timespec pause = {0, LOCK_SLEEP_NS};
    nanosleep (&pause, NULL);
  }
  errno = kept;
}

void probe_got_after_fork (int in_child)
{
  if (in_child)
    __atomic_store_n (&lock_word, 0, __ATOMIC_RELEASE);
  else
    __atomic_sub_fetch (&lock_word, 1, __ATOMIC_RELEASE);
}

/* ---- true protections ----------------------------------------------------- */
static uintptr_t parse_hex (const char **at)
{
  uintptr_t value = 0;
  for (;; (*at)++) {
    char c = **at;
    if (c >= '0' && c <= '9')
      value = value << 4 | (uintptr_t) (c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4 | (uintptr_t) (c - 'a' + 10);
    else
      return value;
  }
}

/* "from-to perms offset dev inode path": private, not executable, of a file. */
static void take_range (const char *line)
{
  range_t range;
  range.from = parse_hex (&line);
  if (*line++ != '-')
    return;
  range.to = parse_hex (&line);
  if (strlen (line) < 6 || line[1] != 'r' || line[3] != '-' || line[4] != 'p')
    return;
  range.writable = line[2] == 'w';
  if (range_count < PROBE_GOT_RANGES_MAX)
    ranges[range_count++] = range;
}

static int read_ranges (void)
{
  static char buffer[16384];
  range_count = 0;
  int fd = open ("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return WEFT_E_IO;
  size_t have = 0;
  for (;;) {
    ssize_t n = read (fd, buffer + have, sizeof buffer - 1 - have);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    have += (size_t) n;
    buffer[have] = 0;
    char *line = buffer;
    for (char *end; (end = strchr (line, '\n')); line = end + 1) {
      *end = 0;
      take_range (line);
    }
    have -= (size_t) (line - buffer);
    memmove (buffer, line, have);
  }
  close (fd);
  return range_count ? 0 : WEFT_E_IO;
}

/* 1 writable, 0 read only, -1 not known. */
static int writable (uintptr_t address)
{
  uint32_t low = 0, high = range_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (address < ranges[middle].from)
      high = middle;
    else if (address >= ranges[middle].to)
      low = middle + 1;
    else
      return ranges[middle].writable;
  }
  return -1;
}

/* ---- objects --------------------------------------------------------------- */
/* ld.so relocates the pointers of most dynamic sections in place, not of all. */
static uintptr_t dynamic_address (const object_t *object, ElfW (Addr) value)
{
  return value < object->base ? value + object->base : value;
}

static void read_dynamic (object_t *object, const ElfW (Dyn) * dynamic)
{
  int plt_is_rela = 0;
  for (; dynamic->d_tag != DT_NULL; dynamic++) {
    uintptr_t address = dynamic_address (object, dynamic->d_un.d_ptr);
    switch (dynamic->d_tag) {
    case DT_SYMTAB:
      object->symbols = (const ElfW (Sym) *) address;
      break;
    case DT_STRTAB:
      object->strings = (const char *) address;
      break;
    case DT_STRSZ:
      object->strings_size = dynamic->d_un.d_val;
      break;
    case DT_JMPREL:
      object->plt = (const ElfW (Rela) *) address;
      break;
    case DT_PLTRELSZ:
      object->plt_count = dynamic->d_un.d_val / sizeof (ElfW (Rela));
      break;
    case DT_PLTREL:
      plt_is_rela = dynamic->d_un.d_val == DT_RELA;
      break;
    case DT_RELA:
      object->rela = (const ElfW (Rela) *) address;
      break;
    case DT_RELASZ:
      object->rela_count = dynamic->d_un.d_val / sizeof (ElfW (Rela));
      break;
    }
  }
  if (!object->plt || !plt_is_rela)
    object->plt_count = 0;
  if (!object->rela)
    object->rela_count = 0;
}

/* 1: worth a walk. */
static int read_object (const struct dl_phdr_info *info, object_t *ret_object)
{
  object_t object;
  memset (&object, 0, sizeof object);
  object.base = info->dlpi_addr;
  object.path = info->dlpi_name ? info->dlpi_name : "";
  object.from = UINTPTR_MAX;
  const ElfW (Dyn) *dynamic = NULL;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW (Phdr) *header = &info->dlpi_phdr[i];
    uintptr_t from = object.base + header->p_vaddr;
    uintptr_t to = from + header->p_memsz;
    if (header->p_type == PT_LOAD) {
      object.from = from < object.from ? from : object.from;
      object.to = to > object.to ? to : object.to;
    } else if (header->p_type == PT_DYNAMIC)
      dynamic = (const ElfW (Dyn) *) from;
    else if (header->p_type == PT_GNU_RELRO) {
      object.relro_from = from & ~(PAGE - 1);
      object.relro_to = to & ~(PAGE - 1);
    }
  }
  if (!dynamic || object.from >= object.to)
    return 0;
  read_dynamic (&object, dynamic);
  if (!object.symbols || !object.strings || !object.strings_size)
    return 0;
  *ret_object = object;
  return 1;
}

static int holds (const object_t *object, uintptr_t address)
{
  return address >= object->from && address < object->to;
}

static const char *base_name (const char *path)
{
  const char *slash = strrchr (path, '/');
  return slash ? slash + 1 : path;
}

/* G6. What holds an original is where the call ends: libc, or a library
 * preloaded over it that must reach libc itself. */
static int untouchable (const object_t *object, const scan_t *scan)
{
  if (holds (object, (uintptr_t) &saved) || holds (object, getauxval (AT_SYSINFO_EHDR)) ||
      holds (object, getauxval (AT_BASE)))
    return 1;
  const char *name = base_name (object->path);
  if (strcmp (name, "libc.so.6") == 0 || strncmp (name, "ld-linux", 8) == 0)
    return 1;
  for (uint32_t i = 0; i < scan->count; i++)
    if (holds (object, (uintptr_t) scan->calls[i].original))
      return 1;
  return 0;
}

static int seen (const struct dl_phdr_info *info, int note)
{
  for (uint32_t i = 0; i < done_count; i++)
    if (done[i].base == info->dlpi_addr && done[i].headers == info->dlpi_phdr)
      return 1;
  if (note && done_count < PROBE_GOT_OBJECTS_MAX) {
    done[done_count].base = info->dlpi_addr;
    done[done_count++].headers = info->dlpi_phdr;
  }
  return 0;
}

/* ---- slots ----------------------------------------------------------------- */
/* G4. 0, or negative: not written. */
static int store (uint64_t *slot, uint64_t value)
{
  int open_page = writable ((uintptr_t) slot);
  if (open_page < 0)
    return WEFT_E_STATE;
  if (open_page) {
    __atomic_store_n (slot, value, __ATOMIC_RELEASE);
    return 0;
  }
  void *page = (void *) ((uintptr_t) slot & ~(PAGE - 1));
  if (mprotect (page, PAGE, PROT_READ | PROT_WRITE) != 0)
    return WEFT_E_IO;
  __atomic_store_n (slot, value, __ATOMIC_RELEASE);
  if (mprotect (page, PAGE, PROT_READ) != 0)
    counts.failed++;
  return 0;
}

/* The row of this address, or a free one, or NULL: full. */
static saved_t *row_of (uint64_t *slot)
{
  saved_t *free_row = NULL;
  for (uint32_t i = 0; i < saved_count; i++) {
    if (saved[i].slot == slot)
      return &saved[i];
    if (!saved[i].slot && !free_row)
      free_row = &saved[i];
  }
  if (free_row)
    return free_row;
  return saved_count < PROBE_GOT_SLOTS_MAX ? &saved[saved_count++] : NULL;
}

static void take_slot (const object_t *object, uint64_t *slot, const probe_call_t *call, int lazy)
{
  uint64_t value = __atomic_load_n (slot, __ATOMIC_ACQUIRE);
  uint64_t hook = (uint64_t) (uintptr_t) call->hook;
  if (value == hook)
    return;
  if (value != (uint64_t) (uintptr_t) call->original && !(lazy && call->lazy_ok && holds (object, value))) {
    counts.foreign++;
    return;
  }
  saved_t *row = row_of (slot);
  int again = row && row->slot == slot; /* another object at the same address */
  if (!row || store (slot, hook) != 0) {
    counts.failed++;
    return;
  }
  row->slot = slot;
  row->original = (uint64_t) (uintptr_t) call->original;
  row->hook = hook;
  counts.written += !again;
}

static const probe_call_t *find (const scan_t *scan, const char *name)
{
  for (uint32_t i = 0; i < scan->count; i++)
    if (strcmp (scan->calls[i].name, name) == 0)
      return &scan->calls[i];
  return NULL;
}

static void walk (const object_t *object, const scan_t *scan, const ElfW (Rela) * rela, size_t count,
                  unsigned type)
{
  int vm_itself = strcmp (base_name (object->path), "libjvm.so") == 0;
  for (size_t i = 0; i < count; i++) {
    if (ELF64_R_TYPE (rela[i].r_info) != type)
      continue;
    const ElfW (Sym) *symbol = &object->symbols[ELF64_R_SYM (rela[i].r_info)];
    if (symbol->st_name >= object->strings_size)
      continue;
    const probe_call_t *call = find (scan, object->strings + symbol->st_name);
    uintptr_t at = object->base + rela[i].r_offset;
    if (!call || (vm_itself && !call->everywhere) || !holds (object, at) || at % sizeof (uint64_t))
      continue;
    int lazy = type == R_X86_64_JUMP_SLOT && symbol->st_shndx == SHN_UNDEF;
    take_slot (object, (uint64_t *) at, call, lazy);
  }
}

static int patch_object (struct dl_phdr_info *info, size_t size, void *arg)
{
  const scan_t *scan = arg;
  object_t object;
  if (size >= offsetof (struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    counts.adds = info->dlpi_adds;
    if (info->dlpi_subs != done_subs)
      done_count = 0; /* an address may mean another object now */
    done_subs = info->dlpi_subs;
  }
  if (seen (info, 0) || !read_object (info, &object) || untouchable (&object, scan))
    return 0;
  if (!scan->last && object.relro_from < object.relro_to && writable (object.relro_from) != 0) {
    counts.deferred++;
    return 0;
  }
  walk (&object, scan, object.plt, object.plt_count, R_X86_64_JUMP_SLOT);
  walk (&object, scan, object.rela, object.rela_count, R_X86_64_GLOB_DAT);
  counts.objects += !seen (info, 1);
  return 0;
}

int probe_got_patch (const probe_call_t *calls, uint32_t count, int last)
{
  int kept = errno;
  scan_t scan = {calls, count, last};
  int status = lock ();
  if (status == 0) {
    counts.deferred = 0;
    status = closed ? WEFT_E_STATE : read_ranges ();
    if (status == 0)
      dl_iterate_phdr (patch_object, &scan);
    unlock ();
  }
  errno = kept;
  return status;
}

static int restore_object (struct dl_phdr_info *info, size_t size, void *arg)
{
  object_t object;
  if (!read_object (info, &object))
    return 0;
  for (uint32_t i = 0; i < saved_count; i++) {
    saved_t *row = &saved[i];
    if (!row->slot || !holds (&object, (uintptr_t) row->slot))
      continue;
    row->loaded = 1;
    if (__atomic_load_n (row->slot, __ATOMIC_ACQUIRE) != row->hook)
      counts.foreign++;
    else if (store (row->slot, row->original) == 0)
      counts.restored++;
    else {
      counts.failed++;
      continue; /* still ours: another restore may do it */
    }
    row->slot = NULL;
  }
  return 0;
}

/* Slots of objects that are gone hold nothing of ours any more. */
static void forget_unloaded (void)
{
  for (uint32_t i = 0; i < saved_count; i++)
    if (saved[i].slot && !saved[i].loaded) {
      saved[i].slot = NULL;
      counts.written--;
    }
}

int probe_got_restore (void)
{
  int kept = errno;
  int status = lock ();
  if (status == 0) {
    closed = 1;
    status = read_ranges ();
    if (status == 0) {
      for (uint32_t i = 0; i < saved_count; i++)
        saved[i].loaded = 0;
      dl_iterate_phdr (restore_object, NULL);
      forget_unloaded ();
      done_count = 0;
    }
    unlock ();
  }
  errno = kept;
  return status;
}

void probe_got_begin (void)
{
  uint32_t held = 0;
  for (uint32_t i = 0; i < saved_count; i++)
    held += saved[i].slot != NULL;
  memset (&counts, 0, sizeof counts);
  counts.written = held;
  closed = 0;
}

void probe_got_counts (probe_got_counts_t *ret_counts)
{
  *ret_counts = counts;
}
