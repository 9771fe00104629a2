/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as bytes, of either version: what is taken is a tree, and packed and read again it is the same;
 * each execution of a pack is taken or refused without the others. */
#include "../../common/limits.h"
#include "../../controller/task/pack.h"
#include "fuzz.h"

static void check_tree (const ctl_execution_t *self)
{
  FUZZ_MUST (self->count > 0 && self->count <= WEFT_SUBTASKS_PER_TASK_MAX && self->name && self->origin);
  for (uint32_t i = 0; i < self->count; i++) {
    const ctl_subtask_t *one = &self->subtasks[i];
    FUZZ_MUST (one->service && one->vm && one->name && (unsigned) one->hop < CTL_HOP_COUNT);
    FUZZ_MUST (one->parent == CTL_NO_PARENT || one->parent < i);
    FUZZ_MUST (one->start_ns <= one->end_ns && one->end_ns <= INT64_MAX);
    FUZZ_MUST (one->shift_ns < INT64_MAX / 2 && one->shift_ns > INT64_MIN / 2);
  }
}

/* Packed, which is to be freed; and what is read again. */
static void *again (const ctl_execution_t *execution, size_t *ret_size, ctl_execution_t **ret_execution)
{
  void *data;
  FUZZ_MUST (ctl_execution_pack (execution, &data, ret_size) == 0);
  FUZZ_MUST (ctl_execution_unpack (data, *ret_size, ret_execution) == 0);
  return data;
}

static void take (ctl_execution_t *execution)
{
  ctl_execution_t *second, *third;
  size_t size, size_again;
  check_tree (execution);
  void *data = again (execution, &size, &second);
  check_tree (second);
  void *data_again = again (second, &size_again, &third);
  FUZZ_MUST (size == size_again && memcmp (data, data_again, size) == 0);
  FUZZ_MUST (second->count == execution->count && second->complete == execution->complete);
  free (data);
  free (data_again);
  ctl_execution_destroy (&second);
  ctl_execution_destroy (&third);
  ctl_execution_destroy (&execution);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  ctl_execution_t *execution;
  uint32_t count = ctl_pack_count_of (data, size);
  FUZZ_MUST (count <= CTL_PACK_MOST);
  if (ctl_execution_unpack (data, size, &execution) == 0) {
    FUZZ_MUST (count <= 1);
    take (execution);
  }
  for (uint32_t place = 0; place <= count; place++)
    if (ctl_pack_read (data, size, place, &execution) == 0) {
      FUZZ_MUST (place < count);
      take (execution);
    }
  return 0;
}
