/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of a claim leaves in the audit (H3); what claims do is in test_requests.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../controller/service/claims.h"

#define ONE "\"01000000-0000-0000-0000-000000000000\""
#define TWO "\"02000000-0000-0000-0000-000000000000\""

typedef struct {
  char base[64];
  ctl_house_t house;
} fixture_t;

static int setup (void **state)
{
  char store[96], why[700];
  fixture_t *self = calloc (1, sizeof *self);
  strcpy (self->base, "/tmp/weft-claims-XXXXXX");
  if (!mkdtemp (self->base))
    return -1;
  snprintf (store, sizeof store, "%s/weft.db", self->base);
  self->house.instances = ctl_instances_new ();
  self->house.instructions = ctl_instructions_new (100, 0);
  self->house.claims = ctl_claims_new ();
  *state = self;
  return ctl_audit_open (store, &self->house.audit, why, sizeof why);
}

static int teardown (void **state)
{
  fixture_t *self = *state;
  char command[128];
  snprintf (command, sizeof command, "rm -rf '%s'", self->base);
  ctl_audit_close (&self->house.audit);
  ctl_claims_destroy (&self->house.claims);
  ctl_instructions_destroy (&self->house.instructions);
  ctl_instances_destroy (&self->house.instances);
  free (self);
  return system (command);
}

static ctl_instance_t *join (fixture_t *self, uint8_t who, const char *service, int64_t pid)
{
  ctl_instance_t *instance = NULL;
  weft_up_message_t hello = {.kind = WEFT_UP_HELLO, .instance = {who}, .start = {1}, .pid = pid};
  snprintf (hello.service, sizeof hello.service, "%s", service);
  assert_int_equal (ctl_instances_take (self->house.instances, &hello, &instance), 0);
  return instance;
}

static json_int_t ask (fixture_t *self, const char *who, const char *text)
{
  ctl_reply_t reply = {0};
  self->house.who = who;
  assert_int_equal (ctl_requests_answer (&self->house, text, strlen (text), &reply), 0);
  self->house.who = NULL;
  assert_true (json_is_true (json_object_get (reply.body, "ok")));
  json_int_t number = json_integer_value (json_object_get (reply.body, "claim"));
  json_int_t instruction = json_integer_value (json_object_get (reply.body, "number"));
  ctl_reply_clear (&reply);
  return number ? number : instruction;
}

/* The `release` lines so far. */
static json_t *releases (const fixture_t *self)
{
  char path[96], line[1024];
  json_t *found = json_array ();
  snprintf (path, sizeof path, "%s/audit.log", self->base);
  FILE *file = fopen (path, "r");
  assert_non_null (file);
  while (fgets (line, sizeof line, file)) {
    json_t *one = json_loads (line, 0, NULL);
    assert_non_null (one);
    if (strcmp (json_string_value (json_object_get (one, "event")), "release") == 0)
      json_array_append (found, one);
    json_decref (one);
  }
  fclose (file);
  return found;
}

/* Exactly `count` lines; the last one says this. */
static void assert_release (const fixture_t *self, size_t count, const char *who, int pid, const char *reason)
{
  json_t *found = releases (self), *last = json_array_get (found, count - 1);
  assert_int_equal (json_array_size (found), count);
  assert_string_equal (json_string_value (json_object_get (last, "who")), who);
  assert_string_equal (json_string_value (json_object_get (last, "reason")), reason);
  assert_int_equal (json_integer_value (json_object_get (last, "pid")), pid);
  json_decref (found);
}

static void a_claim_whose_owner_died (void **state)
{
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  ctl_instance_t *orders = join (self, 2, "orders", 4188);
  ask (self, "uid 1000 pid 77",
       "{\"op\": \"claim\", \"for_ms\": 60000, \"uuids\": [" ONE "," TWO "], \"joined\": [" TWO "]}");
  uint64_t end_ns = weft_mono_ns () + 61 * WEFT_NS_PER_S;
  ctl_claims_tidy (&self->house, weft_mono_ns ());
  json_t *none = releases (self);
  assert_int_equal (json_array_size (none), 0);
  json_decref (none);
  ctl_claims_tidy (&self->house, end_ns);
  assert_true (ctl_instance_leaves (orders, weft_mono_ns ()));
  assert_release (self, 1, "uid 1000 pid 77", 4188, "claim 1 ended at its time");
  ctl_claims_tidy (&self->house, end_ns + 1); /* told again, not written again */
  assert_release (self, 1, "uid 1000 pid 77", 4188, "claim 1 ended at its time");
}

static void a_claim_that_is_released (void **state)
{
  fixture_t *self = *state;
  join (self, 1, "front", 4121);
  ask (self, "key ops",
       "{\"op\": \"claim\", \"for_ms\": 60000, \"uuids\": [" ONE "], \"joined\": [" ONE "]}");
  ask (self, "key ops", "{\"op\": \"release\", \"claim\": 1}");
  assert_release (self, 1, "key ops", 4121, "claim 1 was released");
}

/* Told to leave, and there for long: it did not hear it. Who wants it then may have it. */
static void one_that_stays_is_claimed_again (void **state)
{
  fixture_t *self = *state;
  ctl_instance_t *front = join (self, 1, "front", 4121);
  ask (self, "key ops", "{\"op\": \"detach\", \"uuids\": [" ONE "]}");
  const char *claim = "{\"op\": \"claim\", \"for_ms\": 60000, \"uuids\": [" ONE "], \"joined\": []}";
  ctl_reply_t reply = {0};
  ctl_requests_answer (&self->house, claim, strlen (claim), &reply);
  assert_string_equal (json_string_value (json_object_get (reply.body, "status")), "BUSY");
  ctl_reply_clear (&reply);
  front->leaving_ns -= WEFT_LEAVING_MS * WEFT_NS_PER_MS;
  ctl_requests_answer (&self->house, claim, strlen (claim), &reply);
  assert_true (json_is_true (json_object_get (reply.body, "ok")));
  ctl_reply_clear (&reply);
}

/* Its claim was released while an instruction needed it: it goes when that ends. */
static void an_instruction_that_was_the_last_need (void **state)
{
  fixture_t *self = *state;
  char stop[64];
  ctl_instance_t *front = join (self, 1, "front", 4121);
  ask (self, "key ops",
       "{\"op\": \"claim\", \"for_ms\": 60000, \"uuids\": [" ONE "], \"joined\": [" ONE "]}");
  json_int_t number =
      ask (self, "key ops",
           "{\"op\": \"instruct\", \"actions\": [\"capture\"], \"selectors\": [\"service=front\"]}");
  ask (self, "key ops", "{\"op\": \"release\", \"claim\": 1}");
  assert_int_equal (front->leaving_ns, 0);
  snprintf (stop, sizeof stop, "{\"op\": \"stop\", \"number\": %lld}", (long long) number);
  ask (self, "key ops", stop);
  ctl_claims_tidy (&self->house, weft_mono_ns ());
  assert_release (self, 1, "controller", 4121, "the last instruction for it ended");
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (a_claim_whose_owner_died, setup, teardown),
      cmocka_unit_test_setup_teardown (a_claim_that_is_released, setup, teardown),
      cmocka_unit_test_setup_teardown (one_that_stays_is_claimed_again, setup, teardown),
      cmocka_unit_test_setup_teardown (an_instruction_that_was_the_last_need, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
