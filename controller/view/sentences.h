/* SPDX-License-Identifier: Apache-2.0 */
/* sentences: why the slowest are slow, in two or three plain sentences with figures;
 * where nothing is to be named, that and where the time of the median goes. */
#ifndef CTL_SENTENCES_H
#define CTL_SENTENCES_H

#include "../task/analyse.h"
#include "style.h"

#define CTL_SENTENCES_MAX 8192 /* bytes: names are long, and each byte of them may become four */

/* Safe text without a line break (V1), cut to `size`; returns its length. */
size_t ctl_sentences (const ctl_analysis_t *analysis, const ctl_analysis_name_t *name, uint8_t utf8,
                      char *out, size_t size);
/* The same behind "why slow", wrapped to the columns. */
void ctl_sentences_print (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis,
                          const ctl_analysis_name_t *name);

#endif
