/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are there before their request has ended: an impatient peer, or bytes
 * that somebody else wrote into the socket. */
#include "../../../support/fake_kernel.h"

#define FD   7
#define GET  "GET /a HTTP/1.1\r\n\r\n"
#define POST "POST /a HTTP/1.1\r\nContent-Length: 10\r\n\r\nab"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static unsigned embeds (void)
{
  unsigned found = 0;
  for (uint32_t i = 0; i < fake_report_count; i++)
    found += fake_reports[i].report.kind == WEFT_REPORT_EMBED;
  return found;
}

static void test_lockstep_is_proven_once (void **state)
{
  fake_connect (FD);
  for (int i = 0; i < 5; i++) {
    app_say (FD, POST);
    app_say (FD, "12345678");
    app_hear (FD, OK);
  }
  assert_int_equal (fake[FD].proofs, 1);
  assert_int_equal (embeds (), 5);
}

static void test_an_impatient_peer (void **state)
{
  fake_connect (FD);
  app_say (FD, POST);
  app_hear (FD, OK);
  app_say (FD, "12345678");
  assert_int_equal (fake[FD].proofs, 1);
  for (int i = 0; i < 3; i++) {
    app_say (FD, GET);
    app_hear (FD, OK);
  }
  assert_int_equal (fake[FD].proofs, 2);
  assert_int_equal (embeds (), 4);
}

/* The other eight bytes are a child's; what we take for their rest is the next head, and where it
 * ends a body begins that looks like a head. */
static void test_bytes_of_somebody_else (void **state)
{
  fake_connect (FD);
  app_say (FD, POST);
  fake[FD].written += 8;
  app_hear (FD, OK);
  app_say (FD, "P / HTTP"); // as many as we still expect
  size_t before = fake[FD].sent_size;
  app_say (FD, GET);
  assert_int_equal (fake[FD].sent_size - before, sizeof GET - 1);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_PROOF), 1);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_lockstep_is_proven_once),
      TEST (test_an_impatient_peer),
      TEST (test_bytes_of_somebody_else),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
