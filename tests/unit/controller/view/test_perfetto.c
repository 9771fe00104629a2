/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include "../../../../common/status.h"
#include "../../../../controller/view/perfetto.h"

static int place (const uint8_t instance[WEFT_UUID_SIZE], ctl_place_t *ret_place, void *arg)
{
  if (instance[0] != 0x22) /* the one that is known */
    return WEFT_E_NOT_FOUND;
  *ret_place = (ctl_place_t){.version = "3.11.2", .host = "shop-1"};
  return 0;
}

static void test_a_trace_of_all_kinds (void **state)
{
  (void) state;
  golden_t golden;
  FILE *out = golden_begin (&golden);
  ctl_perfetto_t *trace = ctl_perfetto_new (place, NULL);
  ctl_execution_t *all[] = {golden_shop (1, 1), golden_odd (), golden_orphan (2), golden_database (3)};
  for (size_t n = 0; n < sizeof all / sizeof (void *); n++) {
    assert_int_equal (ctl_perfetto_add (trace, &all[n]), 0);
    assert_null (all[n]);
  }
  assert_int_equal (ctl_perfetto_write (trace, out), 0);
  ctl_perfetto_destroy (&trace);
  ctl_perfetto_destroy (&trace);
  golden_end (&golden, "perfetto.json");
}

static void test_a_full_disk (void **state)
{
  (void) state;
  FILE *out = fopen ("/dev/full", "we");
  ctl_perfetto_t *trace = ctl_perfetto_new (NULL, NULL);
  ctl_execution_t *shop = golden_shop (1, 1);
  assert_non_null (out);
  assert_int_equal (ctl_perfetto_add (trace, &shop), 0);
  assert_int_equal (ctl_perfetto_write (trace, out), WEFT_E_IO);
  ctl_perfetto_destroy (&trace);
  fclose (out);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_a_trace_of_all_kinds),
      cmocka_unit_test (test_a_full_disk),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
