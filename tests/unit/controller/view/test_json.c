/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include "../../../../common/ids.h"
#include "../../../../common/status.h"
#include "../../../../controller/view/csv.h"
#include "../../../../controller/view/json.h"

static void test_an_execution_keeps_its_fixed_names (void **state)
{
  (void) state;
  golden_t golden;
  FILE *out = golden_begin (&golden);
  for (int i = 0; i < 3; i++) {
    ctl_execution_t *execution = i == 0 ? golden_shop (1, 1) : i == 1 ? golden_odd () : golden_orphan (2);
    assert_int_equal (ctl_json_line (out, ctl_json_execution (execution)), 0);
    ctl_execution_destroy (&execution);
  }
  golden_end (&golden, "executions.jsonl");
}

/* Enough of JSON Schema for ours: type, enum, required, pattern by length and digits, $ref, anyOf. */
static int holds (const json_t *schema, const json_t *root, const json_t *value);

static int type_holds (const char *type, const json_t *value)
{
  return strcmp (type, "object") == 0    ? json_is_object (value)
         : strcmp (type, "array") == 0   ? json_is_array (value)
         : strcmp (type, "string") == 0  ? json_is_string (value)
         : strcmp (type, "integer") == 0 ? json_is_integer (value)
         : strcmp (type, "boolean") == 0 ? json_is_boolean (value)
                                         : json_is_null (value);
}

static int pattern_holds (const char *pattern, const char *text)
{
  size_t size = strstr (pattern, "{16}")                                  ? 16
                : strstr (pattern, "{32}$") && strstr (pattern, "f]{32}") ? 32
                                                                          : 36;
  return strlen (text) == size && strspn (text, "0123456789abcdef-") == size;
}

static int one_of (const json_t *list, const json_t *value)
{
  for (size_t i = 0; i < json_array_size (list); i++)
    if (json_equal (json_array_get (list, i), value))
      return 1;
  return 0;
}

static int object_holds (const json_t *schema, const json_t *root, const json_t *value)
{
  const json_t *required = json_object_get (schema, "required"),
               *properties = json_object_get (schema, "properties");
  for (size_t i = 0; i < json_array_size (required); i++)
    if (!json_object_get (value, json_string_value (json_array_get (required, i))))
      return 0;
  for (void *at = json_object_iter ((json_t *) (uintptr_t) properties); at;
       at = json_object_iter_next ((json_t *) (uintptr_t) properties, at)) {
    const json_t *member = json_object_get (value, json_object_iter_key (at));
    if (member && !holds (json_object_iter_value (at), root, member)) {
      print_error ("%s does not hold\n", json_object_iter_key (at));
      return 0;
    }
  }
  return 1;
}

static int holds (const json_t *schema, const json_t *root, const json_t *value)
{
  const char *reference = json_string_value (json_object_get (schema, "$ref"));
  if (reference)
    return holds (json_object_get (json_object_get (root, "$defs"), strrchr (reference, '/') + 1), root,
                  value);
  const json_t *any = json_object_get (schema, "anyOf"), *one = json_object_get (schema, "enum");
  for (size_t i = 0; i < json_array_size (any); i++)
    if (holds (json_array_get (any, i), root, value))
      return 1;
  if (any)
    return 0;
  if (one)
    return one_of (one, value);
  const char *pattern = json_string_value (json_object_get (schema, "pattern"));
  if (!type_holds (json_string_value (json_object_get (schema, "type")), value))
    return 0;
  if (json_is_integer (value) &&
      json_integer_value (value) < json_integer_value (json_object_get (schema, "minimum")))
    return 0;
  if (pattern && !pattern_holds (pattern, json_string_value (value)))
    return 0;
  for (size_t i = 0; json_is_array (value) && i < json_array_size (value); i++)
    if (!holds (json_object_get (schema, "items"), root, json_array_get (value, i)))
      return 0;
  return !json_is_object (value) || object_holds (schema, root, value);
}

static void test_the_schema_holds (void **state)
{
  (void) state;
  json_error_t error;
  json_t *schema = json_load_file ("common/execution.schema.json", 0, &error);
  assert_non_null (schema);
  for (int i = 0; i < 4; i++) {
    ctl_execution_t *execution = i == 0   ? golden_shop (1, 1)
                                 : i == 1 ? golden_odd ()
                                 : i == 2 ? golden_orphan (2)
                                          : golden_database (3);
    json_t *json = ctl_json_execution (execution);
    assert_true (holds (schema, schema, json));
    json_t *subtask = json_array_get (json_object_get (json, "subtasks"), 0);
    json_object_del (subtask, "self_ns");
    assert_false (holds (schema, schema, json)); /* the check can fail */
    json_decref (json);
    ctl_execution_destroy (&execution);
  }
  json_decref (schema);
}

/* Two leaves of one peer stay two here; the wait is self time of theirs, not of their caller:
 * 224 ms less 10 in another service, 112 in the database, 0.7 for a name, 0.2 in vain, and the
 * 0.4 by which the request was longer than what it asked for. */
