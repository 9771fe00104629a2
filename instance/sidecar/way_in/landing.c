/* SPDX-License-Identifier: Apache-2.0 */
#include "landing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../common/status.h"
#include "../target.h"
#include "remote.h"
#include "stub.h"

#define CHUNK     65536 /* bytes of code that are searched at once */
#define STUBS_MAX 16    /* left behind side by side: one range */

static const uint8_t leave_code[] = {0x0f, 0x05, 0xc3};
static const uint8_t restorer_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

static int find_functions (car_landing_t *self)
{
  const struct {
    const char *name, *other;
    uint64_t *address;
  } wanted[] = {{"pthread_create", NULL, &self->pthread_create},
                {"pthread_detach", NULL, &self->pthread_detach},
                {"dlopen", "__libc_dlopen_mode", &self->dlopen},
                {"dlsym", "__libc_dlsym", &self->dlsym},
                {"dlerror", NULL, &self->dlerror}};
  size_t missing = sizeof wanted / sizeof wanted[0];
  for (const car_map_t *map = car_maps_next (&self->maps, CAR_MAP_LIBC, NULL); map && missing;
       map = car_maps_next (&self->maps, CAR_MAP_LIBC, map)) {
    car_elf_t *elf = NULL;
    if (car_elf_open (car_remote_read_elf, &self->pid, map->from, &elf) < 0)
      continue;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
      if (!*wanted[i].address)
        missing -= car_elf_function (elf, wanted[i].name, wanted[i].address) == 0 ||
                   (wanted[i].other && car_elf_function (elf, wanted[i].other, wanted[i].address) == 0);
    car_elf_destroy (&elf);
  }
  return missing ? WEFT_E_NOT_FOUND : 0;
}

static uint64_t find_code (const uint8_t *bytes, size_t size, uint64_t at, const uint8_t *code,
                           size_t code_size)
{
  const uint8_t *found = memmem (bytes, size, code, code_size);
  return found ? at + (uint64_t) (found - bytes) : 0;
}

/* Both instructions, from the executable ranges of libc. */
static int find_instructions (car_landing_t *self)
{
  uint8_t *bytes = malloc (CHUNK + sizeof restorer_code);
  if (!bytes)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < self->maps.count && !(self->leave && self->restorer); i++) {
    const car_map_t *map = &self->maps.map[i];
    if (map->kind != CAR_MAP_LIBC || !(map->access & CAR_MAP_X))
      continue;
    for (uint64_t at = map->from; at < map->to && !(self->leave && self->restorer); at += CHUNK) {
      size_t size = map->to - at < CHUNK + sizeof restorer_code ? map->to - at : CHUNK + sizeof restorer_code;
      if (car_remote_read (self->pid, at, bytes, size) < 0)
        break;
      if (!self->leave)
        self->leave = find_code (bytes, size, at, leave_code, sizeof leave_code);
      if (!self->restorer)
        self->restorer = find_code (bytes, size, at, restorer_code, sizeof restorer_code);
    }
  }
  free (bytes);
  return self->leave && self->restorer ? 0 : WEFT_E_NOT_FOUND;
}

int car_landing_read (pid_t pid, car_landing_t *ret_landing, char *why, size_t why_size)
{
  car_landing_t landing = {.pid = pid};
  int status = car_maps_read (pid, &landing.maps);
  if (status < 0) {
    snprintf (why, why_size, "its memory map cannot be read (%s); run weft as root",
              weft_status_text (status));
    return status;
  }
  if (!car_maps_next (&landing.maps, CAR_MAP_LIBC, NULL) ||
      !car_maps_next (&landing.maps, CAR_MAP_LOADER, NULL)) {
    snprintf (why, why_size,
              "it is statically linked, a probe cannot be loaded; use a dynamically linked build");
    status = WEFT_E_UNSUPPORTED;
  } else if (find_functions (&landing) < 0 || (status = find_instructions (&landing)) == WEFT_E_NOT_FOUND) {
    snprintf (why, why_size,
              "its libc lacks what starts a thread or loads a library (not glibc, or older than 2.34 "
              "without libpthread and libdl); start it with `weft run`");
    status = WEFT_E_UNSUPPORTED;
  } else if (status < 0)
    snprintf (why, why_size, CAR_NO_MEMORY);
  if (status < 0)
    car_landing_clear (&landing);
  else
    *ret_landing = landing;
  return status;
}

