/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include "../../../common/batch.h"
#include "../../../common/cursor.h"
#include "../../../common/status.h"
#include "../../../common/wire.h"

typedef struct {
  weft_batch_writer_t *writer;
  uint8_t frame[WEFT_BATCH_MAX];
  size_t size;
} fixture_t;

static const weft_batch_head_t head = {
    .instance = {1, 2, 3},
    .start = {4, 5, 6},
    .boot = {7, 8, 9},
    .number = 41,
    .anchor = {1000, 1700000000000000000ull},
    .from_ns = 500,
    .to_ns = 900,
    .losses = {1, 2, 3, 4, 5, 6, 7, 0xffffffffffull},
};

static weft_report_t make_report (weft_report_kind_t kind, const char *name)
{
  weft_report_t report;
  memset (&report, 0, sizeof (report));
  report.kind = (uint8_t) kind;
  report.error = WEFT_ERROR_RESET;
  report.reason = WEFT_REASON_EVENT_LOOP;
  report.status = 503;
  report.flags = WEFT_REPORT_ORPHAN | 0x80000000u;
  report.instruction = 0x01020304;
  report.tid = 4711;
  memcpy (report.task, "0123456789abcdef", 16);
  report.request = 0xfedcba9876543210ull;
  report.subtask = 1;
  report.start_ns = 600;
  report.end_ns = 700;
  report.cpu_ns = kind == WEFT_REPORT_CAPTURE ? 42 : WEFT_NS_NONE;
  report.local = (weft_address_t){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 5}, 5432, 4, 0};
  report.peer = (weft_address_t){{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 65535, 6, 0};
  report.name = name;
  report.name_size = (uint16_t) strlen (name);
  return report;
}

static void assert_same (const weft_report_t *a, const weft_report_t *b)
{
  weft_report_t x = *a, y = *b;
  assert_int_equal (x.name_size, y.name_size);
  assert_memory_equal (x.name, y.name, x.name_size);
  /* Field by field: what lies between them is nobody's. */
#define SAME(field) assert_memory_equal (&x.field, &y.field, sizeof (x.field))
  SAME (kind);
  SAME (error);
  SAME (reason);
  SAME (status);
  SAME (flags);
  SAME (instruction);
  SAME (tid);
  SAME (task);
  SAME (request);
  SAME (subtask);
  SAME (start_ns);
  SAME (end_ns);
  SAME (cpu_ns);
  SAME (local);
  SAME (peer);
#undef SAME
}

static void write_batch (fixture_t *f, const weft_report_t *reports, size_t count)
{
  assert_int_equal (weft_batch_writer_begin (f->writer, f->frame, sizeof (f->frame), &head), 0);
  for (size_t i = 0; i < count; i++)
    assert_int_equal (weft_batch_writer_add (f->writer, &reports[i]), 0);
  assert_int_equal (weft_batch_writer_finish (f->writer, &head, &f->size), 0);
}

static void round_trip (void **state)
{
  fixture_t *f = *state;
  weft_report_t in[5], out;
  weft_batch_reader_t reader;
  in[0] = make_report (WEFT_REPORT_CAPTURE, "GET /orders/{id}");
  in[1] = make_report (WEFT_REPORT_EMBED, "GET /quote/{id}");
  in[2] = make_report (WEFT_REPORT_CAPTURE, "GET /orders/{id}");
  in[3] = make_report (WEFT_REPORT_BARE, "");
  memset (&in[3].local, 0, sizeof (in[3].local)); /* unknown: the general walk */
  in[4] = make_report (WEFT_REPORT_CAPTURE, "GET /quote/{id}");
  in[4].peer = (weft_address_t){{0}, 0, 1, 0};
  write_batch (f, in, 5);

  assert_int_equal (weft_batch_reader_begin (&reader, f->frame, f->size), 0);
  assert_int_equal (reader.head.major, WEFT_WIRE_MAJOR);
  assert_int_equal (reader.head.minor, WEFT_WIRE_MINOR);
  assert_memory_equal (reader.head.instance, head.instance, 16);
  assert_memory_equal (reader.head.start, head.start, 16);
  assert_memory_equal (reader.head.boot, head.boot, 16);
  assert_int_equal (reader.head.number, 41);
  assert_memory_equal (&reader.head.anchor, &head.anchor, sizeof (head.anchor));
  assert_int_equal (reader.head.from_ns, 500);
  assert_int_equal (reader.head.to_ns, 900);
  assert_int_equal (reader.head.reports, 5);
  assert_memory_equal (reader.head.losses, head.losses, sizeof (head.losses));
  for (int i = 0; i < 5; i++) {
    assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
    assert_same (&out, &in[i]);
  }
  assert_int_equal (weft_batch_reader_next (&reader, &out), 0);
  assert_int_equal (weft_batch_reader_next (&reader, &out), 0);
  assert_int_equal (reader.strings, 3);
  assert_int_equal (reader.skipped, 0);
}

