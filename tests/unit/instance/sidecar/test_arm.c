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

#include "../../../../common/clocks.h"
#include "../../../../instance/sidecar/arm.h"

#define T0  (1000 * WEFT_NS_PER_S) /* on the monotonic clock of these tests */
#define S   WEFT_NS_PER_S
#define FAR (5000 * WEFT_NS_PER_S) /* what the monotonic clock of another host is ahead */

static const uint8_t boot[WEFT_UUID_SIZE] = {9};

static const uint8_t instance[WEFT_UUID_SIZE] = {7};
static const weft_subject_t subject = {
    .service = "orders", .vm = "jvm", .host = "h", .instance = instance, .pid = 42};

typedef struct {
  uint8_t *base;
  shm_reader_t *reader;
  car_arm_t *arm;
} stage_t;

static int set_up (void **state)
{
  stage_t *stage = calloc (1, sizeof *stage);
  stage->base = aligned_alloc (4096, (SHM_SIZE + 4095) / 4096 * 4096);
  memset (stage->base, 0, SHM_SIZE);
  assert_int_equal (shm_reader_over (stage->base, &stage->reader), 0);
  stage->arm = car_arm_new (boot, NULL);
  *state = stage;
  return 0;
}

static int tear_down (void **state)
{
  stage_t *stage = *state;
  car_arm_destroy (&stage->arm);
  shm_reader_destroy (&stage->reader);
  free (stage->base);
  free (stage);
  return 0;
}

static weft_instruction_t instruction (uint32_t number, uint32_t actions, const char *selector,
                                       uint32_t lease_ms)
{
  weft_instruction_t one = {.number = number,
                            .actions = actions,
                            .selector_count = 1,
                            .sample_num = 1,
                            .sample_den = 1,
                            .lease_ms = lease_ms};
  snprintf (one.selectors[0], sizeof one.selectors[0], "%s", selector);
  return one;
}

static void give_state (stage_t *stage, uint8_t controller, uint64_t epoch, const weft_instruction_t *list,
                        uint32_t count, int alone, uint64_t mono_ns)
{
  weft_bus_message_t message = {
      .kind = WEFT_BUS_STATE, .controller = {controller}, .epoch = epoch, .instruction_count = count};
  message.instructions = calloc (count + 1, sizeof *list);
  if (count)
    memcpy (message.instructions, list, count * sizeof *list);
  car_arm_take_state (stage->arm, &message, alone, mono_ns);
  assert_null (message.instructions); /* moved */
}

static int beat (stage_t *stage, uint8_t controller, uint64_t epoch, uint64_t seq, uint64_t age_ns,
                 uint64_t mono_ns)
{
  weft_bus_message_t message = {.kind = WEFT_BUS_HEARTBEAT,
                                .controller = {controller},
                                .epoch = epoch,
                                .seq = seq,
                                .boot = {9},
                                .sent_ns = mono_ns - age_ns};
  return car_arm_take_heartbeat (stage->arm, &message, mono_ns);
}

/* The probe has seen what stands in the page. */
static void obey (stage_t *stage)
{
  shm_status (stage->base)->config_seen = shm_control (stage->base)->config_seq;
  shm_status (stage->base)->actions = shm_control (stage->base)->actions;
}

static void apply (stage_t *stage, uint64_t mono_ns)
{
  car_arm_apply (stage->arm, stage->reader, &subject, mono_ns);
}

static int settled (stage_t *stage, uint64_t mono_ns)
{
  return car_arm_settled (stage->arm, stage->reader, mono_ns);
}