void car_landing_clear (car_landing_t *self)
{
  car_maps_clear (&self->maps);
}

int car_landing_look_again (car_landing_t *self)
{
  car_maps_t maps;
  int status = car_maps_read (self->pid, &maps);
  if (status < 0)
    return status;
  car_maps_clear (&self->maps);
  self->maps = maps;
  if (self->allocators)
    car_landing_mark_allocators (self);
  return 0;
}

void car_landing_mark_allocators (car_landing_t *self)
{
  self->allocators = 1;
  for (const car_map_t *map = car_maps_next (&self->maps, CAR_MAP_OTHER, NULL); map;
       map = car_maps_next (&self->maps, CAR_MAP_OTHER, map)) {
    car_elf_t *elf = NULL;
    uint64_t address;
    if (car_elf_open (car_remote_read_elf, &self->pid, map->from, &elf) == 0 &&
        car_elf_function (elf, "malloc", &address) == 0)
      car_maps_mark (&self->maps, map, CAR_MAP_ALLOCATOR);
    car_elf_destroy (&elf);
  }
}

unsigned car_landing_probes (const car_landing_t *self)
{
  unsigned count = 0;
  for (const car_map_t *map = NULL; (map = car_maps_next (&self->maps, CAR_MAP_PROBE, map));)
    count++;
  return count;
}

/* The state of the stub whose code is at `at`, or -1: there is none. */
static int stub_state (const car_landing_t *self, uint64_t at)
{
  uint8_t code[CAR_STUB_PAGE];
  size_t size = (size_t) (car_stub_code_end - car_stub_code);
  uint64_t word = at + CAR_STUB_PAGE + offsetof (car_stub_data_t, state);
  uint32_t state;
  if (car_remote_read (self->pid, at, code, size) < 0 || memcmp (code, car_stub_code, size) != 0 ||
      car_remote_read (self->pid, word, &state, sizeof state) < 0)
    return -1;
  if (state != CAR_STUB_WAITING)
    return (int) state;
  state = CAR_STUB_CANCELLED;
  car_remote_write (self->pid, word, &state, sizeof state); /* not writable: never entered */
  return CAR_STUB_CANCELLED;
}

int car_landing_occupied (const car_landing_t *self)
{
  for (size_t i = 0; i < self->maps.count; i++) {
    const car_map_t *map = &self->maps.map[i];
    if (map->file || (map->access & (CAR_MAP_X | CAR_MAP_W)) != CAR_MAP_X ||
        map->to - map->from > STUBS_MAX * 2 * CAR_STUB_PAGE)
      continue;
    for (uint64_t at = map->from; at < map->to; at += CAR_STUB_PAGE) {
      int state = stub_state (self, at);
      if (state == CAR_STUB_STARTED || state == CAR_STUB_READY || state == CAR_STUB_ASKING)
        return 1;
    }
  }
  return 0;
}

uint64_t car_landing_probe (const car_landing_t *self, const car_library_t *library)
{
  pid_t pid = self->pid;
  for (const car_map_t *map = car_maps_next (&self->maps, CAR_MAP_PROBE, NULL); map;
       map = car_maps_next (&self->maps, CAR_MAP_PROBE, map)) {
    car_elf_t *elf = NULL;
    uint8_t id[CAR_ELF_BUILD_ID];
    uint64_t entry = 0;
    int same = car_elf_open (car_remote_read_elf, &pid, map->from, &elf) == 0 &&
               car_elf_build_id (elf, id) == 0 && memcmp (id, library->build_id, sizeof id) == 0;
    if (same)
      entry = map->from + library->entry;
    car_elf_destroy (&elf);
    const car_map_t *code = entry ? car_maps_at (&self->maps, entry) : NULL;
    if (code && code->kind == CAR_MAP_PROBE && (code->access & CAR_MAP_X))
      return entry;
  }
  return 0;
}
