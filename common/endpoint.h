/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint: the three ZeroMQ addresses behind the one that people write.
 *
 * Nothing here touches a socket or the file system beyond asking whether a
 * runtime directory exists; no directory is made. */
#ifndef WEFT_ENDPOINT_H
#define WEFT_ENDPOINT_H

#include <stddef.h>

typedef enum { WEFT_ENDPOINT_CONTROL, WEFT_ENDPOINT_INSTRUCTIONS, WEFT_ENDPOINT_REPORTS } weft_endpoint_t;
#define WEFT_ENDPOINT_MAX 256
/* ipc://DIR -> ipc://DIR/control …; tcp://HOST:PORT -> PORT, PORT+1, PORT+2.
 * WEFT_E_MALFORMED / WEFT_E_RANGE, reason in why. */
int weft_endpoint (const char *base, weft_endpoint_t which, char out[WEFT_ENDPOINT_MAX], char *why,
                   size_t why_size);
/* WEFT_CONTROLLER, else ipc://$XDG_RUNTIME_DIR/weft, else ipc:///run/user/UID/weft if that
 * directory exists, else ipc:///tmp/weft-UID. */
int weft_endpoint_default (char out[WEFT_ENDPOINT_MAX]);

/* The DIR of ipc://DIR, borrowed from the address; NULL for tcp. */
const char *weft_endpoint_directory (const char *base);
/* 1 for tcp to a loopback address: 127.0.0.0/8, [::1] or localhost, the port included. */
int weft_endpoint_is_loopback (const char *base);

#endif
