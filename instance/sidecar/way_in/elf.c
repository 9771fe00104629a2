/* SPDX-License-Identifier: Apache-2.0 */
#include "elf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "../../../common/status.h"

#define NOTES_MAX  4096         /* bytes of one note segment */
#define EXTENT_MAX (4ull << 30) /* an object larger than this is none */

/* A table that was read once. */
typedef struct {
  uint64_t address, size;
  uint8_t *bytes;
} table_t;

struct car_elf_t {
  car_elf_read_t *read;
  void *arg;
  uint64_t base;     /* added to its virtual addresses */
  uint64_t from, to; /* E1 */
  Elf64_Phdr header[CAR_ELF_HEADERS_MAX];
  unsigned header_count;
  table_t symbols, strings;
  uint64_t hash, gnu_hash; /* addresses, 0: none */
  uint64_t plt, plt_size, rela, rela_size;
};

static int fetch (const car_elf_t *self, uint64_t address, void *out, uint64_t size)
{
  if (address < self->from || address > self->to || size > self->to - address)
    return WEFT_E_MALFORMED; /* E1 */
  return self->read (self->arg, address, out, size);
}

/* Reads a table that is not there yet. */
static int load (const car_elf_t *self, table_t *table)
{
  if (table->bytes)
    return 0;
  if (!table->address || !table->size || table->size > CAR_ELF_TABLE_MAX)
    return WEFT_E_MALFORMED; /* E2 */
  uint8_t *bytes = malloc (table->size + 1);
  if (!bytes)
    return WEFT_E_NOMEM;
  int status = fetch (self, table->address, bytes, table->size);
  if (status < 0) {
    free (bytes);
    return status;
  }
  bytes[table->size] = 0;
  table->bytes = bytes;
  return 0;
}

static int read_headers (car_elf_t *self, uint64_t at)
{
  Elf64_Ehdr head;
  int status = self->read (self->arg, at, &head, sizeof head);
  if (status < 0)
    return status;
  if (memcmp (head.e_ident, ELFMAG, SELFMAG) != 0)
    return WEFT_E_MALFORMED;
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
    return WEFT_E_UNSUPPORTED;
  if (head.e_phentsize != sizeof (Elf64_Phdr) || head.e_phnum == 0 || head.e_phnum > CAR_ELF_HEADERS_MAX ||
      head.e_phoff > NOTES_MAX)
    return WEFT_E_MALFORMED;
  self->header_count = head.e_phnum;
  return self->read (self->arg, at + head.e_phoff, self->header, head.e_phnum * sizeof (Elf64_Phdr));
}

/* Where it begins and ends, from its loaded segments. */
static int measure (car_elf_t *self, uint64_t at)
{
  uint64_t low = UINT64_MAX, high = 0;
  for (unsigned i = 0; i < self->header_count; i++) {
    const Elf64_Phdr *header = &self->header[i];
    if (header->p_type != PT_LOAD)
      continue;
    if (header->p_vaddr > EXTENT_MAX * 16 || header->p_memsz > EXTENT_MAX)
      return WEFT_E_MALFORMED;
    low = header->p_vaddr < low ? header->p_vaddr : low;
    high = header->p_vaddr + header->p_memsz > high ? header->p_vaddr + header->p_memsz : high;
  }
  low &= ~0xfffull;
  if (low >= high || high - low > EXTENT_MAX || at > UINT64_MAX / 2)
    return WEFT_E_MALFORMED;
  self->base = at - low;
  self->from = at;
  self->to = at + (high - low);
  return 0;
}

