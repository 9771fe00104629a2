/* SPDX-License-Identifier: Apache-2.0 */
/* A segment of a journal that somebody damaged: reading ends, never goes back,
 * and what is appended after it is read whole. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../controller/service/journal.h"
#include "fuzz.h"

static char directory[] = "/tmp/weft-fuzz-journal-XXXXXX";
static const char *const names[] = {"00000001.weftj", "00000002.weftj", "00000003.weftj", "checkpoint",
                                    "number"};

static void remove_all (void)
{
  char path[96];
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    snprintf (path, sizeof path, "%s/%s", directory, names[n]);
    unlink (path);
  }
}

static void remove_directory (void)
{
  remove_all ();
  rmdir (directory);
}

static void put_file (const char *name, const void *data, size_t size)
{
  char path[96];
  snprintf (path, sizeof path, "%s/%s", directory, name);
  int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  FUZZ_MUST (fd >= 0 && write (fd, data, size) == (ssize_t) size);
  close (fd);
}

/* How many whole frames; *ret_last: the last one is `wanted`. */
static unsigned read_all (int from_checkpoint, const char *wanted, int *ret_last)
{
  ctl_journal_reader_t *reader = NULL;
  ctl_journal_position_t position, before = {0};
  const void *frame;
  size_t size;
  unsigned frames = 0;
  int rc;
  if (ctl_journal_reader_open (directory, from_checkpoint, &reader) < 0)
    return 0;
  while ((rc = ctl_journal_reader_next (reader, &frame, &size, &position)) != 0) {
    FUZZ_MUST (position.segment > before.segment ||
               (position.segment == before.segment && position.offset > before.offset) ||
               before.segment == 0);
    before = position;
    if (rc < 0)
      continue;
    frames++;
    *ret_last = size == strlen (wanted) && memcmp (frame, wanted, size) == 0;
  }
  ctl_journal_reader_close (&reader);
  return frames;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static int made;
  static const char ours[] = "a frame of ours";
  char why[256];
  ctl_journal_t *journal = NULL;
  int last = 0;
  if (!made) {
    FUZZ_MUST (mkdtemp (directory));
    atexit (remove_directory);
    made = 1;
  }
  remove_all ();
  size_t checkpoint = size && data[0] % 4 == 0 && size > 24 ? 24 : 0; /* else all of it is the segment */
  if (checkpoint) {
    put_file ("checkpoint", data + 1, 12);
    put_file ("number", data + 13, 11);
  }
  put_file (names[0], data + checkpoint, size - checkpoint);
  unsigned frames = read_all (0, ours, &last);
  read_all (1, ours, &last);
  FUZZ_MUST (ctl_journal_open (directory, 0, &journal, why, sizeof why) == 0);
  ctl_journal_last_number (journal);
  FUZZ_MUST (ctl_journal_append (journal, ours, strlen (ours)) == 0);
  ctl_journal_close (&journal);
  FUZZ_MUST (read_all (0, ours, &last) == frames + 1 && last);
  return 0;
}
