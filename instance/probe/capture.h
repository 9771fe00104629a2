/* SPDX-License-Identifier: Apache-2.0 */
/* capture: the server side of a connection. At the end of a request's head the
 * subtask begins: its ids are taken from the head, or made where a `root` rule
 * says so, and the reading thread's context is opened. */
#ifndef PROBE_CAPTURE_H
#define PROBE_CAPTURE_H

#include "exchange.h"

/* Bytes of requests have been read; the caller owns the inbound direction. */
void probe_capture_requests (probe_connection_t *self, const struct iovec *iov, int iov_count, size_t size);

#endif
