/* SPDX-License-Identifier: Apache-2.0 */
/* text: the block of strings that an unpacked execution brings along. */
#ifndef CTL_TEXT_H
#define CTL_TEXT_H

typedef struct ctl_text_t {
  struct ctl_text_t *next; /* of an execution that was merged in */
  char bytes[];
} ctl_text_t;

#endif