/* The bytes that PROTOCOL.md draws, at the offsets that it names. */
static void layout_as_drawn (void **state)
{
  fixture_t *f = *state;
  const uint8_t *b = f->frame;
  weft_report_t in = make_report (WEFT_REPORT_CAPTURE, "GET /a");
  write_batch (f, &in, 1);
  assert_memory_equal (b, "\x9d\x01\x01\x04\xc4\x10\x01\x02\x03", 9);
  assert_memory_equal (b + 22, "\xc4\x10\x04", 3);
  assert_memory_equal (b + 40, "\xc4\x10\x07", 3);
  assert_memory_equal (b + 58, "\xcf\0\0\0\0\0\0\0\x29\x92\xcf\0\0\0\0\0\0\x03\xe8\xcf", 20);
  assert_memory_equal (b + 86, "\xcf\0\0\0\0\0\0\x01\xf4\xcf\0\0\0\0\0\0\x03\x84\xce\0\0\0\x01\x98\xcf", 25);
  assert_memory_equal (b + 173, "\xcf\0\0\0\xff\xff\xff\xff\xff\xdd\0\0\0\x02", 14);
  assert_memory_equal (b + 187, "\x92\x00\xd9\x06GET /a", 10);
  b += 197;
  assert_memory_equal (b, "\xdc\x00\x10\x01\xce\x80\x00\x00\x02\x03\x03\xcd\x01\xf7\xce\x01\x02\x03\x04\xce",
                       20);
  assert_memory_equal (b + 24,
                       "\xc4\x10"
                       "0123456789abcdef\xcf\xfe\xdc",
                       21);
  assert_memory_equal (b + 78, "\xcf\0\0\0\0\0\0\0\x2a\xc4\x13\x04\x15\x38\0\0", 16);
  assert_memory_equal (b + 108, "\xc4\x13\x06\xff\xff\xfe\x80", 7);
  assert_memory_equal (b + 129, "\xcd\0\0", 3);
  assert_int_equal (f->size, 197 + 132);
}

static void full_by_bytes (void **state)
{
  fixture_t *f = *state;
  weft_report_t report = make_report (WEFT_REPORT_CAPTURE, "x"), out;
  weft_batch_reader_t reader;
  /* head 187, string 5, reports of 132: the rest holds exactly (65536 - 192) / 132 = 495 */
  assert_int_equal (weft_batch_writer_begin (f->writer, f->frame, 100000, &head), 0);
  for (int i = 0; i < 495; i++)
    assert_int_equal (weft_batch_writer_add (f->writer, &report), 0);
  assert_int_equal (weft_batch_writer_add (f->writer, &report), WEFT_E_FULL);
  assert_int_equal (weft_batch_writer_count (f->writer), 495);
  assert_int_equal (weft_batch_writer_finish (f->writer, &head, &f->size), 0);
  assert_int_equal (f->size, 192 + 495 * 132);
  assert_int_equal (weft_batch_reader_begin (&reader, f->frame, f->size), 0);
  for (int i = 0; i < 495; i++)
    assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
  assert_int_equal (weft_batch_reader_next (&reader, &out), 0);
}

