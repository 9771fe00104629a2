/* SPDX-License-Identifier: Apache-2.0 */
/* copies: which of the copies of one report counts (M2 in assemble.h). A report comes again when its
 * acknowledgement was lost or a recording is replayed; almost always no two are alike. */
#ifndef CTL_COPIES_H
#define CTL_COPIES_H

#include "assemble.h"
#include "few.h"
#include "triples.h"

/* What a capture is found by, an embed and an opaque one. */
static inline uint64_t ctl_copies_key (const ctl_entry_t *entry)
{
  return entry->kind == WEFT_REPORT_CAPTURE ? entry->subtask : entry->link;
}

/* Of one kind. Keeps of each key the copy that counts, of the embeds of one request each that is a
 * request of its own, up to WEFT_SENDINGS_MAX: every capture of it looks at all of them. Returns how many.
 * Up to CTL_FEW: *few finds the first of each key (of none it is left alone); if no two were alike they are
 * as they came, else in order. More: in order, by key. `order`: room for all. */
uint32_t ctl_copies_drop (const ctl_assemble_t *in, const ctl_entry_t **list, uint32_t count,
                          ctl_triple_t *order, ctl_few_t *few, uint64_t *duplicates, uint32_t *truncated);

#endif
