/* SPDX-License-Identifier: Apache-2.0 */
/* weft record: copies what comes in into a file that `weft replay` reads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/batch.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../../common/wire.h"
#include "../service/journal.h"
#include "../service/recording.h"
#include "../view/json.h"
#include "client.h"
#include "orders.h"
#include "progress.h"
#include "verbs.h"
#include "window.h"

typedef struct {
  const char *path;
  ctl_recording_writer_t *writer;
  uint64_t records, batches, reports;
  uint64_t gaps; /* places where the journal itself misses records */
  size_t taken;  /* bytes of the last answer */
  ctl_progress_t progress;
} record_t;

static void note_frame (record_t *self, const void *frame, size_t size)
{
  weft_up_kind_t kind;
  weft_batch_reader_t reader;
  self->records++;
  if (weft_up_kind (frame, size, &kind) < 0 || kind != WEFT_UP_BATCH ||
      weft_batch_reader_begin (&reader, frame, size) < 0)
    return;
  self->batches++;
  self->reports += reader.head.reports;
}

static void say_progress (record_t *self)
{
  ctl_progress_say (
      &self->progress, "recording: %llu reports, %.1f MiB, %.0f s", (unsigned long long) self->reports,
      (double) ctl_recording_bytes (self->writer) / (1 << 20), ctl_progress_seconds (&self->progress));
}

static int complain (record_t *self, int rc)
{
  int number = errno;
  ctl_progress_wipe (&self->progress);
  weft_log_error ("cannot write %s: %s; what is in it can be replayed", self->path,
                  rc == WEFT_E_FULL ? "no room on the disk" : strerror (number));
  return rc;
}

/* Records as the controller read them: one that is not sound is left out, not copied. */
static int take_records (const void *data, size_t size, void *arg)
{
  record_t *self = arg;
  const uint8_t *at = data, *end = at + size;
  self->taken += size;
  while (at < end) {
    const void *frame;
    size_t frame_size;
    size_t whole = ctl_record_whole (at, (size_t) (end - at), 0);
    if (whole == 0)
      return WEFT_E_MALFORMED;
    const uint8_t *until = at + whole;
    for (; at < until && ctl_record_read (at, (size_t) (until - at), 0, &frame, &frame_size) == 0;
         at += ctl_record_total (frame_size)) {
      note_frame (self, frame, frame_size);
      int rc = ctl_recording_frame (self->writer, frame, frame_size);
      if (rc < 0)
        return complain (self, rc);
    }
    if (at < until) {
      self->gaps++;
      ctl_record_t head;
      memcpy (&head, at, sizeof head);
      at += ctl_record_total (head.size);
    }
  }
  return 0;
}

static ctl_journal_position_t position_in (const json_t *reply, const char *segment, const char *offset)
{
  return (ctl_journal_position_t){(uint32_t) json_integer_value (json_object_get (reply, segment)),
                                  (uint64_t) json_integer_value (json_object_get (reply, offset))};
}

/* One question; *position moves on. */
static int ask (record_t *self, ctl_client_t *client, json_t *request, ctl_journal_position_t *position,
                ctl_journal_position_t *ret_end)
{
  json_t *reply = NULL;
  self->taken = 0;
  int rc = ctl_client_ask (client, request, take_records, self, &reply);
  if (rc == 0) {
    *position = position_in (reply, "segment", "offset");
    *ret_end = position_in (reply, "end_segment", "end_offset");
    self->gaps += (uint64_t) json_integer_value (json_object_get (reply, "gaps"));
  }
  json_decref (reply);
  return rc;
}

static int is_before (const ctl_journal_position_t *a, const ctl_journal_position_t *b)
{
  return a->segment != b->segment ? a->segment < b->segment : a->offset < b->offset;
}

/* Until the time is over or somebody has enough, and then what has come in until that moment. */
static int follow (record_t *self, ctl_client_t *client, uint64_t for_ms, int from_start)
{
  ctl_journal_position_t at = {0, 0}, end = {0, 0}, stop = {0, 0};
  uint64_t end_ns = for_ms ? weft_mono_ns () + for_ms * WEFT_NS_PER_MS : UINT64_MAX;
  int rc = from_start ? 0 : ask (self, client, json_pack ("{s:s}", "op", "journal"), &at, &end);
  if (rc == 0)
    weft_log_error ("recording to %s%s", self->path, for_ms ? "" : "; Ctrl-C ends it");
  for (int ending = 0; rc == 0 && !ctl_window_at_once;) {
    int enough = ctl_window_enough || weft_mono_ns () >= end_ns;
    rc = ask (self, client,
              json_pack ("{s:s, s:I, s:I}", "op", "journal", "segment", (json_int_t) at.segment, "offset",
                         (json_int_t) at.offset),
              &at, &end);
    if (enough && !ending)
      stop = end;
    ending |= enough;
    say_progress (self);
    if (ending && (self->taken == 0 || !is_before (&at, &stop)))
      break;
    if (rc == 0 && self->taken == 0)
      ctl_pause_ms (WEFT_RECORD_POLL_MS);
  }
  return rc;
}