static void begin_and_finish_have_an_order (void **state)
{
  fixture_t *f = *state;
  weft_report_t report = make_report (WEFT_REPORT_CAPTURE, "x");
  size_t size = 99;
  assert_int_equal (weft_batch_writer_add (f->writer, &report), WEFT_E_STATE);
  assert_int_equal (weft_batch_writer_finish (f->writer, &head, &size), WEFT_E_STATE);
  assert_int_equal (weft_batch_writer_begin (f->writer, f->frame, 200, &head), WEFT_E_RANGE);
  assert_int_equal (size, 99);
  assert_int_equal (weft_batch_writer_begin (f->writer, f->frame, sizeof (f->frame), &head), 0);
  report.kind = 5;
  assert_int_equal (weft_batch_writer_add (f->writer, &report), WEFT_E_RANGE);
  report.kind = WEFT_REPORT_EMBED;
  report.error = 200;
  assert_int_equal (weft_batch_writer_add (f->writer, &report), WEFT_E_RANGE);
  assert_int_equal (weft_batch_writer_count (f->writer), 0);
}

static void long_names_are_cut_and_flagged (void **state)
{
  fixture_t *f = *state;
  char name[WEFT_NAME_MAX + 2];
  weft_batch_reader_t reader;
  weft_report_t in, out;
  memset (name, 'n', sizeof (name) - 1);
  name[sizeof (name) - 1] = 0;
  in = make_report (WEFT_REPORT_CAPTURE, name);
  write_batch (f, &in, 1);
  assert_int_equal (weft_batch_reader_begin (&reader, f->frame, f->size), 0);
  assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
  assert_int_equal (out.name_size, WEFT_NAME_MAX);
  assert_true (out.flags & WEFT_REPORT_CUT);
}

/* 1,000 names in 64 KiB batches: the table of strings collides and starts anew. */
static void many_names (void **state)
{
  fixture_t *f = *state;
  int written = 0, read = 0;
  while (written < 1000) {
    weft_batch_reader_t reader;
    weft_report_t out;
    assert_int_equal (weft_batch_writer_begin (f->writer, f->frame, sizeof (f->frame), &head), 0);
    for (; written < 1000; written++) {
      char name[32];
      snprintf (name, sizeof (name), "GET /%d", written / 2);
      weft_report_t in = make_report (WEFT_REPORT_EMBED, name);
      in.request = (uint64_t) written;
      if (weft_batch_writer_add (f->writer, &in) == WEFT_E_FULL)
        break;
    }
    assert_int_equal (weft_batch_writer_finish (f->writer, &head, &f->size), 0);
    assert_int_equal (weft_batch_reader_begin (&reader, f->frame, f->size), 0);
    for (; weft_batch_reader_next (&reader, &out) > 0; read++) {
      char name[32];
      int size = snprintf (name, sizeof (name), "GET /%d", read / 2);
      assert_int_equal (out.request, read);
      assert_int_equal (out.name_size, size);
      assert_memory_equal (out.name, name, (size_t) size);
    }
    assert_int_equal (read, written);
  }
}

/* ---- other legal encodings, newer versions ------------------------------- */
typedef struct {
  uint8_t bytes[1024];
  size_t size;
} raw_t;

static void put (raw_t *raw, const char *bytes, size_t size)
{
  memcpy (raw->bytes + raw->size, bytes, size);
  raw->size += size;
}
#define PUT(raw, text) put (raw, text, sizeof (text) - 1)
#define ID                                                                                                   \
  "\xc4\x10"                                                                                                 \
  "iiiiiiiiiiiiiiii"

/* The smallest encodings; `minor` is one byte, `fields` and `entries` array headers. */
static void put_head (raw_t *raw, const char *fields, const char *version, const char *losses,
                      size_t losses_size, const char *entries)
{
  raw->size = 0;
  put (raw, fields, 1);
  put (raw, version, 2);
  PUT (raw, "\x04" ID ID ID "\x01\x92\x02\x03\x04\x05\x01");
  put (raw, losses, losses_size);
  put (raw, entries, 1);
}
#define NO_LOSSES    "\x98\0\0\0\0\0\0\0\0", 9
#define SMALL_FIELDS "\x02\x01\x00\xcc\xc8\x05\x06" ID "\x07\x08\x09\x0a"

