/* SPDX-License-Identifier: Apache-2.0 */
/* dictionary: the texts of a pack, and its resources (instance, pid, service, vm), each
 * once and with a number. Most texts are interned, so they are known by where they
 * are; one that is not known so is looked for by what it says. Tables are small and
 * of fixed size, and nothing is cleared for the next pack.
 *
 *  Y1  what a number stands for is written once and stays until the dictionary is emptied
 *  Y2  where a text is means nothing beyond ctl_dictionary_forget: others may come to stand there
 *  Y3  what the tables have no place for may stand twice; it is never taken for something else */
#ifndef CTL_DICTIONARY_H
#define CTL_DICTIONARY_H

#include "task.h"

/* Bytes that grow at their end; data is malloc'd, NULL at first. */
typedef struct {
  uint8_t *data;
  size_t size, capacity;
} ctl_bytes_t;
/* Room for `size` more. WEFT_E_NOMEM. */
int ctl_bytes_reserve (ctl_bytes_t *self, size_t size);

typedef struct ctl_dictionary_t ctl_dictionary_t;

ctl_dictionary_t *ctl_dictionary_new (void); /* NULL: no memory */
void ctl_dictionary_destroy (ctl_dictionary_t **self_p);
void ctl_dictionary_empty (ctl_dictionary_t *self);
void ctl_dictionary_forget (ctl_dictionary_t *self);
/* Their numbers; without memory any, and ctl_dictionary_failed says so, once. */
uint32_t ctl_dictionary_text (ctl_dictionary_t *self, const char *text);
uint32_t ctl_dictionary_resource (ctl_dictionary_t *self, const ctl_subtask_t *subtask);
int ctl_dictionary_failed (ctl_dictionary_t *self);
/* Its bytes (pack.h), and how many. */
size_t ctl_dictionary_size (const ctl_dictionary_t *self);
void ctl_dictionary_put (const ctl_dictionary_t *self, uint8_t *at);

#endif