static void test_opaque_leaves (void **state)
{
  (void) state;
  ctl_execution_t *execution = golden_database (3);
  json_t *json = ctl_json_execution (execution), *subtasks = json_object_get (json, "subtasks");
  assert_int_equal (json_integer_value (json_object_get (json_object_get (json, "hops"), "opaque")), 4);
  json_t *leaf = NULL, *caller = json_array_get (subtasks, 1);
  int64_t calls = 0, wait_ns = 0;
  for (size_t i = 0; i < json_array_size (subtasks); i++) {
    json_t *one = json_array_get (subtasks, i);
    if (strcmp (json_string_value (json_object_get (one, "name")), "postgresql") != 0) {
      assert_int_equal (json_object_get (one, "calls") != NULL,
                        strcmp (json_string_value (json_object_get (one, "hop")), "opaque") == 0);
      continue;
    }
    leaf = one;
    calls += json_integer_value (json_object_get (one, "calls"));
    wait_ns += json_integer_value (json_object_get (one, "self_ns"));
    assert_string_equal (json_string_value (json_object_get (one, "parent")), "0000000000000002");
  }
  assert_int_equal (calls, 38);
  assert_int_equal (wait_ns, 112000000);
  assert_string_equal (json_string_value (json_object_get (leaf, "service")), "10.0.0.5:5432");
  assert_true (json_is_null (json_object_get (leaf, "vm")));
  assert_int_equal (json_integer_value (json_object_get (caller, "self_ns")),
                    224000000 - 10400000 - 112900000);
  json_decref (json);
  ctl_execution_destroy (&execution);
}

static void test_instances_there_and_back (void **state)
{
  (void) state;
  golden_t golden;
  ctl_instance_t instances[3], back;
  golden_instances (instances);
  FILE *out = golden_begin (&golden);
  for (int i = 0; i < 3; i++) {
    json_t *json = ctl_json_instance (&instances[i]);
    assert_int_equal (ctl_json_to_instance (json, &back), 0);
    assert_memory_equal (back.uuid, instances[i].uuid, WEFT_UUID_SIZE);
    assert_string_equal (back.service, instances[i].service);
    assert_int_equal (back.active, instances[i].active);
    assert_int_equal (back.presence, instances[i].presence);
    assert_int_equal (back.bytes_spoken, instances[i].bytes_spoken);
    assert_memory_equal (back.rest, instances[i].rest, sizeof back.rest);
    assert_memory_equal (back.losses, instances[i].losses, sizeof back.losses);
    json_object_set_new (json, "epoch", json_integer (-1));
    assert_int_equal (ctl_json_to_instance (json, &back), WEFT_E_MALFORMED);
    json_decref (json);
    assert_int_equal (ctl_json_line (out, ctl_json_instance (&instances[i])), 0);
  }
  golden_end (&golden, "instances.jsonl");
}

/* Reports come before the acknowledgement that says how many were written. */
static void test_stored_was_written (void **state)
{
  ctl_instance_t instances[3];
  golden_instances (instances);
  instances[0].written = 90;
  instances[0].stored = 97;
  json_t *json = ctl_json_instance (&instances[0]);
  assert_int_equal (json_integer_value (json_object_get (json, "written")), 97);
  assert_int_equal (json_integer_value (json_object_get (json, "stored")), 97);
  json_decref (json);
}

static void test_csv (void **state)
{
  (void) state;
  golden_t golden;
  ctl_instance_t instances[3];
  golden_instances (instances);
  instances[0].service = "=cmd|' /C calc'!A0";
  instances[1].service = "say \"hi\", twice";
  const ctl_instance_t *list[3] = {&instances[0], &instances[1], &instances[2]};
  assert_int_equal (ctl_csv_instances (golden_begin (&golden), list, 3), 0);
  golden_end (&golden, "instances.csv");

  ctl_analysis_t *analysis = golden_analysis ();
  assert_int_equal (ctl_csv_tasks (golden_begin (&golden), analysis), 0);
  golden_end (&golden, "tasks.csv");
  ctl_analysis_destroy (&analysis);

  ctl_execution_t *execution = golden_odd ();
  assert_int_equal (ctl_csv_execution (golden_begin (&golden), execution), 0);
  golden_end (&golden, "execution.csv");
  ctl_execution_t *database = golden_database (3);
  assert_int_equal (ctl_csv_execution (golden_begin (&golden), database), 0);
  golden_end (&golden, "execution-opaque.csv");
  ctl_execution_destroy (&database);
  FILE *out = golden_begin (&golden);
  assert_int_equal (ctl_csv_each_head (out), 0);
  assert_int_equal (ctl_csv_each (out, execution), 0);
  golden_end (&golden, "each.csv");
  ctl_execution_destroy (&execution);
}

static void test_bytes_that_are_no_text (void **state)
{
  (void) state;
  json_t *json = ctl_json_text ("a\xff\xc0\xaf\xed\xa0\x80z\xc3\xa9");
  /* each bad byte one U+FFFD: ff, c0, af, ed, a0, 80 */
  assert_string_equal (json_string_value (json),
                       "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                       "\xef\xbf\xbdz\xc3\xa9");
  json_decref (json);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_an_execution_keeps_its_fixed_names),
      cmocka_unit_test (test_the_schema_holds),
      cmocka_unit_test (test_opaque_leaves),
      cmocka_unit_test (test_instances_there_and_back),
      cmocka_unit_test (test_stored_was_written),
      cmocka_unit_test (test_csv),
      cmocka_unit_test (test_bytes_that_are_no_text),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