static void smaller_encodings (void **state)
{
  weft_batch_reader_t reader;
  weft_report_t out;
  raw_t raw;
  put_head (&raw, "\x9d", "\x01\x00", NO_LOSSES, "\x92");
  PUT (&raw, "\x92\x00\xa1n");
  PUT (&raw, "\xdc\x00\x10\x01" SMALL_FIELDS "\x0b\xc0\xc4\x00\x00");
  assert_int_equal (weft_batch_reader_begin (&reader, raw.bytes, raw.size), 0);
  assert_int_equal (reader.head.number, 1);
  assert_int_equal (reader.head.anchor.real_ns, 3);
  assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
  assert_int_equal (out.flags, 2);
  assert_int_equal (out.reason, 1);
  assert_int_equal (out.status, 200);
  assert_int_equal (out.instruction, 5);
  assert_int_equal (out.tid, 6);
  assert_int_equal (out.request, 7);
  assert_int_equal (out.end_ns, 10);
  assert_int_equal (out.cpu_ns, 11);
  assert_int_equal (out.local.family, 0);
  assert_int_equal (out.name[0], 'n');
  assert_int_equal (weft_batch_reader_next (&reader, &out), 0);
}

static void newer_minor_is_skipped_and_counted (void **state)
{
  weft_batch_reader_t reader;
  weft_report_t out;
  raw_t raw;
  /* a field more in the frame, two losses more, an unknown entry kind, a longer
   * report with an unknown reason and error, a longer string */
  put_head (&raw, "\x9e", "\x01\x07", "\x9a\1\0\0\0\0\2\0\0\3\4", 11, "\x93");
  PUT (&raw, "\x93\x00\xa1n\x81\x01\x92\x02\x03");
  PUT (&raw, "\x93\x40\x81\xa1k\x93\x01\xc3\xca\0\0\0\0\xc7\x02\x05zz");
  PUT (&raw, "\xdc\x00\x12\x03\x00\x70\x71\x00\x00\x00" ID "\0\0\0\0\xc0\xc0\xc0\x00\xa3xyz\x90");
  PUT (&raw, "\xd6\x01zzzz");
  assert_int_equal (weft_batch_reader_begin (&reader, raw.bytes, raw.size), 0);
  assert_int_equal (reader.head.minor, 7);
  assert_int_equal (reader.head.losses[WEFT_LOSS_RING_FULL], 1);
  assert_int_equal (reader.head.losses[WEFT_LOSS_VERSION], 2 + 3 + 4);
  assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
  assert_int_equal (out.kind, WEFT_REPORT_BARE);
  assert_int_equal (out.reason, WEFT_REASON_NONE);
  assert_int_equal (out.error, WEFT_ERROR_CLOSED);
  assert_true (out.cpu_ns == WEFT_NS_NONE);
  assert_int_equal (weft_batch_reader_next (&reader, &out), 0);
  /* string field, entry kind, error, reason, two report fields, frame field */
  assert_int_equal (reader.skipped, 7);
}

/* Every number that report.h names arrives as it was sent; the next one does not. */
static void numbers_of_this_version (void **state)
{
  fixture_t *f = *state;
#define XX(number, name, text) number,
  static const uint8_t errors[] = { WEFT_ERROR_MAP (XX) }, reasons[] = { WEFT_REASON_MAP (XX) };
#undef XX
  for (unsigned i = 0; i <= sizeof (reasons); i++) {
    weft_report_t in = make_report (WEFT_REPORT_BARE, "x"), out;
    weft_batch_reader_t reader;
    in.reason = (uint8_t) i;
    in.error = (uint8_t) (i % sizeof (errors));
    write_batch (f, &in, 1);
    assert_int_equal (weft_batch_reader_begin (&reader, f->frame, f->size), 0);
    assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
    assert_int_equal (out.reason, i < sizeof (reasons) ? reasons[i] : WEFT_REASON_NONE);
    assert_int_equal (out.error, in.error);
    assert_int_equal (reader.skipped, i < sizeof (reasons) ? 0 : 1);
  }
}

