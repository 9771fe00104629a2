/* SPDX-License-Identifier: Apache-2.0 */
/* sidecar: where `weft-instance` is, and how it is run: next to our own
 * executable, else in PATH. */
#ifndef CTL_SIDECAR_H
#define CTL_SIDECAR_H

#include <jansson.h>

#include "verbs.h"

#define CTL_SIDECAR_WORDS_MAX 320 /* 256 pids and what stands before them */

/* The words of one command line, NULL behind the last. */
typedef struct {
  const char *word[CTL_SIDECAR_WORDS_MAX + 1];
  int count;
} ctl_words_t;

/* `weft-instance MODE`, and where its controller is and how it is reached. Borrows from the call. */
void ctl_words_begin (ctl_words_t *self, const ctl_call_t *call, const char *mode);
/* Too many: WEFT_E_RANGE, said on stderr. */
int ctl_words_add (ctl_words_t *self, const char *word);

/* Becomes weft-instance. Returns only if that fails, said on stderr: an exit status for main. */
int ctl_sidecar_exec (const ctl_words_t *words);
/* Runs it; *ret_lines is an array of the JSON objects that it printed, a line each. Its stderr is
 * ours. `what` is the word for what it does, for a terminal when it takes long. 0 or a status; *ret_code its
 * exit code. */
int ctl_sidecar_lines (const ctl_words_t *words, const char *what, json_t **ret_lines, int *ret_code);

#endif
