/* SPDX-License-Identifier: Apache-2.0 */
/* weft top: what is going on, by task name, again every second. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../task/analyse.h"
#include "../view/rates.h"
#include "client.h"
#include "ranking.h"
#include "screen.h"
#include "verbs.h"
#include "which.h"

#define EVERY_MS     1000u
#define WINDOW_MS    60000u
#define LINES_AROUND 3u /* the whole, the head of the table, how many more */

typedef struct {
  const ctl_call_t *call;
  ctl_client_t *client;
  json_t *request;
  ctl_rank_t rank;
  uint64_t window_ns;
  uint32_t limit;
} top_t;

static int ask (top_t *self, ctl_analysis_t **ret_analysis)
{
  json_t *reply = NULL;
  uint64_t now_ns = weft_clock_ns (CLOCK_REALTIME);
  json_object_set_new (self->request, "from_ns", json_integer ((json_int_t) (now_ns - self->window_ns)));
  int rc = ctl_client_try (self->client, json_incref (self->request), WEFT_REPLY_MS, &reply);
  if (rc == 0)
    rc = ctl_ranking_apply (json_object_get (reply, "analysis"), self->rank, self->limit);
  if (rc == 0)
    rc = ctl_analysis_from_json (json_object_get (reply, "analysis"), ret_analysis);
  json_decref (reply);
  return rc;
}

static int print_once (top_t *self)
{
  ctl_analysis_t *analysis = NULL;
  ctl_style_t style;
  ctl_style_detect (STDOUT_FILENO, &style);
  int rc = ask (self, &analysis);
  if (rc == 0 && ctl_call_has (self->call, "json"))
    rc = ctl_rates_json (stdout, analysis, self->window_ns);
  else if (rc == 0 && ctl_call_has (self->call, "csv"))
    rc = ctl_rates_csv (stdout, analysis, self->window_ns);
  else if (rc == 0)
    rc = ctl_rates (stdout, &style, analysis, self->window_ns, UINT32_MAX);
  ctl_analysis_destroy (&analysis);
  return rc;
}

static int draw (top_t *self, ctl_screen_t *screen)
{
  ctl_analysis_t *analysis = NULL;
  ctl_style_t style;
  char *text = NULL;
  size_t size = 0;
  int rc = ask (self, &analysis);
  if (rc < 0)
    return rc;
  ctl_style_detect (STDOUT_FILENO, &style);
  uint32_t rows = ctl_screen_rows (screen);
  FILE *out = open_memstream (&text, &size);
  rc = out ? ctl_rates (out, &style, analysis, self->window_ns, rows > LINES_AROUND ? rows - LINES_AROUND : 1)
           : WEFT_E_NOMEM;
  if (out && fclose (out) == 0 && rc == 0)
    ctl_screen_draw (screen, text, size);
  free (text);
  ctl_analysis_destroy (&analysis);
  return rc;
}

static int go_on (top_t *self)
{
  ctl_screen_t *screen = ctl_screen_new ();
  if (!screen)
    return WEFT_E_NOMEM;
  int rc;
  while ((rc = draw (self, screen)) == 0 && ctl_screen_key (screen, EVERY_MS) != 'q')
    ;
  ctl_screen_destroy (&screen);
  return rc;
}

static int read_call (top_t *self)
{
  uint64_t since_ms = 0, last_ms = 0;
  self->request = ctl_which (self->call, "tasks", WEFT_EACH_MAX);
  if (!self->request || ctl_ranking_read (self->call, CTL_RANK_COUNT, &self->rank) < 0 ||
      ctl_call_duration (self->call, "since", UINT32_MAX, 0, &since_ms) < 0 ||
      ctl_call_duration (self->call, "last", UINT32_MAX, 0, &last_ms) < 0)
    return WEFT_E_USAGE;
  since_ms = since_ms ? since_ms : last_ms ? last_ms : WINDOW_MS;
  self->window_ns = since_ms * WEFT_NS_PER_MS;
  self->limit = (uint32_t) json_integer_value (json_object_get (self->request, "limit"));
  return 0;
}

int ctl_verb_top (ctl_call_t *call)
{
  top_t self = {.call = call};
  int plain = ctl_call_has (call, "once") || ctl_call_has (call, "json") || ctl_call_has (call, "csv");
  if (read_call (&self) < 0) {
    json_decref (self.request);
    return CTL_EXIT_USAGE;
  }
  int rc = ctl_client_open (call->address, CTL_CLIENT_STORE, &self.client);
  if (rc == 0) {
    rc = plain || !isatty (STDOUT_FILENO) ? print_once (&self) : go_on (&self);
    if (rc < 0)
      weft_log_error ("no answer of the controller at %s: %s; see whether it still runs with `weft ls`",
                      call->address, weft_status_text (rc));
  }
  ctl_client_close (&self.client);
  json_decref (self.request);
  return rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
