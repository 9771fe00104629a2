/* SPDX-License-Identifier: Apache-2.0 */
/* journal_files: the files in a journal's directory: which segments there are,
 * how much they hold, which of them goes. What is in a record is none of its
 * business, but for the end mark that a segment begins with when it is used
 * again: its old records stand behind it until others are written over them.
 *
 *   00000005.weftj ─ mark at 0 ─▶ empty, still 5 ─ rename ─▶ empty, 00000009.weftj
 *
 * Overwriting what is there costs two thirds of writing where nothing is: its pages and its blocks are
 * there already. Of one that was written long ago the pages are not (WEFT_JOURNAL_WARM_MS): it is
 * removed. One thread. */
#ifndef CTL_JOURNAL_FILES_H
#define CTL_JOURNAL_FILES_H

#include <stddef.h>
#include <stdint.h>

#define CTL_SEGMENT_NAME 24

void ctl_segment_name (char out[CTL_SEGMENT_NAME], uint32_t segment);
/* The next segment above `after`, 0: none. */
uint32_t ctl_segment_after (int dir_fd, uint32_t after);
/* 0: there is none. */
uint32_t ctl_segment_last (int dir_fd);
/* The oldest go until all others and `coming` bytes more are no more than `most`. */
void ctl_segments_shrink (int dir_fd, uint64_t most, uint64_t coming);
/* The oldest go that were written before `before_ns` (CLOCK_REALTIME) and are below `safe`. */
void ctl_segments_expire (int dir_fd, uint64_t before_ns, uint32_t safe);
/* Makes room as ctl_segments_shrink, and the file of a new segment, for writing: the last one that had
 * to go, if there was one and it can be used again. *ret_size: bytes in it, of which none is a record of
 * the new segment; at most `coming` with the mark behind them. A status; errno says why. */
int ctl_segment_begin (int dir_fd, uint32_t segment, uint64_t most, uint32_t coming, int *ret_fd,
                       uint64_t *ret_size);

/* A small file's text, "" if there is none. */
void ctl_journal_file_read (int dir_fd, const char *name, char *ret_text, size_t size);
/* It is there whole, with its old or its new text. A status. */
int ctl_journal_file_replace (int dir_fd, const char *name, const char *text);

#endif