static void versions (void **state)
{
  weft_batch_reader_t reader;
  raw_t raw;
  put_head (&raw, "\x9d", "\x02\x00", NO_LOSSES, "\x90");
  assert_int_equal (weft_batch_reader_begin (&reader, raw.bytes, raw.size), WEFT_E_VERSION);
  put_head (&raw, "\x9d", "\x00\x00", NO_LOSSES, "\x90");
  assert_int_equal (weft_batch_reader_begin (&reader, raw.bytes, raw.size), WEFT_E_MALFORMED);
  /* of a newer major nothing but the version is looked at */
  assert_int_equal (weft_batch_reader_begin (&reader, "\x93\xcd\x01\x00\x00\xc1", 6), WEFT_E_VERSION);
}

static void malformed_entries (void **state)
{
  static const struct {
    const char *bytes;
    size_t size;
  } row[] = {
#define ROW(text) {text, sizeof (text) - 1}
      ROW (""),                                                 /* announced, not there */
      ROW ("\xc0"),                                             /* no array */
      ROW ("\x90"),                                             /* no kind */
      ROW ("\x91\xff"),                                         /* negative kind */
      ROW ("\x91\x00"),                                         /* string without text */
      ROW ("\x92\x00\xc4\x01n"),                                /* binary for text */
      ROW ("\xdc\x00\x10\x01" SMALL_FIELDS "\xc0\xc0\xc0\x00"), /* index not defined (B3) */
      ROW ("\xdf\x01" SMALL_FIELDS "\xc0\xc0\xc0\x00"),         /* a map */
      ROW ("\x9f\x01" SMALL_FIELDS "\xc0\xc0\xc0"),             /* a field too few */
      ROW ("\x92\x04\xdd\xff\xff\xff\xff"),                     /* a count that nothing bears out */
      ROW ("\x92\x04\xc6\xff\xff\xff\xff"),                     /* a size the same */
      ROW ("\x92\x04\xc1"),                                     /* the tag that is never used */
#undef ROW
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    weft_batch_reader_t reader;
    weft_report_t out, untouched;
    raw_t raw;
    memset (&out, 0x5a, sizeof (out));
    untouched = out;
    put_head (&raw, "\x9d", "\x01\x00", NO_LOSSES, "\x91");
    put (&raw, row[i].bytes, row[i].size);
    assert_int_equal (weft_batch_reader_begin (&reader, raw.bytes, raw.size), 0);
    if (weft_batch_reader_next (&reader, &out) != WEFT_E_MALFORMED)
      fail_msg ("row %zu accepted", i);
    assert_int_equal (reader.entries_left, 1);
    assert_int_equal (weft_batch_reader_next (&reader, &out), WEFT_E_MALFORMED);
    assert_memory_equal (&out, &untouched, sizeof (out));
  }
}

static void bytes_after_the_end (void **state)
{
  weft_batch_reader_t reader;
  weft_report_t out;
  raw_t raw;
  put_head (&raw, "\x9d", "\x01\x00", NO_LOSSES, "\x90");
  PUT (&raw, "\xc0");
  assert_int_equal (weft_batch_reader_begin (&reader, raw.bytes, raw.size), 0);
  assert_int_equal (weft_batch_reader_next (&reader, &out), WEFT_E_MALFORMED);
}

/* ---- hostile bytes: the frame ends where the allocation ends -------------- */
/* Reads all of it and every byte of every name. */
static unsigned read_all (const uint8_t *bytes, size_t size)
{
  weft_batch_reader_t *reader = malloc (sizeof (*reader));
  uint8_t *exact = malloc (size ? size : 1);
  weft_report_t out;
  unsigned sum = 0;
  memcpy (exact, bytes, size);
  if (weft_batch_reader_begin (reader, exact, size) == 0) {
    unsigned turns = 0;
    while (weft_batch_reader_next (reader, &out) > 0) {
      assert_true (++turns <= size);
      assert_in_range (out.kind, WEFT_REPORT_CAPTURE, WEFT_REPORT_OPAQUE);
      assert_in_range (out.error, 0, WEFT_ERROR_CLOSED);
      assert_in_range (out.reason, 0, 63);
      for (unsigned i = 0; i < out.name_size; i++)
        sum += (uint8_t) out.name[i];
      sum++;
    }
    assert_true (reader->at <= reader->end);
  }
  free (exact);
  free (reader);
  return sum;
}

