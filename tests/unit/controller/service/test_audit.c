/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "../../../../common/limits.h"
#include "../../../../common/status.h"
#include "../../../../controller/service/audit.h"

static char base[64], store[80], path[120];
static ctl_audit_t *audit;

static int setup (void **state)
{
  char why[700];
  strcpy (base, "/tmp/weft-audit-XXXXXX");
  if (!mkdtemp (base))
    return -1;
  snprintf (store, sizeof store, "%s/weft.db", base);
  snprintf (path, sizeof path, "%s/audit.log", base);
  return ctl_audit_open (store, &audit, why, sizeof why);
}

static int teardown (void **state)
{
  char command[128];
  snprintf (command, sizeof command, "rm -rf '%s'", base);
  ctl_audit_close (&audit);
  ctl_audit_close (&audit);
  return system (command);
}

/* The lines of the file: each one object of printable ASCII; the last one. */
static json_t *last_line (int *ret_count)
{
  json_t *last = NULL;
  char *line = NULL;
  size_t room = 0;
  FILE *file = fopen (path, "r");
  assert_non_null (file);
  *ret_count = 0;
  for (ssize_t size; (size = getline (&line, &room, file)) > 0; ++*ret_count) {
    assert_int_equal (line[size - 1], '\n');
    for (ssize_t n = 0; n < size - 1; n++)
      assert_true (line[n] >= 0x20 && line[n] < 0x7f);
    json_decref (last);
    last = json_loads (line, JSON_REJECT_DUPLICATES, NULL);
    assert_true (json_is_object (last));
  }
  free (line);
  fclose (file);
  return last;
}

static const char *text_at (const json_t *line, const char *key)
{
  return json_string_value (json_object_get (line, key));
}

static void ask (const char *who, const char *request, const char *answer)
{
  json_t *q = json_loads (request, 0, NULL), *a = json_loads (answer, 0, NULL);
  assert_non_null (q);
  assert_non_null (a);
  ctl_audit_request (audit, who, q, a);
  json_decref (q);
  json_decref (a);
}

static void test_instances_come_and_go (void **state)
{
  struct stat st;
  int count;
  weft_up_message_t hello = {.kind = WEFT_UP_HELLO, .pid = 4188, .instance = {1, 2}};
  strcpy (hello.service, "orders");
  strcpy (hello.vm, "jvm");
  strcpy (hello.host, "box1");
  ctl_audit_attach (audit, "uid 1000 pid 5", &hello);
  json_t *line = last_line (&count);
  assert_int_equal (count, 1);
  assert_string_equal (text_at (line, "event"), "attach");
  assert_string_equal (text_at (line, "who"), "uid 1000 pid 5");
  assert_string_equal (text_at (line, "service"), "orders");
  assert_string_equal (text_at (line, "result"), "ok");
  assert_int_equal (json_integer_value (json_object_get (line, "pid")), 4188);
  const char *time = text_at (line, "time");
  assert_int_equal (strlen (time), 24);
  assert_true (time[10] == 'T' && time[19] == '.' && time[23] == 'Z');
  json_decref (line);
  weft_up_message_t bye = {
      .kind = WEFT_UP_BYE, .slots_written = 54, .slots_restored = 53, .slots_foreign = 1};
  ctl_instance_t instance = {.pid = 4188, .service = "orders"};
  ctl_audit_left (audit, NULL, &bye, &instance);
  line = last_line (&count);
  assert_int_equal (count, 2);
  assert_string_equal (text_at (line, "event"), "left");
  assert_string_equal (text_at (line, "who"), "unknown");
  assert_string_equal (text_at (line, "result"), "53 of 54 slots as before, 1 foreign, 0 threads left");
  json_decref (line);
  assert_int_equal (stat (path, &st), 0);
  assert_int_equal (st.st_mode & 07777, 0600);
}

static void test_requests (void **state)
{
  int count;
  ask ("key ops", "{\"op\":\"ping\"}", "{\"ok\":true}");
  ask ("key ops", "{\"op\":\"instances\"}", "{\"ok\":true}");
  ask ("key ops", "{\"op\":7}", "{\"ok\":false}");
  ask ("key ops", "[]", "{\"ok\":false}");
  assert_null (last_line (&count));
  ask ("key ops", "{\"op\":\"instruct\",\"actions\":[\"root\"],\"match\":\"POST /x\",\"number\":99}",
       "{\"ok\":true,\"number\":7}");
  json_t *line = last_line (&count);
  assert_int_equal (count, 1);
  assert_int_equal (json_integer_value (json_object_get (line, "instruction")), 7); /* given, not claimed */
  assert_string_equal (text_at (line, "match"), "POST /x");
  json_decref (line);
  ask ("key ops", "{\"op\":\"stop\",\"number\":7}", "{\"ok\":false,\"why\":\"no instruction 7 is live\"}");
  line = last_line (&count);
  assert_int_equal (json_integer_value (json_object_get (line, "instruction")), 7);
  assert_string_equal (text_at (line, "result"), "no instruction 7 is live");
  json_decref (line);
  ask ("key ops", "{\"op\":\"detach\",\"all\":true}", "{\"ok\":true,\"pids\":[5,6],\"uuids\":[\"a\",\"b\"]}");
  line = last_line (&count);
  assert_int_equal (count, 3);
  assert_int_equal (json_array_size (json_object_get (line, "pids")), 2);
  json_decref (line);
}

