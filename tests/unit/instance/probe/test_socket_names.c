/* SPDX-License-Identifier: Apache-2.0 */
/* socket_names and its neighbours: lookups, outcomes of connects, and fds of which a hook has
 * nothing to do but the call. */
#include "call_recorders.h"

/* ---- quiet fds, outcomes of connects, lookups ---------------------------------------- */
static void moves (const char *expected)
{
  char data[4];
  trace[0] = 0;
  tracked = 1;
  kernel_result = 3;
  probe_hook_send (FD, abc, 3, 0);
  probe_hook_recv (FD, data, sizeof data, 0);
  assert_string_equal (trace, expected);
}

#define WRITE_PLAIN  "send 7 0;"
#define WRITE_LOOKED "before_write 7 x1;send 7 0;after_write 3;"
#define READ_PLAIN   "recv 7 0;"
#define READ_LOOKED  "before_read 7;recv 7 0;after_read x1 3;"

static void test_quiet_fds_are_the_call_alone (void **state)
{
  for (unsigned near = 0; near < 3; near++) {
    probe_context_count = near == 1;
    probe_context_adapted = near == 2;
    probe_quiet[FD] = PROBE_FD_LOOK;
    moves (WRITE_LOOKED READ_LOOKED);
    probe_quiet[FD] = PROBE_FD_QUIET;
    moves (WRITE_PLAIN READ_PLAIN);
    probe_quiet[FD] = PROBE_FD_SERVER;
    moves (near ? WRITE_PLAIN READ_LOOKED : WRITE_PLAIN READ_PLAIN);
    probe_quiet[FD] = PROBE_FD_CLIENT;
    moves (near ? WRITE_LOOKED READ_PLAIN : WRITE_PLAIN READ_PLAIN);
    probe_quiet[FD] = PROBE_FD_CALLING;
    moves (WRITE_LOOKED READ_LOOKED);
  }
  probe_quiet[FD] = PROBE_FD_LOOK;
  probe_context_count = probe_context_adapted = 0;
}

static int socket_error;
static int fake_getsockopt (int fd, int level, int name, void *value, socklen_t *size)
{
  memcpy (value, &socket_error, sizeof socket_error);
  errno = 7;
  return 0;
}

static void test_outcome_of_a_connect (void **state)
{
  int error;
  socklen_t size = sizeof error;
  probe_context_count = 1;
  connect_answers (-1, EINPROGRESS);
  assert_string_equal (trace, "connect 7;born 7 client;reach 7 115;");
  trace[0] = 0;
  connect_answers (-1, ECONNREFUSED);
  assert_string_equal (trace, "connect 7;refused 7 111;reach 7 111;");
  trace[0] = 0;
  connect_answers (0, 0);
  assert_string_equal (trace, "connect 7;born 7 client;");
  probe_context_count = 0;
  probe_real.getsockopt = fake_getsockopt;
  trace[0] = 0;
  assert_int_equal (probe_hook_getsockopt (FD, SOL_SOCKET, SO_ERROR, &error, &size), 0);
  assert_string_equal (trace, "");
  socket_error = ECONNREFUSED;
  assert_int_equal (probe_hook_getsockopt (FD, SOL_SOCKET, SO_RCVBUF, &error, &size), 0);
  assert_string_equal (trace, "");
  assert_int_equal (probe_hook_getsockopt (FD, SOL_SOCKET, SO_ERROR, &error, &size), 0);
  assert_int_equal (errno, 7);
  assert_string_equal (trace, "told 7 111;");
}

static int lookup_result;
static int fake_getaddrinfo (const char *node, const char *service, const struct addrinfo *hints,
                             struct addrinfo **ret_list)
{
  note ("getaddrinfo;");
  return lookup_result;
}
static struct hostent *fake_gethostbyname (const char *node)
{
  note ("gethostbyname;");
  h_errno = TRY_AGAIN;
  return NULL;
}

static void test_lookups (void **state)
{
  struct addrinfo *list;
  probe_real.getaddrinfo = fake_getaddrinfo;
  probe_real.gethostbyname = fake_gethostbyname;
  trace[0] = 0;
  assert_int_equal (probe_hook_getaddrinfo ("db", NULL, NULL, &list), 0);
  assert_string_equal (trace, "getaddrinfo;");
  probe_context_count = 1;
  assert_int_equal (probe_hook_getaddrinfo ("db", NULL, NULL, &list), 0);
  lookup_result = EAI_AGAIN;
  assert_int_equal (probe_hook_getaddrinfo ("db", NULL, NULL, &list), EAI_AGAIN);
  assert_null (probe_hook_gethostbyname ("db"));
  assert_string_equal (trace, "getaddrinfo;getaddrinfo;looked up;getaddrinfo;looked up in vain;"
                              "gethostbyname;looked up in vain;");
  probe_context_count = 0;
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, begin)
  const struct CMUnitTest tests[] = {
      TEST (test_quiet_fds_are_the_call_alone),
      TEST (test_outcome_of_a_connect),
      TEST (test_lookups),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
