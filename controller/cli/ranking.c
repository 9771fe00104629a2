/* SPDX-License-Identifier: Apache-2.0 */
#include "ranking.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/log.h"
#include "../../common/status.h"

/* What the user says, and the field that it means. */
static const char *const keys[CTL_RANK_KEYS][2] = {{"count", "executions"},
                                                   {"total", "total_ns"},
                                                   {"p50", "p50_ns"},
                                                   {"p99", "p99_ns"},
                                                   {"errors", "errors"}};

typedef struct {
  json_int_t value;
  size_t place;
  json_t *name;
} ranked_t;

int ctl_ranking_read (const ctl_call_t *call, ctl_rank_t absent, ctl_rank_t *ret_rank)
{
  const char *text = ctl_call_value (call, "sort", NULL);
  ctl_rank_t rank = text ? CTL_RANK_COUNT : absent;
  while (text && rank < CTL_RANK_KEYS && strcmp (text, keys[rank][0]) != 0)
    rank++;
  if (rank == CTL_RANK_KEYS) {
    weft_log_error ("bad order '%.40s' for --sort: count, total, p50, p99 or errors is meant", text);
    return WEFT_E_USAGE;
  }
  *ret_rank = rank;
  return 0;
}

static int compare (const void *left, const void *right)
{
  const ranked_t *a = left, *b = right;
  if (a->value != b->value)
    return a->value > b->value ? -1 : 1;
  return a->place < b->place ? -1 : 1;
}

int ctl_ranking_apply (json_t *analysis, ctl_rank_t rank, uint32_t limit)
{
  json_t *names = json_object_get (analysis, "names"), *sorted = json_array ();
  size_t count = json_array_size (names);
  ranked_t *ranked = calloc (count + 1, sizeof *ranked);
  int rc = sorted && ranked ? 0 : WEFT_E_NOMEM;
  for (size_t i = 0; i < count && rc == 0; i++) {
    json_t *name = json_array_get (names, i);
    ranked[i] = (ranked_t){json_integer_value (json_object_get (name, keys[rank][1])), i, name};
  }
  if (rc == 0)
    qsort (ranked, count, sizeof *ranked, compare);
  for (size_t i = 0; i < count && i < limit && rc == 0; i++)
    rc = json_array_append (sorted, ranked[i].name) < 0 ? WEFT_E_NOMEM : 0;
  if (rc == 0 && json_is_array (names))
    rc = json_object_set (analysis, "names", sorted) < 0 ? WEFT_E_NOMEM : 0;
  json_decref (sorted);
  free (ranked);
  return rc;
}