static int copy_directory (record_t *self, const char *dir)
{
  ctl_journal_reader_t *reader = NULL;
  int rc = ctl_journal_reader_open (dir, 0, &reader);
  if (rc < 0) {
    weft_log_error ("cannot read the journal %s: %s; a journal is a directory of .weftj files", dir,
                    rc == WEFT_E_IO ? strerror (errno) : weft_status_text (rc));
    return rc;
  }
  for (;;) {
    const void *frame;
    size_t size;
    ctl_journal_position_t position;
    rc = ctl_journal_reader_next (reader, &frame, &size, &position);
    if (rc == 0)
      break;
    if (rc < 0) {
      self->gaps++;
      continue;
    }
    note_frame (self, frame, size);
    say_progress (self);
    rc = ctl_recording_frame (self->writer, frame, size);
    if (rc < 0) {
      complain (self, rc);
      break;
    }
  }
  ctl_journal_reader_close (&reader);
  return rc;
}

static int print (const ctl_call_t *call, const record_t *self, uint64_t bytes, double seconds)
{
  if (ctl_call_has (call, "json"))
    return ctl_json_line (stdout,
                          json_pack ("{s:s, s:I, s:I, s:I, s:I, s:I, s:f}", "file", self->path, "records",
                                     (json_int_t) self->records, "batches", (json_int_t) self->batches,
                                     "reports", (json_int_t) self->reports, "bytes", (json_int_t) bytes,
                                     "gaps", (json_int_t) self->gaps, "seconds", seconds));
  printf ("recorded %llu reports in %llu batches, %.1f KiB in %.1f s → %s\n",
          (unsigned long long) self->reports, (unsigned long long) self->batches, (double) bytes / 1024,
          seconds, self->path);
  if (self->gaps)
    printf ("the journal misses records at %llu places: torn by a crash, or removed before they were read\n",
            (unsigned long long) self->gaps);
  return 0;
}

static int run (const ctl_call_t *call, record_t *self, ctl_client_t *client, uint64_t for_ms)
{
  const char *dir = ctl_call_value (call, "journal", NULL);
  int rc = ctl_recording_create (self->path, &self->writer);
  if (rc < 0) {
    weft_log_error ("cannot record to %s: %s; choose another name", self->path,
                    rc == WEFT_E_IO ? strerror (errno) : "it is there already");
    return rc;
  }
  ctl_window_signals ();
  ctl_progress_begin (&self->progress);
  rc = dir ? copy_directory (self, dir) : follow (self, client, for_ms, ctl_call_has (call, "all"));
  uint64_t bytes = ctl_recording_bytes (self->writer);
  ctl_progress_wipe (&self->progress);
  int finished = ctl_recording_finish (&self->writer);
  if (finished < 0 && rc == 0)
    rc = complain (self, finished);
  int printed = print (call, self, bytes, ctl_progress_seconds (&self->progress));
  return rc < 0 ? rc : printed;
}

int ctl_verb_record (ctl_call_t *call)
{
  record_t self = {.path = call->operands[0]};
  ctl_client_t *client = NULL;
  uint64_t for_ms = 0;
  if (ctl_call_duration (call, "for", WEFT_FOR_MAX_MS, 0, &for_ms) < 0)
    return CTL_EXIT_USAGE;
  if (ctl_call_has (call, "journal") && (ctl_call_has (call, "all") || for_ms)) {
    weft_log_error ("--journal reads a directory from its beginning to its end; leave --all and --for away");
    return CTL_EXIT_USAGE;
  }
  if (!ctl_call_has (call, "journal") && ctl_client_open (call->address, CTL_CLIENT_EXISTING, &client) < 0)
    return CTL_EXIT_FAILED;
  int rc = run (call, &self, client, for_ms);
  ctl_client_close (&client);
  return rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
