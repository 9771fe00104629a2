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

#include "../../../common/selector.h"
#include "../../../common/status.h"

static const uint8_t uuid[16] = {0x01, 0x92, 0xf3, 0xc4, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1};
static const weft_subject_t orders = {"orders", "jvm", "node-3", uuid, 4188, NULL};

static void holds (void **state)
{
  static const struct {
    const char *text;
    int holds;
  } row[] = {
      {"*", 1},
      {"service=orders", 1},
      {"service=order", 0},
      {"service=orders2", 0},
      {"vm=jvm", 1},
      {"vm=node", 0},
      {"host=node-3", 1},
      {"pid=4188", 1},
      {"pid=418", 0},
      {"pid=04188", 1},
      {"instance=0192f3c4-0000-7000-8000-000000000001", 1},
      {"instance=0192f3c4-0000-7000-8000-000000000002", 0},
      {"service=orders,vm=jvm,host=node-3,pid=4188", 1},
      {"service=orders,vm=node", 0},
      {"vm=node,service=orders", 0},
      {"", 0},
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++)
    if (weft_selector_holds (row[i].text, &orders) != row[i].holds)
      fail_msg ("'%s' does not give %d", row[i].text, row[i].holds);
}

static void refusals (void **state)
{
  static const struct {
    const char *text;
    int status;
    const char *why;
  } row[] = {
      {"", WEFT_E_MALFORMED, "empty selector ('*' selects every instance)"},
      {"servce=a", WEFT_E_MALFORMED, "unknown key 'servce' (service, vm, host, instance, pid)"},
      {"orders", WEFT_E_MALFORMED, "'orders' is no key=value"},
      {"service=", WEFT_E_MALFORMED, "'service=' has no value"},
      {"service=a,", WEFT_E_MALFORMED, "empty term in 'service=a,'"},
      {",service=a", WEFT_E_MALFORMED, "empty term in ',service=a'"},
      {"service=a,service=b", WEFT_E_MALFORMED, "'service' given twice (repeat the option for \"or\")"},
      {"vm=java", WEFT_E_RANGE, "unknown vm 'java' (jvm, cpython, node, ruby, php)"},
      {"pid=0", WEFT_E_RANGE, "'0' is no pid"},
      {"pid=-1", WEFT_E_RANGE, "'-1' is no pid"},
      {"pid=99999999999999999999", WEFT_E_RANGE, "'99999999999999999999' is no pid"},
      {"instance=0192", WEFT_E_MALFORMED, "'0192' is no instance uuid (see `weft ls`)"},
      {"=a", WEFT_E_MALFORMED, "unknown key '' (service, vm, host, instance, pid)"},
      {"*,vm=jvm", WEFT_E_MALFORMED, "'*' is no key=value"},
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    char why[128] = "";
    int status = weft_selector_check (row[i].text, why, sizeof (why));
    if (status != row[i].status)
      fail_msg ("'%s' gives %d", row[i].text, status);
    assert_string_equal (why, row[i].why);
    assert_int_equal (weft_selector_holds (row[i].text, &orders), 0);
  }
}

static void accepted (void **state)
{
  static const char *const good[] = {"*", "service=a", "service=a b=c", "vm=cpython,pid=1",
                                     "instance=0192f3c4-0000-7000-8000-000000000001,host=h"};
  for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++) {
    char why[32] = "untouched";
    assert_int_equal (weft_selector_check (good[i], why, sizeof (why)), 0);
    assert_string_equal (why, "untouched");
  }
}

static void bounds (void **state)
{
  char text[WEFT_SELECTOR_MAX + 1], why[8];
  memset (text, 'a', sizeof (text));
  memcpy (text, "service=", 8);
  text[WEFT_SELECTOR_MAX - 1] = 0;
  assert_int_equal (weft_selector_check (text, why, sizeof (why)), 0);
  text[WEFT_SELECTOR_MAX - 1] = 'a';
  text[WEFT_SELECTOR_MAX] = 0;
  assert_int_equal (weft_selector_check (text, why, sizeof (why)), WEFT_E_RANGE);
  assert_string_equal (why, "selecto"); /* cut, terminated */
  assert_int_equal (weft_selector_check (text, NULL, 0), WEFT_E_RANGE);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (holds),
      cmocka_unit_test (refusals),
      cmocka_unit_test (accepted),
      cmocka_unit_test (bounds),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
