/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <unistd.h>

#include "../../../../../common/status.h"
#include "../../../../../instance/sidecar/way_in/elf.h"
#include "../../../../../instance/sidecar/way_in/maps.h"
#include "../../../../../instance/sidecar/way_in/remote.h"

static int read_here (void *arg, uint64_t address, void *out, size_t size)
{
  return car_remote_read (getpid (), address, out, size);
}

static uint64_t libc_base (void)
{
  car_maps_t maps;
  assert_int_equal (car_maps_read (getpid (), &maps), 0);
  const car_map_t *map = car_maps_next (&maps, CAR_MAP_LIBC, NULL);
  while (strcmp (car_map_base_name (map), "libc.so.6") != 0)
    map = car_maps_next (&maps, CAR_MAP_LIBC, map);
  uint64_t base = map->from;
  car_maps_clear (&maps);
  return base;
}

static void finds_functions_where_the_loader_does (void **state)
{
  static const char *const names[] = {"pthread_create", "pthread_detach", "dlopen",
                                      "dlsym",          "dlerror",        "qsort"};
  car_elf_t *elf;
  void *libc =
      dlopen ("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); /* a sanitizer's come first in the global scope */
  assert_int_equal (car_elf_open (read_here, NULL, libc_base (), &elf), 0);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    uint64_t address = 0;
    assert_int_equal (car_elf_function (elf, names[i], &address), 0);
    assert_ptr_equal ((void *) (uintptr_t) address, dlsym (libc, names[i]));
  }
  uint64_t untouched = 7;
  assert_int_equal (car_elf_function (elf, "no_such_function", &untouched), WEFT_E_NOT_FOUND);
  assert_int_equal (untouched, 7);
  uint8_t id[CAR_ELF_BUILD_ID];
  assert_int_equal (car_elf_build_id (elf, id), 0);
  car_elf_destroy (&elf);
  car_elf_destroy (&elf);
  dlclose (libc);
}

/* ---- an object of our own making, and every way in which it may lie ------------- */
#define IMAGE_SIZE 4096
#define BASE       0x40000000ull
static struct {
  Elf64_Ehdr head;
  Elf64_Phdr segment[3];
  Elf64_Dyn dynamic[12];
  Elf64_Sym symbol[3];
  Elf64_Rela slot[1];
  uint32_t hash[2];
  char strings[32];
  struct {
    Elf64_Nhdr head;
    char name[4];
    uint8_t id[CAR_ELF_BUILD_ID];
  } note;
  uint8_t rest[IMAGE_SIZE - 900];
} image;
#define AT(field) ((uint64_t) offsetof (__typeof__ (image), field))

static int read_image (void *arg, uint64_t address, void *out, size_t size)
{
  if (address < BASE || address - BASE > sizeof image || size > sizeof image - (address - BASE))
    return WEFT_E_IO;
  memcpy (out, (const uint8_t *) &image + (address - BASE), size);
  return 0;
}

