/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../common/status.h"

/* 0 and its nth program header; WEFT_E_MALFORMED: there are fewer. */
static int read_segment (const car_library_t *self, unsigned n, Elf64_Phdr *ret_segment)
{
  Elf64_Ehdr head;
  memcpy (&head, self->bytes, sizeof head);
  if (n >= head.e_phnum || head.e_phoff > self->size ||
      (n + 1) * sizeof *ret_segment > self->size - head.e_phoff)
    return WEFT_E_MALFORMED;
  memcpy (ret_segment, self->bytes + head.e_phoff + n * sizeof *ret_segment, sizeof *ret_segment);
  return 0;
}

/* Virtual addresses from 0, as the loader would map them. */
static int read_mapped (void *arg, uint64_t address, void *out, size_t size)
{
  const car_library_t *self = arg;
  Elf64_Phdr segment;
  if (address < sizeof (Elf64_Ehdr) + CAR_ELF_HEADERS_MAX * sizeof segment && address <= self->size &&
      size <= self->size - address) {
    memcpy (out, self->bytes + address, size);
    return 0;
  }
  for (unsigned i = 0; read_segment (self, i, &segment) == 0; i++) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
        address - segment.p_vaddr > segment.p_filesz ||
        size > segment.p_filesz - (address - segment.p_vaddr) || segment.p_offset > self->size ||
        segment.p_filesz > self->size - segment.p_offset)
      continue;
    memcpy (out, self->bytes + segment.p_offset + (address - segment.p_vaddr), size);
    return 0;
  }
  return WEFT_E_MALFORMED;
}

static size_t loaded_size (const car_library_t *self)
{
  Elf64_Phdr segment;
  size_t size = 0;
  for (unsigned i = 0; read_segment (self, i, &segment) == 0; i++)
    if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > size)
      size = segment.p_offset + segment.p_filesz;
  return size < self->size ? size : self->size;
}

static int read_file (const char *path, car_library_t *library)
{
  struct stat info;
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return WEFT_E_IO;
  int status = WEFT_E_IO;
  if (fstat (fd, &info) == 0 && info.st_size > (off_t) sizeof (Elf64_Ehdr) &&
      info.st_size < CAR_LIBRARY_MAX) {
    library->size = (size_t) info.st_size;
    library->bytes = malloc (library->size);
    if (library->bytes && read (fd, library->bytes, library->size) == info.st_size)
      status = 0;
  }
  close (fd);
  return status;
}

int car_library_read (const char *path, car_library_t *ret_library, char *why, size_t why_size)
{
  car_library_t library = {.bytes = NULL};
  car_elf_t *elf = NULL;
  errno = 0;
  int status = read_file (path, &library);
  if (status == 0)
    status = car_elf_open (read_mapped, &library, 0, &elf);
  if (status == 0)
    status = car_elf_build_id (elf, library.build_id);
  if (status == 0)
    status = car_elf_function (elf, CAR_LIBRARY_ENTRY, &library.entry);
  car_elf_destroy (&elf);
  if (status < 0) {
    snprintf (why, why_size, "the probe library %s is not usable (%s); install weft completely", path,
              errno ? strerror (errno) : weft_status_text (status));
    car_library_clear (&library);
    return status;
  }
  library.loaded = loaded_size (&library);
  *ret_library = library;
  return 0;
}

void car_library_clear (car_library_t *self)
{
  free (self->bytes);
  *self = (car_library_t){.bytes = NULL};
}
