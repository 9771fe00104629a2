/* SPDX-License-Identifier: Apache-2.0 */
/* names: a bounded pool of texts, each kept once, found again by a small
 * number. Texts live until the pool is destroyed and never move. One thread. */
#ifndef CTL_NAMES_H
#define CTL_NAMES_H

#include <stddef.h>
#include <stdint.h>

typedef struct ctl_names_t ctl_names_t;

ctl_names_t *ctl_names_new (void);
void ctl_names_destroy (ctl_names_t **self_p);
/* The number of `text`; 0 is "" and 1 is what every text beyond WEFT_NAMES_MAX
 * becomes. A NUL inside ends the text. 0 or WEFT_E_NOMEM. */
int ctl_names_id (ctl_names_t *self, const char *text, size_t size, uint32_t *ret_id);
/* Numbers that were asked for lately, by where their texts are: zeroed before one of these goes or changes. */
#define CTL_NAMES_LATELY 64u
typedef struct {
  const char *text[CTL_NAMES_LATELY];
  uint32_t id[CTL_NAMES_LATELY];
} ctl_names_lately_t;
/* As ctl_names_id, of a text that ends; `lately` may be NULL. */
int ctl_names_again (ctl_names_t *self, ctl_names_lately_t *lately, const char *text, uint32_t *ret_id);
/* Every number below it has a text. */
uint32_t ctl_names_count (const ctl_names_t *self);
/* Never NULL; "" for a number that is none. */
const char *ctl_names_text (const ctl_names_t *self, uint32_t id);

#endif
