/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../../common/status.h"

#define POLL_MS     10
#define PROGRESS_MS 100
#define BAR_CELLS   20
#define LEFT_MS     60000 /* what an instance that left had to say has come by then */
/* W2: between sending an instruction and its window, everyone has to acknowledge. */
#define MARGIN_MS (WEFT_ACK_WAIT_MS * 2 + 2000)

volatile int ctl_window_enough, ctl_window_at_once;

static void on_signal (int number)
{
  if (ctl_window_enough)
    ctl_window_at_once = 1;
  ctl_window_enough = 1;
}

void ctl_window_signals (void)
{
  struct sigaction action = {.sa_handler = on_signal};
  struct sigaction hangup;
  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
  if (sigaction (SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* nohup */
    sigaction (SIGHUP, &action, NULL);
  signal (SIGPIPE, SIG_IGN); /* a reader that has gone is no reason to stay in a VM */
}

static int send_all (ctl_window_t *self, ctl_window_phase_t *phase)
{
  int rc = 0;
  for (uint32_t n = 0; rc == 0 && n < phase->orders.count; n++) {
    rc = ctl_order_send (self->client, &phase->orders.order[n], self->for_ms + MARGIN_MS, &phase->number[n]);
    if (rc == 0)
      phase->sent++;
  }
  return rc;
}

/* Keeps the counts of the one that fewest work under. */
static int await_all (ctl_window_t *self, ctl_window_phase_t *phase, uint64_t timeout_ms,
                      ctl_standing_counts_t *counts)
{
  uint64_t end_ns = weft_mono_ns () + timeout_ms * WEFT_NS_PER_MS;
  int rc = 0;
  for (uint32_t n = 0; rc == 0 && n < phase->sent; n++) {
    ctl_standing_counts_t one = {0};
    uint64_t now_ns = weft_mono_ns ();
    rc =
        ctl_order_await (self->client, phase->number[n],
                         now_ns < end_ns ? (end_ns - now_ns) / WEFT_NS_PER_MS : 0, &ctl_window_at_once, &one);
    phase->expected += counts ? one.expected : 0;
    if (!counts || (counts->silent && one.expected - one.active <= counts->expected - counts->active)) {
      ctl_standing_clear (&one);
      continue;
    }
    ctl_standing_clear (counts);
    *counts = one;
  }
  return rc;
}

/* Who has just left may still be heard of. */
static int look_before (ctl_window_t *self)
{
  self->opened_ns = weft_mono_ns ();
  return ctl_roster_read (self->client, json_pack ("{s:i}", "recent_ms", LEFT_MS), &self->before);
}

static int look_after (ctl_window_t *self)
{
  json_int_t ms = (json_int_t) ((weft_mono_ns () - self->opened_ns) / WEFT_NS_PER_MS) + 1;
  return ctl_roster_read (self->client, json_pack ("{s:I}", "recent_ms", ms), &self->after);
}

int ctl_window_open (ctl_window_t *self, ctl_standing_counts_t *ret_counts)
{
  static const uint32_t action[CTL_PHASE_COUNT] = {WEFT_ACTION_CAPTURE, WEFT_ACTION_EMBED, WEFT_ACTION_ROOT};
  int rc = 0;
  for (int n = 0; rc == 0 && n < CTL_PHASE_COUNT; n++) {
    ctl_window_phase_t *phase = &self->phase[n];
    ctl_orders_part (self->orders, action[n], &phase->orders);
    if (n == CTL_PHASE_ROOT)
      rc = look_before (self);
    if (rc == 0)
      rc = send_all (self, phase);
    if (rc == 0)
      rc = await_all (self, phase, WEFT_ACK_WAIT_MS, ret_counts);
    if (n == CTL_PHASE_CAPTURE && phase->sent && !ctl_window_enough)
      ctl_pause_ms (WEFT_WINDOW_SETTLE_MS);
  }
  self->from_ns = weft_clock_ns (CLOCK_REALTIME);
  return rc;
}

static void show_progress (const ctl_window_t *self, uint64_t passed_ms)
{
  uint64_t filled = passed_ms * BAR_CELLS / (self->for_ms ? self->for_ms : 1);
  fprintf (stderr, "\r%5.1f s of %.1f s [", (double) passed_ms / 1000, (double) self->for_ms / 1000);
  for (uint64_t n = 0; n < BAR_CELLS; n++)
    fputc (n < filled ? '#' : '.', stderr);
  fputs ("] Ctrl-C ends it with the report", stderr);
}

void ctl_window_wait (ctl_window_t *self)
{
  uint64_t start_ns = weft_mono_ns (), end_ns = start_ns + self->for_ms * WEFT_NS_PER_MS;
  for (uint64_t now_ns; !ctl_window_enough && (now_ns = weft_mono_ns ()) < end_ns;) {
    uint64_t left_ms = (end_ns - now_ns) / WEFT_NS_PER_MS + 1;
    if (self->progress)
      show_progress (self, (now_ns - start_ns) / WEFT_NS_PER_MS);
    ctl_pause_ms (left_ms < PROGRESS_MS ? (unsigned) left_ms : PROGRESS_MS);
  }
  if (self->progress)
    fputs ("\r\033[K", stderr);
}

/* W1: what is left of the time a close may take. */
static uint64_t left_ms (const ctl_window_t *self, uint64_t wanted_ms)
{
  uint64_t end_ns = self->closed_ns + WEFT_WINDOW_REPORT_MS * WEFT_NS_PER_MS, now_ns = weft_mono_ns ();
  uint64_t left = now_ns < end_ns ? (end_ns - now_ns) / WEFT_NS_PER_MS : 0;
  return left < wanted_ms ? left : wanted_ms;
}

static void stop_all (ctl_window_t *self, const ctl_window_phase_t *phase)
{
  for (uint32_t n = 0; n < phase->sent; n++)
    ctl_order_stop (self->client, phase->number[n]);
}

static uint64_t waiting (const ctl_window_t *self)
{
  uint64_t sum = 0;
  const ctl_window_phase_t *root = &self->phase[CTL_PHASE_ROOT];
  for (uint32_t n = 0; n < root->sent; n++) {
    json_t *reply = NULL;
    ctl_client_ask (self->client,
                    json_pack ("{s:s, s:I}", "op", "waiting", "number", (json_int_t) root->number[n]), NULL,
                    NULL, &reply);
    sum += (uint64_t) json_integer_value (json_object_get (reply, "waiting"));
    json_decref (reply);
  }
  return sum;
}

/* A task that has begun and of which no report is here yet is not known to be waited for: hence the
 * grace, in which those of ordinary length answer. */
static void let_answer (const ctl_window_t *self)
{
  uint64_t start_ns = weft_mono_ns ();
  uint64_t least_ns = start_ns + left_ms (self, WEFT_WINDOW_GRACE_MS) * WEFT_NS_PER_MS;
  uint64_t most_ns = start_ns + left_ms (self, WEFT_WINDOW_WAIT_MS) * WEFT_NS_PER_MS;
  for (uint64_t now_ns; !ctl_window_at_once && (now_ns = weft_mono_ns ()) < most_ns;) {
    if (now_ns >= least_ns && waiting (self) == 0)
      break;
    ctl_pause_ms (POLL_MS);
  }
}

int ctl_window_close (ctl_window_t *self)
{
  self->to_ns = weft_clock_ns (CLOCK_REALTIME);
  self->closed_ns = weft_mono_ns ();
  int rc = 0;
  ctl_window_phase_t *root = &self->phase[CTL_PHASE_ROOT];
  stop_all (self, root);
  if (root->sent && !ctl_window_at_once) {
    rc = await_all (self, root, left_ms (self, WEFT_WINDOW_GRACE_MS), NULL);
    let_answer (self);
  }
  stop_all (self, &self->phase[CTL_PHASE_EMBED]);
  stop_all (self, &self->phase[CTL_PHASE_CAPTURE]);
  for (int n = CTL_PHASE_CAPTURE; rc == 0 && n < CTL_PHASE_ROOT && !ctl_window_at_once; n++)
    rc = await_all (self, &self->phase[n], left_ms (self, WEFT_WINDOW_REPORT_MS), NULL);
  if (rc == 0 && !ctl_window_at_once)
    rc = look_after (self);
  return rc;
}

int ctl_window_late (ctl_window_t *self)
{
  uint64_t end_ns = weft_mono_ns () + WEFT_ACK_WAIT_MS * WEFT_NS_PER_MS;
  int rc = 0;
  for (int n = CTL_PHASE_CAPTURE; rc == 0 && n < CTL_PHASE_COUNT && !ctl_window_at_once; n++) {
    uint64_t now_ns = weft_mono_ns ();
    rc = await_all (self, &self->phase[n], now_ns < end_ns ? (end_ns - now_ns) / WEFT_NS_PER_MS : 0, NULL);
  }
  if (rc < 0)
    return rc;
  ctl_roster_clear (&self->after);
  return look_after (self);
}

int ctl_window_analysis (ctl_window_t *self, ctl_analysis_t **ret_analysis, json_t **ret_json)
{
  json_t *numbers = json_array (), *reply = NULL;
  const ctl_window_phase_t *root = &self->phase[CTL_PHASE_ROOT];
  for (uint32_t n = 0; n < root->sent; n++)
    json_array_append_new (numbers, json_integer ((json_int_t) root->number[n]));
  int rc =
      ctl_client_ask (self->client,
                      json_pack ("{s:s, s:o, s:I, s:I}", "op", "tasks", "instructions", numbers, "from_ns",
                                 (json_int_t) self->from_ns, "to_ns", (json_int_t) self->to_ns),
                      NULL, NULL, &reply);
  if (rc < 0)
    return rc;
  json_t *json = json_object_get (reply, "analysis");
  rc = ctl_analysis_from_json (json, ret_analysis);
  if (rc == 0)
    *ret_json = json_incref (json);
  else
    weft_log_error ("the controller's answer cannot be used: %s; is it another version?",
                    weft_status_text (rc));
  json_decref (reply);
  return rc;
}

static uint64_t since (uint64_t now, uint64_t then)
{
  return now > then ? now - then : 0;
}

void ctl_window_traffic (ctl_window_t *self)
{
  for (uint32_t n = 0; n < self->after.count; n++) {
    ctl_instance_t *now = &self->after.instances[n];
    const ctl_instance_t *then = ctl_roster_uuid (&self->before, now->uuid);
    /* Who comes again counts from nothing. */
    if (!then || (then->presence == CTL_INSTANCE_LEFT && now->presence != CTL_INSTANCE_LEFT))
      continue;
    now->bytes_total = since (now->bytes_total, then->bytes_total);
    now->bytes_spoken = since (now->bytes_spoken, then->bytes_spoken);
    for (int i = 0; i < WEFT_PROTOCOL_COUNT; i++)
      now->rest[i] = since (now->rest[i], then->rest[i]);
    now->given_up = since (now->given_up, then->given_up);
    now->bare = since (now->bare, then->bare);
    now->requests_in = since (now->requests_in, then->requests_in);
    now->requests_unmatched = since (now->requests_unmatched, then->requests_unmatched);
    now->requests_excluded = since (now->requests_excluded, then->requests_excluded);
  }
}

void ctl_window_clear (ctl_window_t *self)
{
  ctl_roster_clear (&self->before);
  ctl_roster_clear (&self->after);
}
