/* SPDX-License-Identifier: Apache-2.0 */
#include "candidates.h"

#include <string.h>

#include "../../common/log.h"
#include "../../common/status.h"
#include "sidecar.h"

/* Columns before the way in: PID, VM, SERVICE, USER, LISTENS. */
#define COLUMN_COUNT 5
static const struct {
  const char *title, *key;
  int right;
} columns[COLUMN_COUNT] = {{"PID", "pid", 1},
                           {"VM", "vm", 0},
                           {"SERVICE", "service", 0},
                           {"USER", "user", 0},
                           {"LISTENS", "listens", 0}};
#define COLUMN_MAX 24

int ctl_candidate_joinable (const json_t *one)
{
  return json_is_true (json_object_get (one, "joinable")) || json_is_true (json_object_get (one, "joined"));
}

int64_t ctl_candidate_pid (const json_t *one)
{
  return json_integer_value (json_object_get (one, "pid"));
}

static json_t *sorted (const json_t *lines)
{
  json_t *list = json_array ();
  for (size_t n = 0; n < json_array_size (lines); n++) {
    json_t *one = json_array_get (lines, n);
    size_t at = json_array_size (list);
    while (at > 0 && ctl_candidate_pid (json_array_get (list, at - 1)) > ctl_candidate_pid (one))
      at--;
    json_array_insert (list, at, one);
  }
  return list;
}

int ctl_candidates_read (json_t **ret_list)
{
  ctl_words_t words = {.word = {"weft-instance", "identify"}, .count = 2};
  json_t *lines = NULL;
  int code = 0;
  int rc = ctl_sidecar_lines (&words, "looking", &lines, &code);
  if (rc == 0 && code != 0)
    rc = WEFT_E_IO; /* said by weft-instance */
  else if (rc < 0)
    weft_log_error ("cannot look for process VMs: %s", weft_status_text (rc));
  if (rc == 0)
    *ret_list = sorted (lines);
  json_decref (lines);
  return rc;
}

static const char *text_of (const json_t *one, const char *key)
{
  const char *text = json_string_value (json_object_get (one, key));
  return text ? text : "";
}

static void cell_text (char *out, size_t size, const ctl_style_t *style, const json_t *one, int column)
{
  char raw[256];
  if (column == 0)
    snprintf (raw, sizeof raw, "%lld", (long long) ctl_candidate_pid (one));
  else if (column == 1)
    snprintf (raw, sizeof raw, "%s %s", ctl_style_vm (text_of (one, "vm")), text_of (one, "version"));
  else
    snprintf (raw, sizeof raw, "%s", text_of (one, columns[column].key));
  ctl_style_safe (out, size, raw, style->utf8);
}

/* "no: started with …" and, below it, the remedy in brackets. */
static void print_way_in (FILE *out, const ctl_style_t *style, const json_t *one, uint32_t indent)
{
  char safe[1024];
  const char *why = text_of (one, "why");
  const char *remedy = strstr (why, "; ");
  if (json_is_true (json_object_get (one, "joined"))) {
    fprintf (out, "joined already\n");
  } else if (ctl_candidate_joinable (one)) {
    ctl_style_safe (safe, sizeof safe, text_of (one, "way_in"), style->utf8);
    fprintf (out, "%s\n", safe);
  } else {
    char reason[512];
    snprintf (reason, sizeof reason, "%.*s", (int) (remedy ? (size_t) (remedy - why) : strlen (why)), why);
    ctl_style_safe (safe, sizeof safe, reason, style->utf8);
    fprintf (out, "no: %s\n", safe);
    if (remedy) {
      ctl_style_safe (safe, sizeof safe, remedy + 2, style->utf8);
      fprintf (out, "%*s(%s)\n", (int) indent, "", safe);
    }
  }
}

void ctl_candidates_print (FILE *out, const ctl_style_t *style, const json_t *list)
{
  size_t count = json_array_size (list), joinable = 0;
  uint32_t width[COLUMN_COUNT], indent = 0;
  char text[1024];
  for (size_t n = 0; n < count; n++)
    joinable += ctl_candidate_joinable (json_array_get (list, n)) ? 1 : 0;
  fprintf (out, "%zu process VM%s here, %zu of them weft could join (weft profile PID%s or --all)%s\n", count,
           count == 1 ? "" : "s", joinable, style->utf8 ? "…" : "...", count ? ":" : "");
  if (count == 0)
    return;
  for (int c = 0; c < COLUMN_COUNT; c++) {
    width[c] = ctl_style_width (columns[c].title);
    for (size_t n = 0; n < count; n++) {
      cell_text (text, sizeof text, style, json_array_get (list, n), c);
      uint32_t wanted = ctl_style_width (text);
      width[c] = wanted > width[c] ? wanted : width[c];
    }
    width[c] = width[c] > COLUMN_MAX ? COLUMN_MAX : width[c];
    indent += width[c] + 2;
  }
  for (int c = 0; c < COLUMN_COUNT; c++) {
    ctl_style_cell (out, style, columns[c].title, width[c], columns[c].right);
    fputs ("  ", out);
  }
  fputs ("WAY IN\n", out);
  for (size_t n = 0; n < count; n++) {
    for (int c = 0; c < COLUMN_COUNT; c++) {
      cell_text (text, sizeof text, style, json_array_get (list, n), c);
      ctl_style_cell (out, style, text, width[c], columns[c].right);
      fputs ("  ", out);
    }
    print_way_in (out, style, json_array_get (list, n), indent);
  }
}
