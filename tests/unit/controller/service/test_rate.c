/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../common/limits.h"
#include "../../../../controller/service/rate.h"

static unsigned take (ctl_rate_t *rate, const char *who, unsigned tries, uint64_t now_ns)
{
  unsigned taken = 0;
  for (unsigned n = 0; n < tries; n++)
    taken += (unsigned) ctl_rate_take (rate, who, strlen (who), now_ns);
  return taken;
}

static void test_burst_then_rate (void **state)
{
  ctl_rate_t *rate = ctl_rate_new ();
  uint64_t now = 5 * WEFT_NS_PER_S;
  assert_int_equal (take (rate, "a", 5000, now), WEFT_REQUESTS_BURST);
  assert_int_equal (take (rate, "b", 10, now), 10); /* nobody pays for another */
  assert_int_equal (take (rate, "a", 5000, now + WEFT_NS_PER_S / 10), WEFT_REQUESTS_RATE / 10);
  assert_int_equal (take (rate, "a", 5000, now + WEFT_NS_PER_S / 10), 0);
  assert_int_equal (take (rate, "a", 5000, now), 0); /* a clock that went back gives nothing */
  assert_int_equal (take (rate, "a", 5000, UINT64_MAX / 2), WEFT_REQUESTS_BURST);
  ctl_rate_destroy (&rate);
  ctl_rate_destroy (&rate);
}

static void test_many_clients (void **state)
{
  ctl_rate_t *rate = ctl_rate_new ();
  uint64_t now = WEFT_NS_PER_S;
  take (rate, "first", 5000, now);
  for (unsigned n = 0; n < WEFT_REQUESTS_PEERS - 1; n++) {
    char who[16];
    snprintf (who, sizeof who, "c%u", n);
    assert_int_equal (take (rate, who, 1, now + 1 + n), 1);
  }
  assert_int_equal (take (rate, "first", 1, now + 1000), 0); /* still known, and now not the quietest */
  assert_int_equal (take (rate, "one more", 1, now + 1001), 1);
  assert_int_equal (take (rate, "first", 1, now + 1002), 0);
  ctl_rate_destroy (&rate);
}

/* Identities of any length, chosen by the client. */
static void test_identities (void **state)
{
  ctl_rate_t *rate = ctl_rate_new ();
  char large[256];
  memset (large, 'x', sizeof large);
  assert_int_equal (ctl_rate_take (rate, large, 255, 1), 1);
  assert_int_equal (ctl_rate_take (rate, "", 0, 1), 1);
  assert_int_equal (ctl_rate_take (rate, "\0a", 2, 0), 1);
  ctl_rate_destroy (&rate);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_burst_then_rate),
      cmocka_unit_test (test_many_clients),
      cmocka_unit_test (test_identities),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