static void write_sample (fixture_t *f)
{
  weft_report_t in[4];
  in[0] = make_report (WEFT_REPORT_CAPTURE, "GET /a");
  in[1] = make_report (WEFT_REPORT_EMBED, "GET /b");
  in[2] = make_report (WEFT_REPORT_BARE, "");
  memset (&in[2].peer, 0, sizeof (in[2].peer));
  in[3] = make_report (WEFT_REPORT_CAPTURE, "GET /b");
  write_batch (f, in, 4);
}

static void every_truncation (void **state)
{
  fixture_t *f = *state;
  write_sample (f);
  for (size_t size = 0; size < f->size; size++) {
    weft_batch_reader_t reader;
    weft_report_t out;
    int status = weft_batch_reader_begin (&reader, f->frame, size);
    if (size < 187)
      assert_int_equal (status, WEFT_E_MALFORMED);
    while (status == 0 && (status = weft_batch_reader_next (&reader, &out)) > 0)
      status = 0;
    assert_int_equal (status, WEFT_E_MALFORMED);
    read_all (f->frame, size);
  }
}

static void every_byte_changed (void **state)
{
  fixture_t *f = *state;
  write_sample (f);
  for (size_t at = 0; at < f->size; at++) {
    uint8_t kept = f->frame[at];
    for (unsigned value = 0; value < 256; value++) {
      f->frame[at] = (uint8_t) value;
      read_all (f->frame, f->size);
    }
    f->frame[at] = kept;
  }
}

static void drawn_bytes (void **state)
{
  static const uint8_t tags[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x10, 0x90, 0x91, 0x9f, 0x81, 0x8f, 0xa0,
                                 0xbf, 0xc0, 0xc1, 0xc4, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcc, 0xcd, 0xce,
                                 0xcf, 0xd0, 0xd3, 0xd4, 0xd8, 0xd9, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xff};
  fixture_t *f = *state;
  uint64_t seed = 88172645463325252ull;
  write_sample (f);
  for (int round = 0; round < 20000; round++) {
    uint8_t bytes[400];
    size_t size = 187 + (size_t) (seed >> 8) % 200;
    memcpy (bytes, f->frame, 187);
    bytes[185] = (uint8_t) (seed >> 40);
    for (size_t i = 187; i < size; i++) {
      seed ^= seed << 13;
      seed ^= seed >> 7;
      seed ^= seed << 17;
      bytes[i] = (seed & 1) ? tags[(seed >> 16) % sizeof (tags)] : (uint8_t) (seed >> 32);
    }
    read_all (bytes, size);
    read_all (bytes + 187, size - 187);
  }
}

static void skip_takes_any_depth (void **state)
{
  uint8_t *deep = malloc (WEFT_FRAME_MAX);
  memset (deep, 0x91, WEFT_FRAME_MAX);
  weft_cursor_t c = {deep, deep + WEFT_FRAME_MAX};
  assert_int_equal (weft_cursor_skip (&c), WEFT_E_MALFORMED);
  deep[WEFT_FRAME_MAX - 1] = 0xc0;
  c.at = deep;
  assert_int_equal (weft_cursor_skip (&c), 0);
  assert_ptr_equal (c.at, c.end);
  free (deep);
}

static int setup (void **state)
{
  fixture_t *f = calloc (1, sizeof (*f));
  f->writer = weft_batch_writer_new ();
  *state = f;
  return f->writer ? 0 : -1;
}

static int teardown (void **state)
{
  fixture_t *f = *state;
  weft_batch_writer_destroy (&f->writer);
  weft_batch_writer_destroy (&f->writer);
  free (f);
  return 0;
}

int main (void)
{
#define CASE(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE (round_trip),
      CASE (layout_as_drawn),
      CASE (full_by_bytes),
      CASE (begin_and_finish_have_an_order),
      CASE (long_names_are_cut_and_flagged),
      CASE (many_names),
      CASE (smaller_encodings),
      CASE (newer_minor_is_skipped_and_counted),
      CASE (numbers_of_this_version),
      CASE (versions),
      CASE (malformed_entries),
      CASE (bytes_after_the_end),
      CASE (every_truncation),
      CASE (every_byte_changed),
      CASE (drawn_bytes),
      CASE (skip_takes_any_depth),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
