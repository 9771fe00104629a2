/* SPDX-License-Identifier: Apache-2.0 */
/* entry: one report as it waits in memory until its task is assembled. Small,
 * because millions wait: what is rare takes a second line.
 *
 *  N1  the second line of a report lies behind the first
 *  N2  nothing is lost on the way but what has no name: an error or reason beyond
 *      4 bits becomes CTL_ENTRY_UNNAMED */
#ifndef CTL_ENTRY_H
#define CTL_ENTRY_H

#include "../../common/report.h"
#include "names.h"
#include "peers.h"

#define CTL_ENTRY_LINES_MAX 2u
#define CTL_ENTRY_BYTES     5u    /* beside the kinds of reports: the second line of an opaque one */
#define CTL_ENTRY_CPU       6u    /* likewise, of a capture whose CPU time fills more than 32 bits */
#define CTL_ENTRY_TOP       0x80u /* beside WEFT_REPORT_*: a capture that came without a request id */
#define CTL_ENTRY_UNNAMED   15u   /* beside WEFT_ERROR_* and WEFT_REASON_* */
#define CTL_ENTRY_CPU_NONE  UINT32_MAX
#define CTL_ENTRY_CPU_LONG  (UINT32_MAX - 1) /* stands in the second line */

/* Of a line CTL_ENTRY_BYTES start, end and subtask are bytes out, bytes in and the wait; of a line
 * CTL_ENTRY_CPU the link is the CPU time. */
typedef struct {
  uint64_t link; /* request id; of a TOP the connection that it came on (ctl_peers_connection) */
  uint64_t subtask;
  uint64_t start_ns, end_ns; /* CLOCK_BOOTTIME of the instance's host */
  uint64_t name : 17;        /* ctl_names_id */
  uint64_t instance : 12;
  uint64_t status : 16; /* opaque: the family of the peer's address */
  uint64_t kind : 3;    /* weft_report_kind_t, CTL_ENTRY_BYTES, CTL_ENTRY_CPU */
  uint64_t flags : 8;   /* WEFT_REPORT_*, CTL_ENTRY_TOP */
  uint64_t error : 4, reason : 4;
  uint32_t cpu_ns;      /* of a capture; CTL_ENTRY_CPU_NONE, CTL_ENTRY_CPU_LONG */
  uint32_t instruction; /* opaque: the calls; embed: its connection (32 bits of it, 0: not known) */
  uint32_t peer;        /* embed, opaque: ctl_peers_address; capture: its connection, as above */
  uint32_t next;        /* the list that open_tasks keeps */
} ctl_entry_t;
_Static_assert(sizeof (ctl_entry_t) == 56, "nine of them, their task and its slot are 600 bytes");
_Static_assert(WEFT_NAMES_MAX <= 1u << 17 && WEFT_INSTANCES_MAX <= 1u << 12, "they fit into an entry");

static inline int ctl_entry_is_open (const ctl_entry_t *entry)
{
  return (entry->flags & WEFT_REPORT_OPEN) != 0;
}

/* The lines of a capture, an embed or an opaque report; how many they are. What it tells
 * of addresses is told to `peers`. */
uint32_t ctl_entry_fill (ctl_peers_t *peers, const weft_report_t *report, uint32_t name, uint16_t instance,
                         ctl_entry_t ret_lines[CTL_ENTRY_LINES_MAX]);

#endif