static void take_entry (car_elf_t *self, const Elf64_Dyn *entry, int *is_rela)
{
  uint64_t value = entry->d_un.d_val;
  uint64_t address = value < self->from ? value + self->base : value; /* relocated in place, or not */
  switch (entry->d_tag) {
  case DT_SYMTAB:
    self->symbols.address = address;
    break;
  case DT_STRTAB:
    self->strings.address = address;
    break;
  case DT_STRSZ:
    self->strings.size = value;
    break;
  case DT_HASH:
    self->hash = address;
    break;
  case DT_GNU_HASH:
    self->gnu_hash = address;
    break;
  case DT_JMPREL:
    self->plt = address;
    break;
  case DT_PLTRELSZ:
    self->plt_size = value;
    break;
  case DT_PLTREL:
    *is_rela = value == DT_RELA;
    break;
  case DT_RELA:
    self->rela = address;
    break;
  case DT_RELASZ:
    self->rela_size = value;
    break;
  }
}

static int read_dynamic (car_elf_t *self)
{
  Elf64_Dyn entry[CAR_ELF_DYNAMIC_MAX];
  int is_rela = 0;
  for (unsigned i = 0; i < self->header_count; i++) {
    const Elf64_Phdr *header = &self->header[i];
    if (header->p_type != PT_DYNAMIC)
      continue;
    uint64_t size = header->p_memsz < sizeof entry ? header->p_memsz : sizeof entry;
    int status = fetch (self, self->base + header->p_vaddr, entry, size);
    if (status < 0)
      return status;
    for (unsigned n = 0; n < size / sizeof *entry && entry[n].d_tag != DT_NULL; n++)
      take_entry (self, &entry[n], &is_rela);
    if (!is_rela)
      self->plt_size = 0;
    return 0;
  }
  return WEFT_E_MALFORMED;
}

int car_elf_open (car_elf_read_t *read, void *arg, uint64_t base, car_elf_t **ret_self)
{
  car_elf_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->read = read;
  self->arg = arg;
  int status = read_headers (self, base);
  if (status == 0)
    status = measure (self, base);
  if (status == 0)
    status = read_dynamic (self);
  if (status < 0) {
    car_elf_destroy (&self);
    return status;
  }
  *ret_self = self;
  return 0;
}

void car_elf_destroy (car_elf_t **self_p)
{
  car_elf_t *self = *self_p;
  if (!self)
    return;
  free (self->symbols.bytes);
  free (self->strings.bytes);
  free (self);
  *self_p = NULL;
}

/* ---- symbols --------------------------------------------------------------- */
/* The GNU hash table holds no count: the end of the chain of the last bucket. */
static int count_gnu (const car_elf_t *self, uint64_t *ret_count)
{
  uint32_t head[4], hash = 0; /* buckets, first symbol, Bloom words, shift */
  int status = fetch (self, self->gnu_hash, head, sizeof head);
  if (status < 0)
    return status;
  uint64_t buckets = self->gnu_hash + sizeof head + (uint64_t) head[2] * 8;
  table_t table = {.address = buckets, .size = (uint64_t) head[0] * 4};
  status = load (self, &table);
  if (status < 0)
    return status;
  uint64_t last = 0;
  for (uint32_t i = 0; i < head[0]; i++) {
    uint32_t first;
    memcpy (&first, table.bytes + i * 4ull, 4);
    last = first > last ? first : last;
  }
  free (table.bytes);
  if (last < head[1]) {
    *ret_count = head[1];
    return 0;
  }
  for (; !(hash & 1); last++) {
    status = fetch (self, buckets + ((uint64_t) head[0] + last - head[1]) * 4, &hash, sizeof hash);
    if (status < 0)
      return status;
    if (last > CAR_ELF_TABLE_MAX / sizeof (Elf64_Sym))
      return WEFT_E_MALFORMED;
  }
  *ret_count = last;
  return 0;
}

static int load_symbols (car_elf_t *self)
{
  if (self->symbols.bytes && self->strings.bytes)
    return 0;
  uint64_t count = 0;
  uint32_t head[2]; /* buckets, chains: one a symbol */
  int status = WEFT_E_MALFORMED;
  if (self->hash && (status = fetch (self, self->hash, head, sizeof head)) == 0)
    count = head[1];
  else if (self->gnu_hash)
    status = count_gnu (self, &count);
  if (status < 0)
    return status;
  self->symbols.size = count * sizeof (Elf64_Sym);
  status = load (self, &self->symbols);
  return status < 0 ? status : load (self, &self->strings);
}

