/* SPDX-License-Identifier: Apache-2.0 */
#include "maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../common/status.h"

#define TEXT_MAX (16u << 20) /* bytes of one maps file: 65,530 long lines */
#define HEAD_MAX 128         /* bytes of a line before the name */
#define DELETED  " (deleted)"

const char *car_map_base_name (const car_map_t *map)
{
  const char *slash = strrchr (map->name, '/');
  return slash ? slash + 1 : map->name;
}

static int begins (const char *name, const char *with)
{
  return strncmp (name, with, strlen (with)) == 0;
}

static car_map_kind_t kind_of (const car_map_t *map)
{
  static const struct {
    const char *begin;
    car_map_kind_t kind;
  } known[] = {{"libc.so.6", CAR_MAP_LIBC},           {"libc-2.", CAR_MAP_LIBC},
               {"libpthread.so", CAR_MAP_LIBC},       {"libpthread-2.", CAR_MAP_LIBC},
               {"libdl.so.2", CAR_MAP_LIBC},          {"libdl-2.", CAR_MAP_LIBC},
               {"ld-linux-x86-64", CAR_MAP_LOADER},   {"ld-2.", CAR_MAP_LOADER},
               {"libjemalloc", CAR_MAP_ALLOCATOR},    {"libtcmalloc", CAR_MAP_ALLOCATOR},
               {"libmimalloc", CAR_MAP_ALLOCATOR},    {"libweft_probe", CAR_MAP_PROBE},
               {"memfd:libweft_probe", CAR_MAP_PROBE}};
  if (strcmp (map->name, "[stack]") == 0)
    return CAR_MAP_STACK;
  const char *base = car_map_base_name (map);
  for (size_t i = 0; map->file && i < sizeof known / sizeof known[0]; i++)
    if (begins (base, known[i].begin))
      return known[i].kind;
  return CAR_MAP_OTHER;
}

static void take_name (car_map_t *map, const char *text, size_t size)
{
  size_t suffix = sizeof DELETED - 1;
  if (size > suffix && memcmp (text + size - suffix, DELETED, suffix) == 0)
    size -= suffix;
  map->file = size > 0 && text[0] == '/';
  if (size >= sizeof map->name) { /* its end tells more */
    text += size - (sizeof map->name - 1);
    size = sizeof map->name - 1;
  }
  memcpy (map->name, text, size);
  map->name[size] = '\0';
}

/* A number in hexadecimal or decimal digits that ends with `stop`. NULL: there is none. */
static const char *take_number (const char *at, int base, char stop, uint64_t *ret_value)
{
  char *end;
  *ret_value = strtoull (at, &end, base);
  return end != at && *end == stop ? end + 1 : NULL;
}

/* "from-to perms offset device inode   name" */
static int parse_line (const char *line, size_t size, car_map_t *ret_map)
{
  char head[HEAD_MAX];
  car_map_t map = {.kind = CAR_MAP_OTHER};
  size_t head_size = size < sizeof head - 2 ? size : sizeof head - 2;
  memcpy (head, line, head_size);
  memcpy (head + head_size, " ", 2); /* the inode ends with a space */
  const char *perms = take_number (head, 16, '-', &map.from);
  perms = perms ? take_number (perms, 16, ' ', &map.to) : NULL;
  const char *at = perms && strcspn (perms, " ") == 4 ? take_number (perms + 5, 16, ' ', &map.offset) : NULL;
  const char *device = at ? strchr (at, ' ') : NULL;
  at = device ? take_number (device + 1, 10, ' ', &map.inode) : NULL;
  if (!at || map.from >= map.to)
    return WEFT_E_MALFORMED;
  map.access = (uint8_t) ((perms[0] == 'r' ? CAR_MAP_R : 0) | (perms[1] == 'w' ? CAR_MAP_W : 0) |
                          (perms[2] == 'x' ? CAR_MAP_X : 0));
  size_t name = (size_t) (at - head);
  while (name < size && line[name] == ' ')
    name++;
  if (name < size)
    take_name (&map, line + name, size - name);
  map.kind = (uint8_t) kind_of (&map);
  *ret_map = map;
  return 0;
}

