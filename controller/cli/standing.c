/* SPDX-License-Identifier: Apache-2.0 */
#include "standing.h"

#include <string.h>

#include "../../common/status.h"
#include "../view/grid.h"

static const ctl_grid_column_t columns[] = {
    {"INSTRUCTION", 1, 0}, {"ACTIONS", 0, 0}, {"WHERE", 0, 1}, {"MATCH", 0, 1}, {"ACTIVE IN", 0, 0}};
#define COLUMN_COUNT (sizeof columns / sizeof *columns)

/* A new reference; its list is borrowed from it. */
static json_t *ask (ctl_client_t *client, const json_t **ret_list)
{
  json_t *reply = NULL;
  if (ctl_client_ask (client, json_pack ("{s:s}", "op", "instructions"), NULL, NULL, &reply) < 0)
    return NULL;
  *ret_list = json_object_get (reply, "instructions");
  return reply;
}

/* "a, b", cut to size. */
static void join (char *out, size_t size, const json_t *texts, const char *between)
{
  *out = 0;
  for (size_t n = 0; n < json_array_size (texts); n++) {
    const char *text = json_string_value (json_array_get (texts, n));
    size_t have = strlen (out);
    snprintf (out + have, size - have, "%s%s", n ? between : "", text ? text : "");
  }
}

static json_int_t number_of (const json_t *one, const char *key)
{
  return json_integer_value (json_object_get (one, key));
}

int ctl_standing_list (FILE *out, const ctl_style_t *style, ctl_client_t *client)
{
  const json_t *list = NULL;
  json_t *reply = ask (client, &list);
  ctl_grid_t *grid = reply && json_array_size (list) ? ctl_grid_new (style, columns, COLUMN_COUNT) : NULL;
  int rc = reply ? 0 : WEFT_E_GONE;
  for (size_t n = 0; grid && n < json_array_size (list); n++) {
    const json_t *one = json_array_get (list, n);
    const char *match = json_string_value (json_object_get (one, "match"));
    char text[256];
    ctl_grid_own (grid, "%lld", (long long) number_of (one, "number"));
    join (text, sizeof text, json_object_get (one, "actions"), ", ");
    ctl_grid_cell (grid, text);
    join (text, sizeof text, json_object_get (one, "selectors"), " or ");
    ctl_grid_cell (grid, text);
    ctl_grid_cell (grid, match && *match ? match : "all");
    ctl_grid_own (grid, "%lld of %lld", (long long) number_of (one, "active"),
                  (long long) number_of (one, "expected"));
  }
  if (grid) {
    fputc ('\n', out);
    rc = ctl_grid_print (grid, out);
  }
  ctl_grid_destroy (&grid);
  json_decref (reply);
  return rc;
}

void ctl_standing_remind (FILE *out, ctl_client_t *client)
{
  const json_t *list = NULL;
  json_t *reply = ask (client, &list);
  size_t count = json_array_size (list);
  for (size_t n = 0; n < count; n++)
    fprintf (out, "%s%lld",
             n           ? ", "
             : count > 1 ? "instructions "
                         : "instruction ",
             (long long) number_of (json_array_get (list, n), "number"));
  if (count)
    fprintf (out, " still stand%s, for whoever joins next; `weft stop` ends %s\n", count > 1 ? "" : "s",
             count > 1 ? "them" : "it");
  json_decref (reply);
}
