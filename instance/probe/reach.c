/* SPDX-License-Identifier: Apache-2.0 */
#include "reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>

#include "../../common/clocks.h"
#include "opaque.h"
#include "proof.h"
#include "record.h"

int probe_reach_begin (probe_reach_t *ret_reach)
{
  weft_reason_t reason;
  ret_reach->start_ns = 0;
  if (PROBE_UNLIKELY (probe_context_near () && probe_context_current (&ret_reach->of, &reason)) &&
      ret_reach->of.subtask)
    ret_reach->start_ns = weft_boot_ns ();
  return ret_reach->start_ns != 0;
}

/* ---- connects ------------------------------------------------------------- */
/* EPIPE says nothing of the peer: this side will not write any more. */
static weft_error_t error_of (int error)
{
  return error == EPIPE ? WEFT_ERROR_NONE : probe_error_of (error);
}

static void tell (probe_connection_t *self, int error)
{
  weft_error_t why = error_of (error);
  if (!why || __atomic_load_n (&self->described, __ATOMIC_ACQUIRE))
    return;
  uint64_t start_ns = __atomic_exchange_n (&self->reach_ns, 0, __ATOMIC_ACQ_REL); // A2
  if (start_ns)
    probe_opaque_once (&self->reach_of, probe_opaque_protocol (self), &self->peer, why, start_ns);
}

void probe_reach_connect (int fd, const probe_reach_t *reach, const struct sockaddr *address, socklen_t size,
                          int error)
{
  int saved = errno;
  uint32_t generation;
  probe_connection_t *self = probe_record_known (fd, &generation);
  weft_address_t peer;
  probe_address_of (address, size, &peer);
  if (error == EINPROGRESS || error == EINTR) {
    if (self) {
      self->peer = peer;
      self->reach_of = reach->of;
      __atomic_store_n (&self->reach_ns, reach->start_ns, __ATOMIC_RELEASE);
    }
  } else if (error_of (error)) {
    probe_opaque_once (&reach->of, probe_opaque_at (&peer), &peer, error_of (error), reach->start_ns);
  }
  errno = saved;
}

void probe_reach_told (int fd, int error)
{
  int saved = errno;
  uint32_t generation;
  probe_connection_t *self = probe_record_known (fd, &generation);
  if (self)
    tell (self, error);
  errno = saved;
}

void probe_reach_closing (probe_connection_t *self)
{
  if (PROBE_UNLIKELY (self->reach_ns && !self->described))
    tell (self, probe_kernel.outcome (self->fd));
}

/* ---- lookups -------------------------------------------------------------- */
static int is_number (const char *node)
{
  struct in6_addr address;
  return inet_pton (AF_INET, node, &address) == 1 || inet_pton (AF_INET6, node, &address) == 1;
}

int probe_reach_lookup (const char *node, int flags, probe_reach_t *ret_reach)
{
  int saved = errno;
  int wanted = node && !(flags & AI_NUMERICHOST) && probe_context_near () && !is_number (node) &&
               probe_reach_begin (ret_reach);
  errno = saved;
  return wanted;
}

void probe_reach_looked_up (const probe_reach_t *reach, int again)
{
  static const weft_address_t nobody;
  int saved = errno;
  probe_opaque_once (&reach->of, WEFT_PROTOCOL_DNS, &nobody, again ? WEFT_ERROR_TIMEOUT : WEFT_ERROR_NONE,
                     reach->start_ns);
  errno = saved;
}