static void the_union_of_what_selects_this_one (void **state)
{
  stage_t *stage = *state;
  shm_control_t *control = shm_control (stage->base);
  weft_instruction_t *list = calloc (4, sizeof *list);
  list[0] = instruction (1, WEFT_ACTION_EMBED, "service=orders", 9000);
  list[1] = instruction (2, WEFT_ACTION_ROOT | WEFT_ACTION_CAPTURE, "vm=jvm,pid=42", 4000);
  list[2] = instruction (3, WEFT_ACTION_ROOT, "service=front", 2000); /* another service */
  list[3] = instruction (4, WEFT_ACTION_STACKS, "*", 2000);           /* nothing this probe can do */
  list[1].carrier = WEFT_CARRIER_WEFT;
  list[1].sample_num = 1, list[1].sample_den = 100, list[1].max_roots = 50;
  snprintf (list[1].match, sizeof list[1].match, "POST /checkout");
  give_state (stage, 1, 5, list, 4, 0, T0);
  free (list);
  assert_int_equal (beat (stage, 1, 5, 1, 0, T0), 0);
  apply (stage, T0);
  assert_int_equal (control->actions, WEFT_ACTION_EMBED | WEFT_ACTION_ROOT | WEFT_ACTION_CAPTURE);
  assert_int_equal (control->carrier, WEFT_CARRIER_WEFT);
  assert_int_equal (control->embed_to, WEFT_EMBED_TO_PRIVATE);
  assert_int_equal (control->rule_count, 1);
  assert_int_equal (control->rules[0].instruction, 2);
  assert_int_equal (control->rules[0].sample_den, 100);
  assert_int_equal (control->rules[0].max_roots, 50);
  assert_string_equal (control->rules[0].match, "POST /checkout");
  assert_true (control->lease_until_ns == T0 + 4 * S); /* the shortest of those that select it */
}

/* Networks of several that embed add up; one that means all private addresses adds those. */
static void networks_and_exclusions (void **state)
{
  stage_t *stage = *state;
  shm_control_t *control = shm_control (stage->base);
  shm_filter_t *filter = shm_filter (stage->base);
  weft_network_t ten = {{[10] = 0xff, [11] = 0xff, [12] = 10}, 104}, local = {{0xfd}, 8};
  for (int private = 0; private < 2; private ++) {
    weft_instruction_t *list = calloc (4, sizeof *list);
    list[0] = instruction (1, WEFT_ACTION_EMBED, "*", 9000);
    list[1] = instruction (2, WEFT_ACTION_EMBED | WEFT_ACTION_ROOT, "*", 9000);
    list[2] = instruction (3, WEFT_ACTION_ROOT, "*", 9000); /* embeds nowhere: its places do not count */
    list[3] = instruction (4, private ? WEFT_ACTION_EMBED : WEFT_ACTION_CAPTURE, "*", 9000);
    list[0].networks[list[0].network_count++] = ten;
    list[1].networks[list[1].network_count++] = local;
    snprintf (list[1].header, sizeof list[1].header, "x-debug");
    snprintf (list[1].excludes[0], WEFT_MATCH_MAX, "/health");
    snprintf (list[1].excludes[1], WEFT_MATCH_MAX, "/admin/**");
    list[1].exclude_count = 2;
    snprintf (list[2].excludes[0], WEFT_MATCH_MAX, "/admin/**");
    list[2].exclude_count = 1;
    give_state (stage, 1, 5 + (uint64_t) private, list, 4, 0, T0);
    free (list);
    beat (stage, 1, 5 + (uint64_t) private, 1 + (uint64_t) private, 0, T0);
    apply (stage, T0);
    assert_int_equal (control->embed_to, private ? WEFT_EMBED_TO_PRIVATE : SHM_EMBED_TO_LISTED);
    assert_int_equal (filter->network_count, 2);
    assert_memory_equal (&filter->networks[0], &ten, sizeof ten);
    assert_memory_equal (&filter->networks[1], &local, sizeof local);
    assert_string_equal (filter->header[0], "x-debug");
    assert_string_equal (filter->header[1], "");
    assert_int_equal (filter->exclude_count, 2);
    assert_string_equal (filter->exclude[0], "/health");
    assert_int_equal (filter->exclude_rules[0], 1);
    assert_string_equal (filter->exclude[1], "/admin/**");
    assert_int_equal (filter->exclude_rules[1], 3);
  }
}

static void the_ack_waits_for_the_probe (void **state)
{
  stage_t *stage = *state;
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "*", 5000);
  give_state (stage, 1, 5, &one, 1, 0, T0);
  beat (stage, 1, 5, 1, 0, T0);
  apply (stage, T0);
  assert_int_equal (settled (stage, T0), 0);
  assert_false (car_arm_in_force (stage->arm));
  obey (stage);
  assert_int_equal (settled (stage, T0 + 1), 1);
  assert_true (car_arm_in_force (stage->arm));
  assert_int_equal (settled (stage, T0 + 2), 0); /* once */
  assert_int_equal (car_arm_epoch (stage->arm), 5);
  /* Another epoch with the same meaning is acknowledged without another configuration. */
  uint32_t seq = shm_control (stage->base)->config_seq;
  give_state (stage, 1, 6, &one, 1, 0, T0 + S);
  assert_int_equal (beat (stage, 1, 6, 2, 0, T0 + S), 0);
  apply (stage, T0 + S);
  assert_int_equal (settled (stage, T0 + S), 1);
  assert_int_equal (shm_control (stage->base)->config_seq, seq);
}

