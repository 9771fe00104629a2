/* SPDX-License-Identifier: Apache-2.0 */
#include "recovery.h"

#include "../../common/status.h"

/* Gives intake the frames that are batches, or those that are not. */
static int read_frames (const char *dir, int from_checkpoint, int batches, ctl_intake_t *intake,
                        ctl_recovery_t *recovery)
{
  ctl_journal_reader_t *reader = NULL;
  int rc = ctl_journal_reader_open (dir, from_checkpoint, &reader);
  if (rc < 0)
    return rc;
  for (;;) {
    const void *frame = NULL;
    size_t size = 0;
    ctl_journal_position_t position = {0};
    weft_up_kind_t kind;
    rc = ctl_journal_reader_next (reader, &frame, &size, &position);
    if (rc == 0)
      break;
    if (rc < 0) {
      if (batches && recovery->damaged++ == 0)
        recovery->first_damage = position;
    } else if (weft_up_kind (frame, size, &kind) == 0 && (kind == WEFT_UP_BATCH) == batches) {
      ctl_intake_frame (intake, frame, size);
      recovery->frames++;
    }
  }
  ctl_journal_reader_close (&reader);
  return 0;
}

int ctl_recovery_run (const char *dir, ctl_intake_t *intake, ctl_instances_t *instances,
                      ctl_recovery_t *ret_recovery)
{
  ctl_recovery_t recovery = {0};
  /* Who they are was said long before the checkpoint. */
  int rc = read_frames (dir, 0, 0, intake, &recovery);
  if (rc == 0)
    rc = read_frames (dir, 1, 1, intake, &recovery);
  if (rc < 0)
    return rc;
  for (uint32_t n = 0; n < ctl_instances_count (instances); n++)
    ctl_instances_at (instances, n)->presence = CTL_INSTANCE_LEFT;
  *ret_recovery = recovery;
  return 0;
}
