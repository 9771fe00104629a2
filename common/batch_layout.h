/* SPDX-License-Identifier: Apache-2.0 */
/* batch_layout: the one encoding of a batch that its writer uses, drawn in
 * PROTOCOL.md, so that finish can patch, a reader can compare and a replay can
 * rename in place; readers take every legal encoding. Header only, for the
 * modules of the batch alone. */
#ifndef WEFT_BATCH_LAYOUT_H
#define WEFT_BATCH_LAYOUT_H

#include "report.h"

#define HEAD_FIELDS 13u
#define HEAD_TO_NS  96u /* the eight bytes after their tag; so are the next three */
#define HEAD_COUNT  105u
#define HEAD_LOSSES 110u
#define HEAD_ENTRY  183u
#define HEAD_SIZE   187u
_Static_assert(WEFT_LOSS_WIRE_COUNT == 8, "the drawn head has room for eight causes");

#define ENTRY_STRING  0u
#define REPORT_FIELDS 16u
#define OPAQUE_FIELDS 20u /* the same and four more at the end */
/* Offsets in a report as the writer packs it. */
#define AT_KIND        3u
#define AT_FLAGS       5u
#define AT_REASON      9u
#define AT_ERROR       10u
#define AT_STATUS      12u
#define AT_INSTRUCTION 15u
#define AT_TID         20u
#define AT_TASK        26u
#define AT_REQUEST     43u
#define AT_SUBTASK     52u
#define AT_START       61u
#define AT_END         70u
#define AT_CPU         78u /* its tag: nil or uint64 */
#define ADDRESS_SIZE   19u
#define TAIL_SIZE      45u /* two addresses with their tags, the name index with its */
#define REPORT_SIZE    (AT_CPU + 9u + TAIL_SIZE)
#define OPAQUE_SIZE    36u /* what a report of that kind has beyond */
_Static_assert(REPORT_SIZE + OPAQUE_SIZE <= WEFT_REPORT_MAX, "a report keeps its bound");

#define STRING_HEAD 4u /* array of two, kind 0, str8 and its size */
_Static_assert(WEFT_NAME_MAX <= 255, "names fit a str8");

#endif