static void a_deaf_probe_is_told_again (void **state)
{
  stage_t *stage = *state;
  give_state (stage, 1, 5, NULL, 0, 0, T0);
  apply (stage, T0);
  uint32_t bell = shm_control (stage->base)->doorbell;
  assert_int_equal (settled (stage, T0 + S), 0);
  assert_int_equal (shm_control (stage->base)->doorbell, bell);
  assert_int_equal (settled (stage, T0 + S + 1), 0);
  assert_int_not_equal (shm_control (stage->base)->doorbell, bell);
}

static void nothing_is_armed_without_a_lease (void **state)
{
  stage_t *stage = *state;
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "*", 5000);
  give_state (stage, 1, 5, &one, 1, 0, T0);
  apply (stage, T0);
  obey (stage);
  assert_int_equal (shm_control (stage->base)->actions, 0);
  assert_int_equal (settled (stage, T0), 0);                  /* and not acknowledged */
  assert_int_equal (beat (stage, 1, 5, 1, 6 * S, T0 + S), 0); /* a heartbeat that was stuck for 6 s */
  apply (stage, T0 + S);
  assert_int_equal (shm_control (stage->base)->actions, 0);
  beat (stage, 1, 5, 2, S / 2, T0 + 2 * S);
  apply (stage, T0 + 2 * S);
  assert_int_equal (shm_control (stage->base)->actions, WEFT_ACTION_CAPTURE);
  assert_true (shm_control (stage->base)->lease_until_ns == T0 + 2 * S - S / 2 + 5 * S);
}

static void an_answer_to_hello_is_a_lease (void **state)
{
  stage_t *stage = *state;
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "*", 5000);
  car_arm_said_hello (stage->arm, T0);
  give_state (stage, 1, 5, &one, 1, 1, T0 + S);
  apply (stage, T0 + S);
  assert_int_equal (shm_control (stage->base)->actions, WEFT_ACTION_CAPTURE);
  assert_true (shm_control (stage->base)->lease_until_ns == T0 + 5 * S); /* from the question on */
}

static void a_lapsed_probe_is_woken (void **state)
{
  stage_t *stage = *state;
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "*", 2000);
  give_state (stage, 1, 5, &one, 1, 0, T0);
  beat (stage, 1, 5, 1, 0, T0);
  apply (stage, T0);
  obey (stage);
  assert_int_equal (settled (stage, T0), 1);
  shm_status (stage->base)->actions = 0; /* its lease ended at T0 + 2 s */
  apply (stage, T0 + 4 * S);
  assert_int_equal (settled (stage, T0 + 4 * S), 0);
  uint32_t bell = shm_control (stage->base)->doorbell;
  beat (stage, 1, 5, 2, 0, T0 + 5 * S);
  apply (stage, T0 + 5 * S);
  assert_int_not_equal (shm_control (stage->base)->doorbell, bell);
  obey (stage);
  assert_int_equal (settled (stage, T0 + 5 * S), 1);
}

static void gaps_and_strangers_ask_for_a_hello (void **state)
{
  stage_t *stage = *state;
  assert_int_equal (beat (stage, 1, 5, 7, 0, T0), 1); /* nothing known */
  give_state (stage, 1, 5, NULL, 0, 0, T0);
  assert_int_equal (beat (stage, 1, 5, 8, 0, T0 + S), 0);
  assert_int_equal (beat (stage, 1, 5, 10, 0, T0 + 2 * S), 1); /* 9 is missing */
  assert_int_equal (beat (stage, 1, 5, 11, 0, T0 + 3 * S), 0);
  assert_int_equal (beat (stage, 1, 6, 12, 0, T0 + 4 * S), 1); /* another epoch */
  assert_int_equal (beat (stage, 2, 5, 1, 0, T0 + 5 * S), 1);  /* another controller with an equal epoch */
  assert_false (car_arm_has_state (stage->arm));
  assert_int_equal (car_arm_epoch (stage->arm), 0);
}

