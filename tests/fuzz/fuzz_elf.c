/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF objects of a process that is to be joined: it may have mapped anything. */
#include "../../common/status.h"
#include "../../instance/sidecar/way_in/elf.h"
#include "fuzz.h"

#define BASE 0x7f0000000000ull

typedef struct {
  const uint8_t *data;
  size_t size;
} image_t;

static int read_image (void *arg, uint64_t address, void *out, size_t size)
{
  const image_t *image = arg;
  if (address < BASE || address - BASE > image->size || size > image->size - (address - BASE))
    return WEFT_E_IO;
  memcpy (out, image->data + (address - BASE), size);
  return 0;
}

static void see_slot (void *arg, const char *name, uint64_t slot)
{
  const image_t *image = arg;
  FUZZ_MUST (strlen (name) <= image->size);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  image_t image = {data, size};
  car_elf_t *elf = NULL;
  uint64_t address;
  uint8_t id[CAR_ELF_BUILD_ID];
  if (car_elf_open (read_image, &image, BASE, &elf) < 0)
    return 0;
  if (car_elf_function (elf, "start", &address) == 0)
    FUZZ_MUST (address > BASE);
  car_elf_build_id (elf, id);
  car_elf_slots (elf, see_slot, &image);
  car_elf_destroy (&elf);
  return 0;
}