static void make_image (void)
{
  memset (&image, 0, sizeof image);
  memcpy (image.head.e_ident, ELFMAG, SELFMAG);
  image.head.e_ident[EI_CLASS] = ELFCLASS64;
  image.head.e_machine = EM_X86_64;
  image.head.e_phoff = AT (segment);
  image.head.e_phentsize = sizeof (Elf64_Phdr);
  image.head.e_phnum = 3;
  image.segment[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = sizeof image};
  image.segment[1] =
      (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_vaddr = AT (dynamic), .p_memsz = sizeof image.dynamic};
  image.segment[2] = (Elf64_Phdr){.p_type = PT_NOTE, .p_vaddr = AT (note), .p_memsz = sizeof image.note};
  const Elf64_Dyn dynamic[] = {{DT_SYMTAB, {AT (symbol)}},
                               {DT_STRTAB, {AT (strings)}},
                               {DT_STRSZ, {sizeof image.strings}},
                               {DT_HASH, {AT (hash)}},
                               {DT_JMPREL, {AT (slot)}},
                               {DT_PLTRELSZ, {sizeof image.slot}},
                               {DT_PLTREL, {DT_RELA}},
                               {DT_NULL, {0}}};
  memcpy (image.dynamic, dynamic, sizeof dynamic);
  memcpy (image.strings, "\0start\0send", 12);
  image.symbol[1] = (Elf64_Sym){
      .st_name = 1, .st_info = ELF64_ST_INFO (STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = 0x100};
  image.symbol[2] = (Elf64_Sym){.st_name = 7, .st_info = ELF64_ST_INFO (STB_GLOBAL, STT_FUNC)};
  image.slot[0] = (Elf64_Rela){.r_offset = 0x200, .r_info = ELF64_R_INFO (2, R_X86_64_JUMP_SLOT)};
  image.hash[1] = 3;
  image.note.head = (Elf64_Nhdr){4, CAR_ELF_BUILD_ID, NT_GNU_BUILD_ID};
  memcpy (image.note.name, "GNU", 4);
  memset (image.note.id, 0xab, sizeof image.note.id);
}

static void see_slot (void *arg, const char *name, uint64_t slot)
{
  unsigned *count = arg;
  assert_true (strlen (name) < sizeof image.strings);
  *count += strcmp (name, "send") == 0 && slot == BASE + 0x200;
}

/* Everything that can be asked of it; 1: it was all as it was made. */
static int ask_all (void)
{
  car_elf_t *elf = NULL;
  uint64_t address = 0;
  uint8_t id[CAR_ELF_BUILD_ID] = {0};
  unsigned slots = 0;
  if (car_elf_open (read_image, NULL, BASE, &elf) < 0)
    return 0;
  int found = car_elf_function (elf, "start", &address) == 0 && address == BASE + 0x100;
  int hidden = car_elf_function (elf, "send", &address) == WEFT_E_NOT_FOUND;
  int known = car_elf_build_id (elf, id) == 0 && id[19] == 0xab;
  int walked = car_elf_slots (elf, see_slot, &slots) == 0 && slots == 1;
  car_elf_destroy (&elf);
  return found && hidden && known && walked;
}

static void reads_what_was_made (void **state)
{
  make_image ();
  assert_true (ask_all ());
  image.hash[1] = 0; /* no symbols: nothing is found, nothing breaks */
  assert_false (ask_all ());
  make_image ();
  image.head.e_machine = EM_AARCH64;
  car_elf_t *elf;
  assert_int_equal (car_elf_open (read_image, NULL, BASE, &elf), WEFT_E_UNSUPPORTED);
  make_image ();
  image.head.e_ident[EI_CLASS] = ELFCLASS32;
  assert_int_equal (car_elf_open (read_image, NULL, BASE, &elf), WEFT_E_UNSUPPORTED);
}

/* Every eight bytes of the headers and tables by themselves, with values that
 * count too far, point elsewhere, wrap around. */
static void survives_every_lie (void **state)
{
  static const uint64_t lies[] = {0,          1,          7,          0xff,       0xffff,         0x7fffffff,
                                  0xffffffff, 1ull << 32, 1ull << 40, 1ull << 62, UINT64_MAX - 7, UINT64_MAX};
  for (size_t at = 0; at < AT (rest); at += 4)
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
      for (size_t size = 2; size <= 8; size *= 2) {
        make_image ();
        memcpy ((uint8_t *) &image + at, &lies[i], size);
        ask_all ();
      }
}

static void survives_noise (void **state)
{
  unsigned seed = 20261129;
  for (unsigned round = 0; round < 20000; round++) {
    make_image ();
    for (unsigned n = 0; n < 1 + round % 8; n++)
      ((uint8_t *) &image)[SELFMAG + (unsigned) rand_r (&seed) % (AT (rest) - SELFMAG)] =
          (uint8_t) rand_r (&seed);
    ask_all ();
  }
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (finds_functions_where_the_loader_does),
      cmocka_unit_test (reads_what_was_made),
      cmocka_unit_test (survives_every_lie),
      cmocka_unit_test (survives_noise),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
