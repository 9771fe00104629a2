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

#include <unistd.h>

#include "../../../../../common/status.h"
#include "../../../../../instance/sidecar/way_in/maps.h"

static car_maps_t parse (const char *text)
{
  car_maps_t maps;
  assert_int_equal (car_maps_parse (text, strlen (text), &maps), 0);
  return maps;
}

static void what_ranges_are (void **state)
{
  car_maps_t maps = parse ("1000-2000 r--p 00000000 08:01 5   /lib/x86_64-linux-gnu/libc.so.6 (deleted)\n"
                           "2000-3000 r-xp 00001000 08:01 5   /lib/x86_64-linux-gnu/libc.so.6 (deleted)\n"
                           "3000-4000 rw-p 00002000 08:01 5   /lib/x86_64-linux-gnu/libc.so.6 (deleted)\n"
                           "4000-5000 rw-p 00000000 00:00 0 \n"
                           "6000-7000 rw-p 00000000 00:00 0 \n"
                           "7000-8000 r--p 00000000 00:01 9   /memfd:libweft_probe.so (deleted)\n"
                           "8000-9000 rw-s 00000000 00:01 8   /memfd:weft-probe (deleted)\n"
                           "9000-a000 rw-p 00000000 00:00 0   [stack]\n");
  const car_map_kind_t kinds[] = {CAR_MAP_LIBC,  CAR_MAP_LIBC,  CAR_MAP_LIBC,  CAR_MAP_LIBC,
                                  CAR_MAP_OTHER, CAR_MAP_PROBE, CAR_MAP_OTHER, CAR_MAP_STACK};
  assert_int_equal (maps.count, 8);
  for (size_t i = 0; i < maps.count; i++)
    assert_int_equal (maps.map[i].kind, kinds[i]);
  assert_string_equal (car_map_base_name (&maps.map[0]), "libc.so.6");
  assert_int_equal (maps.map[1].access, CAR_MAP_R | CAR_MAP_X);
  assert_true (maps.map[0].first && !maps.map[1].first);
  assert_ptr_equal (car_maps_next (&maps, CAR_MAP_LIBC, NULL), &maps.map[0]);
  assert_null (car_maps_next (&maps, CAR_MAP_LIBC, &maps.map[0]));
  assert_ptr_equal (car_maps_at (&maps, 0x2fff), &maps.map[1]);
  assert_ptr_equal (car_maps_at (&maps, 0x3000), &maps.map[2]);
  assert_null (car_maps_at (&maps, 0x5000));
  assert_null (car_maps_at (&maps, 0xfff));
  assert_null (car_maps_at (&maps, UINT64_MAX));
  car_maps_clear (&maps);
}

static void marks_one_object (void **state)
{
  car_maps_t maps = parse ("1000-2000 r-xp 00000000 08:01 5 /opt/a\n"
                           "2000-3000 rw-p 00001000 08:01 5 /opt/a\n"
                           "3000-4000 rw-p 00000000 00:00 0 \n"
                           "4000-5000 r-xp 00000000 08:01 6 /opt/b\n");
  car_maps_mark (&maps, &maps.map[0], CAR_MAP_ALLOCATOR);
  for (size_t i = 0; i < 4; i++)
    assert_int_equal (maps.map[i].kind, i < 3 ? CAR_MAP_ALLOCATOR : CAR_MAP_OTHER);
  car_maps_clear (&maps);
}

static void what_is_no_line_is_left_out (void **state)
{
  char path[5000];
  memset (path, 'x', sizeof path - 1);
  path[sizeof path - 1] = '\0';
  char line[6000];
  snprintf (line, sizeof line, "5000-6000 r--p 00000000 08:01 7 /%s/libc.so.6\n", path);
  const char *bad[] = {
      "", "\n\n", "hello\n", "2000-1000 r--p 0 08:01 7 /a\n", "1000-2000\n", "zz-yy r--p 0 0 0\n"};
  for (size_t i = 0; i < 6; i++) {
    car_maps_t maps = parse (bad[i]);
    assert_int_equal (maps.count, 0);
    car_maps_clear (&maps);
  }
  car_maps_t maps = parse (line); /* the end of a long path tells more */
  assert_int_equal (maps.count, 1);
  assert_string_equal (car_map_base_name (&maps.map[0]), "libc.so.6");
  car_maps_clear (&maps);
}

static void knows_this_process (void **state)
{
  car_maps_t maps;
  assert_int_equal (car_maps_read (getpid (), &maps), 0);
  const car_map_t *stack = car_maps_at (&maps, (uint64_t) (uintptr_t) &maps);
  assert_non_null (stack);
  assert_int_equal (stack->kind, CAR_MAP_STACK);
  const car_map_t *code = car_maps_at (&maps, (uint64_t) (uintptr_t) knows_this_process);
  assert_true (code && code->access & CAR_MAP_X && strstr (code->name, "test_maps"));
  assert_non_null (car_maps_next (&maps, CAR_MAP_LIBC, NULL));
  car_maps_clear (&maps);
  assert_int_equal (car_maps_read (1 << 29, &maps), WEFT_E_IO);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (what_ranges_are),
      cmocka_unit_test (marks_one_object),
      cmocka_unit_test (what_is_no_line_is_left_out),
      cmocka_unit_test (knows_this_process),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
