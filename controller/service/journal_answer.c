/* SPDX-License-Identifier: Apache-2.0 */
#include "journal_answer.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"

static int set_position (const ctl_house_t *house, ctl_reply_t *reply, const ctl_journal_position_t *position,
                         uint32_t gaps)
{
  ctl_journal_position_t end = ctl_journal_end (house->journal);
  if (json_object_set_new (reply->body, "segment", json_integer (position->segment)) < 0 ||
      json_object_set_new (reply->body, "offset", json_integer ((json_int_t) position->offset)) < 0 ||
      json_object_set_new (reply->body, "end_segment", json_integer (end.segment)) < 0 ||
      json_object_set_new (reply->body, "end_offset", json_integer ((json_int_t) end.offset)) < 0 ||
      json_object_set_new (reply->body, "gaps", json_integer (gaps)) < 0)
    return WEFT_E_NOMEM;
  return 0;
}

static int pack_hello (const ctl_instance_t *instance, void **ret_data, size_t *ret_size)
{
  weft_up_message_t hello = {.kind = WEFT_UP_HELLO, .pid = instance->pid, .replayed = instance->replayed};
  memcpy (hello.instance, instance->uuid, sizeof hello.instance);
  memcpy (hello.start, instance->start, sizeof hello.start);
  memcpy (hello.boot, instance->boot, sizeof hello.boot);
  strncpy (hello.vm, instance->vm, sizeof hello.vm - 1);
  strncpy (hello.version, instance->version, sizeof hello.version - 1);
  strncpy (hello.service, instance->service, sizeof hello.service - 1);
  strncpy (hello.host, instance->host, sizeof hello.host - 1);
  strncpy (hello.listens, instance->listens, sizeof hello.listens - 1);
  return weft_up_pack (&hello, ret_data, ret_size);
}

/* They said hello long ago, maybe in a segment that is gone; what they send from now on is theirs. */
static int add_hellos (ctl_house_t *house, ctl_reply_t *reply)
{
  int rc = 0;
  for (uint32_t n = 0; rc == 0 && n < ctl_instances_count (house->instances); n++) {
    const ctl_instance_t *instance = ctl_instances_at (house->instances, n);
    if (instance->presence == CTL_INSTANCE_LEFT && !instance->replayed)
      continue;
    void *frame = NULL, *record = NULL;
    size_t size = 0;
    rc = pack_hello (instance, &frame, &size);
    if (rc == 0 && !(record = malloc (ctl_record_total (size))))
      rc = WEFT_E_NOMEM;
    if (rc == 0) {
      ctl_record_put (record, frame, size);
      rc = ctl_reply_frame (reply, record, ctl_record_total (size));
    }
    free (frame);
  }
  return rc;
}

int ctl_journal_answer (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  const json_t *segment = json_object_get (request, "segment"), *offset = json_object_get (request, "offset");
  if (!house->journal)
    return ctl_reply_refuse (reply, WEFT_E_STATE, "this controller keeps no journal");
  if (!segment && !offset) {
    ctl_journal_position_t end = ctl_journal_end (house->journal);
    int rc = set_position (house, reply, &end, 0);
    return rc < 0 ? rc : add_hellos (house, reply);
  }
  json_int_t s = json_integer_value (segment), o = json_integer_value (offset);
  if (s < 0 || s > UINT32_MAX || o < 0)
    return ctl_reply_refuse (reply, WEFT_E_RANGE, "a position is a segment and an offset in it");
  ctl_journal_position_t position = {(uint32_t) s, (uint64_t) o};
  void *records = malloc (WEFT_RECORD_CHUNK_MAX);
  size_t size = 0;
  uint32_t gaps = 0;
  if (!records)
    return WEFT_E_NOMEM;
  int rc = ctl_journal_copy (house->journal, &position, records, WEFT_RECORD_CHUNK_MAX, &size, &gaps);
  if (rc < 0 || size == 0)
    free (records);
  if (rc < 0)
    return ctl_reply_refuse (reply, rc, "the journal could not be read: %s", weft_status_text (rc));
  if (size)
    rc = ctl_reply_frame (reply, records, size);
  return rc < 0 ? rc : set_position (house, reply, &position, gaps);
}
