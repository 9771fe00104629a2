/* SPDX-License-Identifier: Apache-2.0 */
#include "entry.h"

static uint8_t named (uint8_t number)
{
  return number < CTL_ENTRY_UNNAMED ? number : CTL_ENTRY_UNNAMED;
}

static uint32_t fill_opaque (ctl_peers_t *peers, const weft_report_t *report, ctl_entry_t lines[2])
{
  lines[0].peer = ctl_peers_address (peers, &report->peer);
  lines[0].status = report->peer.family;
  lines[0].instruction = report->opaque.calls;
  lines[1] = (ctl_entry_t){.subtask = report->opaque.wait_ns,
                           .start_ns = report->opaque.bytes_out,
                           .end_ns = report->opaque.bytes_in,
                           .instance = lines[0].instance,
                           .kind = CTL_ENTRY_BYTES};
  return 2;
}

static uint32_t fill_cpu (const weft_report_t *report, ctl_entry_t lines[2])
{
  if (report->cpu_ns == WEFT_NS_NONE)
    return 1;
  lines[0].cpu_ns = report->cpu_ns < CTL_ENTRY_CPU_LONG ? (uint32_t) report->cpu_ns : CTL_ENTRY_CPU_LONG;
  if (lines[0].cpu_ns != CTL_ENTRY_CPU_LONG)
    return 1;
  lines[1] = (ctl_entry_t){.link = report->cpu_ns, .instance = lines[0].instance, .kind = CTL_ENTRY_CPU};
  return 2;
}

static uint32_t fill_capture (ctl_peers_t *peers, const weft_report_t *report, ctl_entry_t lines[2])
{
  uint64_t connection = ctl_peers_captured (peers, &report->peer, &report->local);
  if (report->request) {
    lines[0].peer = (uint32_t) connection;
  } else {
    lines[0].flags |= CTL_ENTRY_TOP;
    lines[0].link = connection;
  }
  return fill_cpu (report, lines);
}

uint32_t ctl_entry_fill (ctl_peers_t *peers, const weft_report_t *report, uint32_t name, uint16_t instance,
                         ctl_entry_t ret_lines[CTL_ENTRY_LINES_MAX])
{
  ctl_entry_t *entry = &ret_lines[0];
  *entry = (ctl_entry_t){.link = report->request,
                         .subtask = report->subtask,
                         .start_ns = report->start_ns,
                         .end_ns = report->end_ns,
                         .cpu_ns = CTL_ENTRY_CPU_NONE,
                         .name = name,
                         .instruction = report->instruction,
                         .instance = instance,
                         .status = report->status,
                         .kind = report->kind,
                         .flags = (uint8_t) (report->flags & ~CTL_ENTRY_TOP),
                         .error = named (report->error),
                         .reason = named (report->reason)};
  if (report->kind == WEFT_REPORT_OPAQUE)
    return fill_opaque (peers, report, ret_lines);
  if (report->kind == WEFT_REPORT_CAPTURE)
    return fill_capture (peers, report, ret_lines);
  uint64_t connection;
  entry->peer = ctl_peers_sent_to (peers, &report->local, &report->peer, &connection);
  entry->instruction = (uint32_t) connection;
  return 1;
}
