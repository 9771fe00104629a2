/* SPDX-License-Identifier: Apache-2.0 */
/* screen: a terminal that is drawn again and again, and is afterwards as it was,
 * whatever ends us short of SIGKILL. One at a time, one thread. */
#ifndef CTL_SCREEN_H
#define CTL_SCREEN_H

#include <stddef.h>
#include <stdint.h>

typedef struct ctl_screen_t ctl_screen_t;

/* The alternate screen of stdout, which is a terminal; keys are read from stdin if that is one. NULL: out of memory. */
ctl_screen_t *ctl_screen_new (void);
/* Puts everything back. */
void ctl_screen_destroy (ctl_screen_t **self_p);
/* Lines that it has now. */
uint32_t ctl_screen_rows (const ctl_screen_t *self);
/* Draws `text`: lines, of which those that fit are seen. */
void ctl_screen_draw (ctl_screen_t *self, const char *text, size_t size);
/* Waits. 'q' for q, Q, Ctrl-C and the signals that end; 0: the time is over or the size is another. */
int ctl_screen_key (ctl_screen_t *self, unsigned wait_ms);

#endif