static void another_controller_renews_nothing (void **state)
{
  stage_t *stage = *state;
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "*", 3000);
  give_state (stage, 1, 5, &one, 1, 0, T0);
  beat (stage, 1, 5, 1, 0, T0);
  apply (stage, T0);
  beat (stage, 2, 5, 1, 0, T0 + S);
  apply (stage, T0 + S);
  assert_true (shm_control (stage->base)->lease_until_ns == T0 + 3 * S);
  assert_false (car_arm_in_force (stage->arm));
}

/* A controller on another host, whose clock is FAR ahead of ours. */
static int far_beat (stage_t *stage, uint64_t seq, uint64_t age_ns, uint64_t mono_ns)
{
  weft_bus_message_t message = {.kind = WEFT_BUS_HEARTBEAT,
                                .controller = {1},
                                .epoch = 5,
                                .seq = seq,
                                .boot = {8},
                                .sent_ns = mono_ns - age_ns + FAR};
  return car_arm_take_heartbeat (stage->arm, &message, mono_ns);
}

static void far_answer (stage_t *stage, uint64_t asked_ns, uint64_t mono_ns)
{
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "*", 3000);
  weft_bus_message_t message = {.kind = WEFT_BUS_STATE,
                                .controller = {1},
                                .epoch = 5,
                                .boot = {8},
                                .sent_ns = mono_ns + FAR,
                                .instruction_count = 1};
  message.instructions = calloc (1, sizeof one);
  memcpy (message.instructions, &one, sizeof one);
  car_arm_said_hello (stage->arm, asked_ns);
  car_arm_take_state (stage->arm, &message, 1, mono_ns);
  weft_bus_clear (&message); /* an epoch that is known is not taken again */
}

static uint64_t lease (stage_t *stage, uint64_t mono_ns)
{
  apply (stage, mono_ns);
  return shm_control (stage->base)->lease_until_ns;
}

static void a_far_clock_is_known_from_a_question_and_its_answer (void **state)
{
  stage_t *stage = *state;
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "*", 3000);
  give_state (stage, 1, 5, &one, 1, 0, T0);
  assert_int_equal (far_beat (stage, 1, 0, T0), 1); /* as old as it may be */
  assert_true (lease (stage, T0) == 0);
  far_answer (stage, T0, T0 + S / 10);
  assert_true (lease (stage, T0 + S / 10) == T0 + 3 * S);
  assert_int_equal (far_beat (stage, 2, 0, T0 + S), 0);
  /* at most a tenth of a second older than it is: the answer may have left at once */
  assert_true (lease (stage, T0 + S) == T0 + S - S / 10 + 3 * S);
  assert_int_equal (far_beat (stage, 3, 2 * S, T0 + 2 * S), 1); /* stuck: renews nothing */
  assert_true (lease (stage, T0 + 2 * S) == T0 + S - S / 10 + 3 * S);
}

static void drift_asks_and_ends_no_lease (void **state)
{
  stage_t *stage = *state;
  uint64_t asked = 0;
  far_answer (stage, T0, T0);
  for (uint64_t n = 1; n < 86400; n++) { /* a day in which the far clock loses 100 in a million */
    uint64_t now = T0 + n * S;
    if (far_beat (stage, n, n * S / 10000, now)) {
      asked++;
      weft_bus_message_t answer = {.kind = WEFT_BUS_STATE,
                                   .controller = {1},
                                   .epoch = 5,
                                   .boot = {8},
                                   .sent_ns = now - n * S / 10000 + FAR};
      car_arm_said_hello (stage->arm, now);
      car_arm_take_state (stage->arm, &answer, 1, now);
    }
  }
  assert_in_range (asked, 7, 10);
}

static void a_clock_namespace_is_another_clock (void **state)
{
  stage_t *stage = *state;
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "*", 3000);
  give_state (stage, 1, 5, &one, 1, 0, T0);
  weft_bus_message_t message = {.kind = WEFT_BUS_HEARTBEAT,
                                .controller = {1},
                                .epoch = 5,
                                .seq = 1,
                                .boot = {9},
                                .sent_ns = T0 + 7 * S};
  assert_int_equal (car_arm_take_heartbeat (stage->arm, &message, T0), 1);
  assert_true (lease (stage, T0) == 0);
}