/* A2 */
static void test_hostile_names (void **state)
{
  static const char *const names[] = {
      "a\nb", "\"},{\"event\":\"x", "\x1b[2J", "\xff\xfe", "\xe2\x80\xae", "\\", "\x7f"};
  int count;
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    weft_up_message_t hello = {.kind = WEFT_UP_HELLO, .pid = 1};
    snprintf (hello.service, sizeof hello.service, "%s", names[n]);
    snprintf (hello.host, sizeof hello.host, "%s", names[n]);
    ctl_audit_attach (audit, names[n], &hello);
    json_t *line = last_line (&count);
    assert_int_equal (count, n + 1);
    assert_string_equal (text_at (line, "event"), "attach");
    json_decref (line);
  }
}

static void test_long_requests_are_cut (void **state)
{
  int count;
  json_t *request = json_pack ("{s:s, s:o}", "op", "instruct", "selectors", json_array ());
  for (int n = 0; n < 5000; n++)
    json_array_append_new (json_object_get (request, "selectors"), json_string ("service=orders"));
  json_t *answer = json_pack ("{s:b, s:s}", "ok", 0, "why", "at most 16");
  ctl_audit_request (audit, "key x", request, answer);
  json_decref (request);
  json_decref (answer);
  json_t *line = last_line (&count);
  assert_int_equal (count, 1);
  assert_string_equal (text_at (line, "who"), "key x");
  assert_null (json_object_get (line, "selectors"));
  json_decref (line);
}

/* A3 */
static void test_rotation (void **state)
{
  char old[140];
  int count;
  struct stat st;
  assert_int_equal (truncate (path, WEFT_AUDIT_FILE_MAX - 10), 0);
  for (int round = 1; round <= WEFT_AUDIT_FILES_MAX + 2; round++) {
    ask ("key x", "{\"op\":\"stop\",\"number\":1}", "{\"ok\":true}");
    json_decref (last_line (&count));
    assert_int_equal (count, 1);
    assert_int_equal (truncate (path, WEFT_AUDIT_FILE_MAX - 10), 0);
  }
  snprintf (old, sizeof old, "%s.%d", path, WEFT_AUDIT_FILES_MAX);
  assert_int_equal (stat (old, &st), 0);
  snprintf (old, sizeof old, "%s.%d", path, WEFT_AUDIT_FILES_MAX + 1);
  assert_int_equal (stat (old, &st), -1);
}

/* A1, A4 */
static void test_what_cannot_be_written (void **state)
{
  char why[700] = "", other[120];
  ctl_audit_t *second = NULL;
  snprintf (other, sizeof other, "%s/sub/weft.db", base);
  assert_int_equal (ctl_audit_open (other, &second, why, sizeof why), WEFT_E_IO);
  assert_true (*why != 0);
  snprintf (other, sizeof other, "%s/sub", base);
  assert_int_equal (mkdir (other, 0700), 0);
  snprintf (other, sizeof other, "%s/sub/audit.log", base);
  assert_int_equal (symlink ("/dev/null", other), 0);
  snprintf (other, sizeof other, "%s/sub/weft.db", base);
  assert_int_equal (ctl_audit_open (other, &second, why, sizeof why),
                    WEFT_E_IO); /* no way out of the directory */
  assert_int_equal (ctl_audit_lost (audit), 0);
  ctl_audit_request (NULL, "x", NULL, NULL);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (test_instances_come_and_go, setup, teardown),
      cmocka_unit_test_setup_teardown (test_requests, setup, teardown),
      cmocka_unit_test_setup_teardown (test_hostile_names, setup, teardown),
      cmocka_unit_test_setup_teardown (test_long_requests_are_cut, setup, teardown),
      cmocka_unit_test_setup_teardown (test_rotation, setup, teardown),
      cmocka_unit_test_setup_teardown (test_what_cannot_be_written, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
