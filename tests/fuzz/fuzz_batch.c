/* SPDX-License-Identifier: Apache-2.0 */
/* A batch from a stranger: read to its end or its first fault; what was read can
 * be written, read again, and is the same. */
#include "../../common/batch.h"
#include "fuzz.h"

#define REPORTS_MAX 65536u /* an entry has a byte at least: more than a frame can hold is endless */

static weft_batch_reader_t reader, again;
static uint8_t buffer[WEFT_BATCH_MAX];

static void same (const weft_report_t *a, const weft_report_t *b)
{
  FUZZ_MUST (a->kind == b->kind && a->flags == b->flags && a->status == b->status && a->tid == b->tid);
  FUZZ_MUST (memcmp (a->task, b->task, sizeof a->task) == 0);
  FUZZ_MUST (a->request == b->request && a->subtask == b->subtask && a->cpu_ns == b->cpu_ns);
  FUZZ_MUST (a->start_ns == b->start_ns && a->end_ns == b->end_ns);
  FUZZ_MUST (a->name_size == b->name_size && memcmp (a->name, b->name, a->name_size) == 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static weft_batch_writer_t *writer;
  weft_report_t report, copy;
  uint32_t reports = 0, written = 0;
  size_t written_size = 0;
  if (!writer)
    writer = weft_batch_writer_new ();
  if (!writer || weft_batch_reader_begin (&reader, data, size) < 0)
    return 0;
  weft_batch_head_t head = reader.head;
  head.major = 1;
  head.minor = 0;
  int writing = weft_batch_writer_begin (writer, buffer, sizeof buffer, &head) == 0;
  while (weft_batch_reader_next (&reader, &report) == 1) {
    FUZZ_MUST (++reports <= REPORTS_MAX);
    FUZZ_MUST ((const uint8_t *) report.name >= data &&
               (const uint8_t *) report.name + report.name_size <= data + size);
    writing = writing && weft_batch_writer_add (writer, &report) == 0;
    written += (uint32_t) writing;
  }
  head.reports = written;
  if (weft_batch_writer_finish (writer, &head, &written_size) < 0)
    return 0;
  FUZZ_MUST (weft_batch_reader_begin (&again, buffer, written_size) == 0);
  weft_batch_reader_begin (&reader, data, size);
  for (uint32_t i = 0; i < written; i++) {
    FUZZ_MUST (weft_batch_reader_next (&again, &copy) == 1);
    FUZZ_MUST (weft_batch_reader_next (&reader, &report) == 1);
    same (&report, &copy);
  }
  FUZZ_MUST (weft_batch_reader_next (&again, &copy) == 0);
  return 0;
}
