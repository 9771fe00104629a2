/* SPDX-License-Identifier: Apache-2.0 */
#include "recovery.h"

#include "../../common/status.h"
#include "sums.h"

static int is_before (const ctl_journal_position_t *a, const ctl_journal_position_t *b)
{
  return a->segment < b->segment || (a->segment == b->segment && a->offset < b->offset);
}

/* What is said before the first batch that the store may lack: names, farewells, and which batches
 * there were, so that one that is sent again is known. `behind`: the rest. */
static int take (ctl_intake_t *intake, const void *frame, size_t size, int before, int behind)
{
  weft_up_kind_t kind;
  if (weft_up_kind (frame, size, &kind) < 0)
    return 0;
  if (kind != WEFT_UP_BATCH)
    return behind ? 0 : ctl_intake_frame (intake, frame, size);
  if (before)
    return behind ? 0 : ctl_intake_recall (intake, frame, size);
  return behind ? ctl_intake_frame (intake, frame, size) : 0;
}

/* Where the first frame that the journal still has ends; 0, 0: it has none. */
static ctl_journal_position_t first_frame (const char *dir)
{
  ctl_journal_reader_t *reader = NULL;
  ctl_journal_position_t position = {0};
  const void *frame;
  size_t size;
  int rc;
  if (ctl_journal_reader_open (dir, 0, &reader) < 0)
    return position;
  do
    rc = ctl_journal_reader_next (reader, &frame, &size, &position);
  while (rc < 0);
  ctl_journal_reader_close (&reader);
  return rc ? position : (ctl_journal_position_t){0};
}

/* U3 */
static json_t *load_sums (const char *dir, ctl_journal_position_t *ret_summed,
                          ctl_journal_position_t *ret_stored)
{
  ctl_journal_position_t first = first_frame (dir);
  json_t *stored = ctl_sums_load (dir, CTL_SUMS_STORED, ret_stored);
  if (stored && (!first.segment || first.segment <= ret_stored->segment)) {
    *ret_summed = *ret_stored;
    return stored;
  }
  json_decref (stored);
  *ret_stored = (ctl_journal_position_t){0};
  return ctl_sums_load (dir, CTL_SUMS_LAST, ret_summed);
}

/* stored: a position before which nothing is to be stored any more, beside the checkpoint. */
static int read_frames (const char *dir, int behind, ctl_intake_t *intake,
                        const ctl_journal_position_t *summed, const ctl_journal_position_t *stored,
                        ctl_recovery_t *recovery)
{
  ctl_journal_reader_t *reader = NULL;
  int rc = ctl_journal_reader_open (dir, behind, &reader);
  if (rc < 0)
    return rc;
  ctl_journal_position_t checkpoint;
  ctl_journal_reader_checkpoint (reader, &checkpoint);
  if (is_before (&checkpoint, stored))
    checkpoint = *stored;
  for (;;) {
    const void *frame = NULL;
    size_t size = 0;
    ctl_journal_position_t position = {0};
    rc = ctl_journal_reader_next (reader, &frame, &size, &position);
    if (rc == 0)
      break;
    if (rc < 0 && behind && recovery->damaged++ == 0)
      recovery->first_damage = position;
    if (rc < 0)
      continue;
    ctl_intake_uncounted (intake, is_before (&position, summed)); /* U1 */
    rc = take (intake, frame, size, is_before (&position, &checkpoint), behind);
    if (rc == WEFT_E_FULL) /* the store takes nothing: better no start than a start without them */
      break;
    recovery->frames += behind;
  }
  ctl_journal_reader_close (&reader);
  return rc == WEFT_E_FULL ? rc : 0;
}

int ctl_recovery_run (const char *dir, ctl_intake_t *intake, ctl_instances_t *instances,
                      ctl_recovery_t *ret_recovery)
{
  ctl_recovery_t recovery = {0};
  /* Who they are was said long before the checkpoint. */
  ctl_journal_position_t summed, stored;
  json_t *sums = load_sums (dir, &summed, &stored);
  int rc = read_frames (dir, 0, intake, &summed, &stored, &recovery);
  if (rc == 0)
    rc = read_frames (dir, 1, intake, &summed, &stored, &recovery);
  ctl_intake_uncounted (intake, 0);
  if (rc == 0)
    ctl_sums_add (sums, instances);
  json_decref (sums);
  if (rc < 0)
    return rc;
  for (uint32_t n = 0; n < ctl_instances_count (instances); n++) {
    ctl_instances_at (instances, n)->presence = CTL_INSTANCE_LEFT;
    ctl_instances_silent (ctl_instances_at (instances, n)); /* until it speaks again */
  }
  *ret_recovery = recovery;
  return 0;
}
