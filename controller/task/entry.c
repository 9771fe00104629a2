/* SPDX-License-Identifier: Apache-2.0 */
/* entry: a report as it waits in memory (assemble.h). */
#include "assemble.h"

static uint32_t fill_opaque (ctl_peers_t *peers, const weft_report_t *report, ctl_entry_t lines[2])
{
  lines[0].peer = ctl_peers_address (peers, &report->peer);
  lines[0].status = report->peer.family;
  lines[0].instruction = report->opaque.calls;
  lines[0].cpu_ns = report->opaque.wait_ns;
  lines[1] = (ctl_entry_t){.link = report->request,
                           .subtask = report->subtask,
                           .start_ns = report->opaque.bytes_out,
                           .end_ns = report->opaque.bytes_in,
                           .instance = lines[0].instance,
                           .kind = CTL_ENTRY_BYTES};
  return 2;
}

uint32_t ctl_entry_fill (ctl_peers_t *peers, const weft_report_t *report, uint32_t name, uint16_t instance,
                         ctl_entry_t ret_lines[CTL_ENTRY_LINES_MAX])
{
  ctl_entry_t *entry = &ret_lines[0];
  *entry = (ctl_entry_t){.link = report->request,
                         .subtask = report->subtask,
                         .start_ns = report->start_ns,
                         .end_ns = report->end_ns,
                         .cpu_ns = report->cpu_ns,
                         .name = name,
                         .instruction = report->instruction,
                         .instance = instance,
                         .status = report->status,
                         .kind = report->kind,
                         .flags = (uint8_t) (report->flags & ~CTL_ENTRY_TOP),
                         .error = report->error,
                         .reason = report->reason};
  if (report->kind == WEFT_REPORT_OPAQUE)
    return fill_opaque (peers, report, ret_lines);
  if (report->kind == WEFT_REPORT_EMBED) {
    entry->peer = ctl_peers_address (peers, &report->peer);
    entry->instruction = (uint32_t) ctl_peers_connection (peers, &report->local, &report->peer);
    return 1;
  }
  ctl_peers_captured_at (peers, &report->local);
  uint64_t connection = ctl_peers_connection (peers, &report->peer, &report->local);
  if (report->request) {
    entry->peer = (uint32_t) connection;
  } else {
    entry->flags |= CTL_ENTRY_TOP;
    entry->link = connection;
  }
  return 1;
}