/* What belongs together: an object's ranges follow its first one, and the zeroed
 * end of its data is an anonymous range right behind. */
static void relate (car_map_t *map, const car_map_t *before)
{
  map->first = map->file && map->offset == 0 && (map->access & CAR_MAP_R) &&
               (!before || before->inode != map->inode || strcmp (before->name, map->name) != 0);
  if (before && !map->file && !map->name[0] && map->from == before->to && (before->access & CAR_MAP_W) &&
      before->file)
    map->kind = before->kind;
}

int car_maps_parse (const char *text, size_t size, car_maps_t *ret_maps)
{
  car_maps_t maps = {NULL, 0};
  size_t room = 0;
  for (const char *line = text, *end = text + size; line < end;) {
    const char *stop = memchr (line, '\n', (size_t) (end - line));
    size_t length = (size_t) ((stop ? stop : end) - line);
    if (maps.count == room) {
      room = room ? room * 2 : 256;
      car_map_t *more = room <= CAR_MAPS_MAX * 2 ? realloc (maps.map, room * sizeof *more) : NULL;
      if (!more) {
        car_maps_clear (&maps);
        return room <= CAR_MAPS_MAX * 2 ? WEFT_E_NOMEM : WEFT_E_RANGE;
      }
      maps.map = more;
    }
    if (parse_line (line, length, &maps.map[maps.count]) == 0) {
      relate (&maps.map[maps.count], maps.count ? &maps.map[maps.count - 1] : NULL);
      maps.count++;
    }
    line += length + 1;
  }
  *ret_maps = maps;
  return 0;
}

static int read_text (pid_t pid, char **ret_text, size_t *ret_size)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/maps", (int) pid);
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return WEFT_E_IO;
  char *text = NULL;
  size_t size = 0, room = 0;
  ssize_t got = 0;
  do {
    size += (size_t) got;
    if (room - size < 8192) {
      room = room ? room * 2 : 65536;
      char *more = room <= TEXT_MAX ? realloc (text, room) : NULL;
      if (!more) {
        free (text);
        close (fd);
        return WEFT_E_RANGE;
      }
      text = more;
    }
  } while ((got = read (fd, text + size, room - size)) > 0);
  close (fd);
  *ret_text = text;
  *ret_size = size;
  return 0;
}

int car_maps_read (pid_t pid, car_maps_t *ret_maps)
{
  char *text;
  size_t size;
  int status = read_text (pid, &text, &size);
  if (status < 0)
    return status;
  status = size ? car_maps_parse (text, size, ret_maps) : WEFT_E_IO;
  free (text);
  return status;
}

void car_maps_clear (car_maps_t *self)
{
  free (self->map);
  *self = (car_maps_t){NULL, 0};
}

const car_map_t *car_maps_at (const car_maps_t *self, uint64_t address)
{
  size_t low = 0, high = self->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const car_map_t *map = &self->map[middle];
    if (address < map->from)
      high = middle;
    else if (address >= map->to)
      low = middle + 1;
    else
      return map;
  }
  return NULL;
}

const car_map_t *car_maps_next (const car_maps_t *self, car_map_kind_t kind, const car_map_t *after)
{
  for (size_t i = after ? (size_t) (after - self->map) + 1 : 0; i < self->count; i++)
    if (self->map[i].first && self->map[i].kind == kind)
      return &self->map[i];
  return NULL;
}

void car_maps_mark (car_maps_t *self, const car_map_t *first, car_map_kind_t kind)
{
  size_t i = (size_t) (first - self->map);
  uint64_t inode = first->inode;
  self->map[i].kind = (uint8_t) kind;
  for (i++; i < self->count; i++) {
    car_map_t *map = &self->map[i];
    int bss = !map->file && !map->name[0] && map->from == self->map[i - 1].to;
    if ((map->file && map->inode != inode) || (!map->file && !bss) || map->first)
      break;
    map->kind = (uint8_t) kind;
    if (bss)
      break;
  }
}