static const char *name_at (const car_elf_t *self, uint64_t offset)
{
  return offset < self->strings.size ? (const char *) self->strings.bytes + offset : "";
}

int car_elf_function (car_elf_t *self, const char *name, uint64_t *ret_address)
{
  int status = load_symbols (self);
  if (status < 0)
    return status;
  for (uint64_t at = 0; at + sizeof (Elf64_Sym) <= self->symbols.size; at += sizeof (Elf64_Sym)) {
    Elf64_Sym symbol;
    memcpy (&symbol, self->symbols.bytes + at, sizeof symbol);
    if (ELF64_ST_TYPE (symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || !symbol.st_value ||
        symbol.st_value >= self->to - self->base || strcmp (name_at (self, symbol.st_name), name) != 0)
      continue;
    *ret_address = self->base + symbol.st_value;
    return 0;
  }
  return WEFT_E_NOT_FOUND;
}

/* ---- build id --------------------------------------------------------------- */
static int find_build_id (const uint8_t *notes, uint64_t size, uint8_t ret_id[CAR_ELF_BUILD_ID])
{
  Elf64_Nhdr note;
  for (uint64_t at = 0; at + sizeof note <= size;) {
    memcpy (&note, notes + at, sizeof note);
    if (note.n_namesz > size || note.n_descsz > size)
      break;
    uint64_t name = at + sizeof note, text = name + ((note.n_namesz + 3) & ~3ull);
    uint64_t end = text + ((note.n_descsz + 3) & ~3ull);
    if (end > size)
      break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp (notes + name, "GNU", 4) == 0 &&
        note.n_descsz == CAR_ELF_BUILD_ID) {
      memcpy (ret_id, notes + text, CAR_ELF_BUILD_ID);
      return 0;
    }
    at = end;
  }
  return WEFT_E_NOT_FOUND;
}

int car_elf_build_id (car_elf_t *self, uint8_t ret_id[CAR_ELF_BUILD_ID])
{
  uint8_t notes[NOTES_MAX];
  for (unsigned i = 0; i < self->header_count; i++) {
    const Elf64_Phdr *header = &self->header[i];
    if (header->p_type != PT_NOTE || header->p_memsz > sizeof notes)
      continue;
    if (fetch (self, self->base + header->p_vaddr, notes, header->p_memsz) == 0 &&
        find_build_id (notes, header->p_memsz, ret_id) == 0)
      return 0;
  }
  return WEFT_E_NOT_FOUND;
}

/* ---- slots ------------------------------------------------------------------- */
static int walk (car_elf_t *self, uint64_t address, uint64_t size, unsigned type, car_elf_slot_t *each,
                 void *arg)
{
  if (!address || !size)
    return 0;
  table_t table = {.address = address, .size = size};
  int status = load (self, &table);
  if (status < 0)
    return status;
  for (uint64_t at = 0; at + sizeof (Elf64_Rela) <= size; at += sizeof (Elf64_Rela)) {
    Elf64_Rela slot;
    Elf64_Sym symbol;
    memcpy (&slot, table.bytes + at, sizeof slot);
    uint64_t of = ELF64_R_SYM (slot.r_info) * sizeof symbol;
    if (ELF64_R_TYPE (slot.r_info) != type || of + sizeof symbol > self->symbols.size)
      continue;
    memcpy (&symbol, self->symbols.bytes + of, sizeof symbol);
    each (arg, name_at (self, symbol.st_name), self->base + slot.r_offset);
  }
  free (table.bytes);
  return 0;
}

int car_elf_slots (car_elf_t *self, car_elf_slot_t *each, void *arg)
{
  int status = load_symbols (self);
  if (status == 0)
    status = walk (self, self->plt, self->plt_size, R_X86_64_JUMP_SLOT, each, arg);
  if (status == 0)
    status = walk (self, self->rela, self->rela_size, R_X86_64_GLOB_DAT, each, arg);
  return status;
}
