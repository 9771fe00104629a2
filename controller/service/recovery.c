/* SPDX-License-Identifier: Apache-2.0 */
#include "recovery.h"

#include "../../common/status.h"

int ctl_recovery_run (const char *dir, ctl_intake_t *intake, ctl_instances_t *instances,
                      ctl_recovery_t *ret_recovery)
{
  ctl_recovery_t recovery = {0};
  ctl_journal_reader_t *reader = NULL;
  int rc = ctl_journal_reader_open (dir, 1, &reader);
  if (rc < 0)
    return rc;
  for (;;) {
    const void *frame = NULL;
    size_t size = 0;
    ctl_journal_position_t position = {0};
    rc = ctl_journal_reader_next (reader, &frame, &size, &position);
    if (rc == 0)
      break;
    if (rc < 0) {
      if (recovery.damaged++ == 0)
        recovery.first_damage = position;
      continue;
    }
    ctl_intake_frame (intake, frame, size);
    recovery.frames++;
  }
  ctl_journal_reader_close (&reader);
  for (uint32_t n = 0; n < ctl_instances_count (instances); n++)
    ctl_instances_at (instances, n)->presence = CTL_INSTANCE_LEFT;
  *ret_recovery = recovery;
  return 0;
}
