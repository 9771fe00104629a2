/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings of real runs, their frames in many orders, through intake-like
 * taking and settling at drawn moments: always the same executions, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/service/questions.h"
#include "../../../../controller/service/recording.h"
#include "../../../../controller/view/json.h"

#define ROUNDS     12
#define FRAMES_MAX 4096

typedef struct {
  const void *data;
  size_t size;
} frame_t;

static frame_t frames[FRAMES_MAX];
static uint32_t count;
static uint64_t seed;

static uint32_t draw (uint32_t below)
{
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t) (seed >> 33) % below;
}

static void shuffle (void)
{
  for (uint32_t n = count; n > 1; n--) {
    uint32_t other = draw (n);
    frame_t kept = frames[n - 1];
    frames[n - 1] = frames[other];
    frames[other] = kept;
  }
}

typedef struct {
  char *line[FRAMES_MAX];
  uint32_t lines;
} lines_t;

static int add_line (ctl_execution_t **execution_p, void *arg)
{
  lines_t *lines = arg;
  json_t *json = ctl_json_execution (*execution_p);
  assert_true (lines->lines < FRAMES_MAX);
  lines->line[lines->lines++] = json_dumps (json, JSON_COMPACT);
  json_decref (json);
  return 0;
}

static int by_text (const void *left, const void *right)
{
  return strcmp (*(char *const *) left, *(char *const *) right);
}

/* Everything as it came, messages before batches: who speaks is known, from then on any order. */
static void answer (int messages_first, lines_t *ret_lines)
{
  ctl_instances_t *instances = ctl_instances_new ();
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  for (int pass = messages_first ? 0 : 1; pass < 2; pass++)
    for (uint32_t n = 0; n < count; n++) {
      weft_up_kind_t kind;
      uint32_t reports;
      ctl_instance_t *instance;
      weft_up_message_t message;
      assert_int_equal (weft_up_kind (frames[n].data, frames[n].size, &kind), 0);
      if (kind == WEFT_UP_BATCH && pass == 1) {
        assert_int_equal (ctl_correlate_batch (correlate, frames[n].data, frames[n].size, &reports), 0);
      } else if (kind == WEFT_UP_HELLO && (pass == 0 || !messages_first)) {
        assert_int_equal (weft_up_unpack (frames[n].data, frames[n].size, &message), 0);
        assert_int_equal (ctl_instances_take (instances, &message, &instance), 0);
      }
    }
  const ctl_places_t places = {correlate, NULL, NULL};
  ret_lines->lines = 0;
  assert_int_equal (ctl_questions_each (&places, 0, 0, UINT64_MAX, add_line, ret_lines), 0);
  qsort (ret_lines->line, ret_lines->lines, sizeof *ret_lines->line, by_text);
  ctl_correlate_destroy (&correlate);
  ctl_instances_destroy (&instances);
}

static void forget (lines_t *lines)
{
  while (lines->lines)
    free (lines->line[--lines->lines]);
}

static void any_order (const char *path)
{
  static lines_t first, now;
  ctl_recording_t *recording = NULL;
  assert_int_equal (ctl_recording_open (path, &recording), 0);
  for (count = 0; ctl_recording_next (recording, &frames[count].data, &frames[count].size) == 1; count++)
    assert_true (count + 1 < FRAMES_MAX);
  answer (1, &first);
  assert_true (first.lines > 10);
  for (int round = 0; round < ROUNDS; round++) {
    shuffle ();
    answer (round % 2, &now);
    assert_int_equal (now.lines, first.lines);
    for (uint32_t n = 0; n < now.lines; n++)
      assert_string_equal (now.line[n], first.line[n]);
    forget (&now);
  }
  forget (&first);
  ctl_recording_close (&recording);
}

static void test_jdk17_chain (void **state)
{
  any_order ("tests/recordings/jdk17-chain.weftr");
}

static void test_jdk25_chain (void **state)
{
  any_order ("tests/recordings/jdk25-chain.weftr");
}

static void test_trouble (void **state)
{
  any_order ("tests/recordings/trouble.weftr");
}

int main (void)
{
  const char *given = getenv ("WEFT_SEED");
  seed = given ? strtoull (given, NULL, 10) : 20261129;
  printf ("WEFT_SEED=%llu\n", (unsigned long long) seed);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_jdk17_chain),
      cmocka_unit_test (test_jdk25_chain),
      cmocka_unit_test (test_trouble),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
