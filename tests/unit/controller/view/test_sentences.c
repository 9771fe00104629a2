/* SPDX-License-Identifier: Apache-2.0 */
#include "../task/shop.h"
#include "golden.h"

#include "../../../../controller/view/sentences.h"

static ctl_analysis_t *analyse_on (int hosts, shop_cause_t cause, uint32_t executions)
{
  shop_t shop;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  shop_new (&shop, 8);
  shop.noise = SHOP_UNIFORM;
  shop.load = shop.pauses = 0;
  shop.cause = cause;
  shop.hosts = hosts;
  shop.at = shop.places - 1;
  shop.place[shop.at].parallel = 0;
  shop.share = 0.03;
  shop.extra_ms = 3 * shop.whole_ms;
  if (cause == SHOP_MANY)
    shop.place[shop.at].base_ms *= 3;
  for (uint32_t i = 0; i < executions; i++) {
    ctl_execution_t *execution = shop_execution (&shop, i);
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  ctl_analyse_destroy (&analyse);
  return analysis;
}

static ctl_analysis_t *analyse (shop_cause_t cause, uint32_t executions)
{
  return analyse_on (0, cause, executions);
}

/* Every line of what was printed fits. */
static void check_width (const char *text, uint32_t columns)
{
  char line[512];
  for (size_t size; *text; text += size + (text[size] == '\n')) {
    size = strcspn (text, "\n");
    assert_true (size < sizeof line);
    memcpy (line, text, size);
    line[size] = 0;
    assert_true (ctl_style_width (line) <= columns);
  }
}

static void test_every_cause (void **state)
{
  static const ctl_style_t styles[] = {{80, 1, 0}, {120, 1, 0}, {80, 0, 0}};
  (void) state;
  golden_t golden;
  FILE *out = golden_begin (&golden);
  for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
    for (int cause = SHOP_NOTHING; cause < SHOP_CAUSES; cause++) {
      ctl_analysis_t *analysis = analyse ((shop_cause_t) cause, cause == SHOP_LOCK ? 1204 : 804);
      golden_t one;
      ctl_sentences_print (golden_begin (&one), &styles[i], analysis, &analysis->names[0]);
      fclose (one.out);
      check_width (one.text, styles[i].columns);
      fputs (one.text, out);
      free (one.text);
      ctl_analysis_destroy (&analysis);
    }
  golden_end (&golden, "sentences.txt");
}

/* What `count` executions, or an analysis that was changed by hand, are told as. */
static void check_text (ctl_analysis_t *analysis, const char *wanted)
{
  char text[CTL_SENTENCES_MAX];
  size_t size = ctl_sentences (analysis, &analysis->names[0], 1, text, sizeof text);
  assert_int_equal (size, strlen (text));
  if (!strstr (text, wanted))
    fail_msg ("'%s' is not in '%s'", wanted, text);
}

static void test_what_cannot_be_said (void **state)
{
  (void) state;
  ctl_analysis_t *analysis = analyse (SHOP_SLOW, 49);
  check_text (analysis, "49 complete executions: too few to tell");
  ctl_analysis_destroy (&analysis);
  analysis = analyse (SHOP_SLOW, 804);
  analysis->losses[WEFT_LOSS_RING_FULL] = 1;
  check_text (analysis, "a call may be missing here.");
  analysis->names[0].complete = 700;
  check_text (analysis, " 104 incomplete ones are not judged.");
  analysis->names[0].why.verdict = CTL_WHY_UNKNOWN;
  analysis->names[0].why.unknown = 31;
  check_text (analysis, "cannot be said: 31 requests left ");
  ctl_analysis_destroy (&analysis);
}

/* Between two hosts a queue and the network look the same; within one of them they do not. */
static void test_clocks_of_two_hosts (void **state)
{
  (void) state;
  const char *apart = "(the network, or a queue there: the clocks of two hosts cannot tell)";
  ctl_analysis_t *analysis = analyse_on (2, SHOP_QUEUE, 804);
  check_text (analysis, "more on the way of service-0");
  check_text (analysis, apart);
  ctl_analysis_destroy (&analysis);
  analysis = analyse_on (2, SHOP_NETWORK, 804);
  check_text (analysis, apart);
  ctl_analysis_destroy (&analysis);
  analysis = analyse_on (3, SHOP_QUEUE, 804);
  check_text (analysis, "more before service-0 takes up service-0");
  check_text (analysis, "(a queue before its threads, or on the way there)");
  ctl_analysis_destroy (&analysis);
}

/* Who waits elsewhere for the same. */
static void test_what_is_behind_it (void **state)
{
  (void) state;
  ctl_analysis_t *analysis = analyse (SHOP_QUEUE, 804);
  ctl_why_cause_t *cause = &analysis->names[0].why.causes[0];
  check_text (analysis, "(a queue before its threads, or on the way there). Nothing else");
  cause->behind_ns = 40 * WEFT_NS_PER_MS;
  cause->behind = "desk\033";
  check_text (analysis,
              "or on the way there); 40.0 ms of it before desk\\x1b, whose threads wait for that. Nothing");
  cause->behind = "";
  check_text (analysis, "; 40.0 ms of it before an unnamed service, whose threads wait for that. ");
  ctl_analysis_destroy (&analysis);
}

/* No room is too small, and nothing of a name reaches a terminal as it came. */
static void test_names_that_mean_no_good (void **state)
{
  (void) state;
  char text[CTL_SENTENCES_MAX];
  ctl_analysis_t *analysis = analyse (SHOP_SLOW, 804);
  ctl_why_cause_t *cause = &analysis->names[0].why.causes[0];
  cause->name = "GET /\033]0;owned\007\xff";
  cause->service = "";
  for (size_t size = 1; size < 400; size++) {
    size_t used = ctl_sentences (analysis, &analysis->names[0], (uint8_t) (size & 1), text, size);
    assert_true (used < size);
    assert_int_equal (strlen (text), used);
    assert_null (strchr (text, '\033'));
  }
  check_text (analysis, "an unnamed service GET /\\x1b]0;owned\\x07\\xff");
  ctl_analysis_destroy (&analysis);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_every_cause),
      cmocka_unit_test (test_what_cannot_be_said),
      cmocka_unit_test (test_clocks_of_two_hosts),
      cmocka_unit_test (test_what_is_behind_it),
      cmocka_unit_test (test_names_that_mean_no_good),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
