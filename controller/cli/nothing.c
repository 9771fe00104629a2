/* SPDX-License-Identifier: Apache-2.0 */
#include "nothing.h"

#include <stdio.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../task/pack.h"
#include "../view/style.h"

typedef struct {
  const char *match;
  char closest[4 * WEFT_NAME_MAX + 1];
  unsigned distance;
  uint64_t seen;
} search_t;

unsigned ctl_nothing_distance (const char *a, const char *b)
{
  unsigned row[WEFT_NAME_MAX + 1];
  size_t width = strnlen (b, WEFT_NAME_MAX), height = strnlen (a, WEFT_NAME_MAX);
  for (size_t x = 0; x <= width; x++)
    row[x] = (unsigned) x;
  for (size_t y = 1; y <= height; y++) {
    unsigned diagonal = row[0];
    row[0] = (unsigned) y;
    for (size_t x = 1; x <= width; x++) {
      unsigned replaced = diagonal + (a[y - 1] != b[x - 1]);
      diagonal = row[x];
      unsigned least = row[x - 1] < row[x] ? row[x - 1] + 1 : row[x] + 1;
      row[x] = replaced < least ? replaced : least;
    }
  }
  return row[width];
}

static int compare (const void *data, size_t size, void *arg)
{
  search_t *self = arg;
  ctl_execution_t *execution = NULL;
  int rc = ctl_execution_unpack (data, size, &execution);
  if (rc < 0)
    return rc;
  unsigned distance = ctl_nothing_distance (self->match, execution->name);
  if (self->seen++ == 0 || distance < self->distance) {
    self->distance = distance;
    ctl_style_safe (self->closest, sizeof self->closest, execution->name, 1);
  }
  ctl_execution_destroy (&execution);
  return 0;
}

/* The requests without context that were seen and started nothing. */
static void search (ctl_window_t *window, search_t *self)
{
  ctl_client_ask (window->client,
                  json_pack ("{s:s, s:[I], s:I, s:I, s:I}", "op", "each", "instructions",
                             (json_int_t) window->phase[CTL_PHASE_ROOT].number[0], "from_ns",
                             (json_int_t) window->from_ns, "to_ns", (json_int_t) window->to_ns, "limit",
                             (json_int_t) 1000),
                  compare, self, NULL);
}

/* The one that saw most of what might have begun a task speaks for all, else the one with most traffic. */
static const ctl_instance_t *busiest (const ctl_window_t *window)
{
  const ctl_instance_t *found = NULL;
  for (uint32_t n = 0; n < window->after.count; n++) {
    const ctl_instance_t *one = &window->after.instances[n];
    if (one->presence != CTL_INSTANCE_PRESENT)
      continue;
    if (!found || one->requests_unmatched > found->requests_unmatched ||
        (one->requests_unmatched == found->requests_unmatched && one->bytes_total > found->bytes_total))
      found = one;
  }
  return found;
}

/* Requests that would have started tasks, but for --exclude. */
static uint64_t excluded (const ctl_window_t *window)
{
  uint64_t count = 0;
  for (uint32_t n = 0; n < window->after.count; n++)
    if (window->after.instances[n].presence == CTL_INSTANCE_PRESENT)
      count += window->after.instances[n].requests_excluded;
  return count;
}

/* Requests came that no instruction took. */
static void explain_unmatched (double seconds, const char *service, uint64_t requests, const search_t *found,
                               int draws)
{
  char closest[sizeof found->closest + 16] = "";
  unsigned long long count = requests;
  if (found->seen)
    snprintf (closest, sizeof closest, " (closest: %s)", found->closest);
  if (*found->match)
    weft_log_error ("no tasks in %.3g s: %s saw %llu requests, none matched '%s'%s%s; try without --match",
                    seconds, service, count, found->match, draws ? " and was drawn by --sample or --max" : "",
                    closest);
  else
    weft_log_error (
        "no tasks in %.3g s: %s saw %llu requests, none was drawn by --sample or --max; give it more "
        "time, or draw more",
        seconds, service, count);
}

/* Nothing that might have begun one was seen. */
static void explain_traffic (double seconds, const char *service, const ctl_instance_t *busy,
                             const char *match)
{
  unsigned long long total = busy->bytes_total;
  if (busy->requests_in > 0)
    weft_log_error (
        "no tasks in %.3g s: %s saw %llu requests, all parts of other tasks or on connections from before "
        "the window, which count from their next request on; give it more time with --for",
        seconds, service, (unsigned long long) busy->requests_in);
  else if (*match)
    weft_log_error (
        "no tasks in %.3g s: %s had traffic (%llu bytes), but no request that matched '%s'; try without "
        "--match",
        seconds, service, total, match);
  else if (busy->bytes_spoken == 0)
    weft_log_error (
        "no tasks in %.3g s: %s had traffic (%llu bytes), but none of it is HTTP/1.1 that can be read; "
        "connections from before the window count only from their next request on",
        seconds, service, total);
  else
    weft_log_error (
        "no tasks in %.3g s: %s speaks HTTP (%llu bytes), but no request came to it from outside the "
        "joined VMs; say where tasks may start with --root",
        seconds, service, (unsigned long long) busy->bytes_spoken);
}

void ctl_nothing_explain (ctl_window_t *window, const ctl_analysis_t *analysis, const char *match, int draws)
{
  double seconds = (double) (window->to_ns - window->from_ns) / (double) WEFT_NS_PER_S;
  const ctl_instance_t *busy = busiest (window);
  char safe[4 * WEFT_SERVICE_MAX + 1];
  search_t found = {.match = match};
  ctl_style_safe (safe, sizeof safe, busy ? busy->service : "the VM", 1);
  if (analysis->orphan_trees && window->phase[CTL_PHASE_ROOT].sent)
    search (window, &found);
  uint64_t unmatched = busy ? busy->requests_unmatched : 0, spared = excluded (window);
  if (busy) /* among them are those that were excluded */
    unmatched -= busy->requests_excluded < unmatched ? busy->requests_excluded : unmatched;
  if (!busy || busy->bytes_total == 0)
    weft_log_error (
        "no tasks in %.3g s: nothing was sent to or from %s; send it requests, or choose another VM", seconds,
        safe);
  else if (unmatched && (*match || draws))
    explain_unmatched (seconds, safe, unmatched, &found, draws);
  else if (spared)
    weft_log_error (
        "no tasks in %.3g s: the %llu requests that could have started one are excluded (health checks "
        "and the like, or --exclude); --exclude none follows them, too",
        seconds, (unsigned long long) spared);
  else if (*match && found.seen)
    explain_unmatched (seconds, safe, found.seen, &found, draws);
  else
    explain_traffic (seconds, safe, busy, match);
}