/* The child's page begins with the parent's configuration: what it is told is the same, at once. */
static void a_child_goes_on_where_its_parent_is (void **state)
{
  stage_t *stage = *state;
  static const uint8_t child_instance[WEFT_UUID_SIZE] = {8};
  weft_subject_t child_subject = {.service = "orders",
                                  .vm = "jvm",
                                  .host = "h",
                                  .instance = child_instance,
                                  .pid = 43,
                                  .parent = &subject};
  weft_instruction_t list[2] = {instruction (1, WEFT_ACTION_CAPTURE, "pid=42", 5000),
                                instruction (2, WEFT_ACTION_EMBED, "pid=43", 5000)};
  car_arm_said_hello (stage->arm, T0);
  give_state (stage, 1, 4, list, 2, 1, T0);
  car_arm_apply (stage->arm, stage->reader, &subject, T0);
  assert_int_equal (shm_control (stage->base)->actions, WEFT_ACTION_CAPTURE);
  car_arm_t *child = car_arm_new (boot, NULL), *parent = stage->arm;
  car_arm_inherit (child, parent);
  car_arm_apply (child, stage->reader, &child_subject, T0 + S);
  assert_int_equal (shm_control (stage->base)->actions, WEFT_ACTION_CAPTURE | WEFT_ACTION_EMBED);
  assert_true (shm_control (stage->base)->lease_until_ns == T0 + 5 * S);
  /* Each on its own from here. */
  stage->arm = child;
  give_state (stage, 1, 5, list, 1, 1, T0 + 2 * S);
  car_arm_apply (child, stage->reader, &child_subject, T0 + 2 * S);
  assert_int_equal (shm_control (stage->base)->actions, WEFT_ACTION_CAPTURE);
  assert_true (car_arm_epoch (parent) == 4);
  car_arm_destroy (&child);
  stage->arm = parent;
  car_arm_apply (parent, stage->reader, &child_subject, T0 + 2 * S);
  assert_int_equal (shm_control (stage->base)->actions, WEFT_ACTION_CAPTURE | WEFT_ACTION_EMBED);
}

/* The parent knows nothing of a new controller: what its probe does goes on until the lease ends, in both. */
static void a_child_of_one_without_state_is_left_alone (void **state)
{
  stage_t *stage = *state;
  weft_instruction_t one = instruction (1, WEFT_ACTION_CAPTURE, "pid=42", 5000);
  car_arm_said_hello (stage->arm, T0);
  give_state (stage, 1, 4, &one, 1, 1, T0);
  car_arm_apply (stage->arm, stage->reader, &subject, T0);
  beat (stage, 2, 9, 1, 0, T0 + S);
  car_arm_t *child = car_arm_new (boot, NULL);
  car_arm_inherit (child, stage->arm);
  car_arm_apply (child, stage->reader, &subject, T0 + S);
  assert_int_equal (shm_control (stage->base)->actions, WEFT_ACTION_CAPTURE);
  car_arm_destroy (&child);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (the_union_of_what_selects_this_one, set_up, tear_down),
      cmocka_unit_test_setup_teardown (networks_and_exclusions, set_up, tear_down),
      cmocka_unit_test_setup_teardown (the_ack_waits_for_the_probe, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_deaf_probe_is_told_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown (nothing_is_armed_without_a_lease, set_up, tear_down),
      cmocka_unit_test_setup_teardown (an_answer_to_hello_is_a_lease, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_lapsed_probe_is_woken, set_up, tear_down),
      cmocka_unit_test_setup_teardown (gaps_and_strangers_ask_for_a_hello, set_up, tear_down),
      cmocka_unit_test_setup_teardown (another_controller_renews_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_far_clock_is_known_from_a_question_and_its_answer, set_up,
                                       tear_down),
      cmocka_unit_test_setup_teardown (drift_asks_and_ends_no_lease, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_clock_namespace_is_another_clock, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_child_goes_on_where_its_parent_is, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_child_of_one_without_state_is_left_alone, set_up, tear_down),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
