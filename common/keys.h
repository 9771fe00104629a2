/* SPDX-License-Identifier: Apache-2.0 */
/* keys: the key files that one side of a connection needs, and what may be
 * connected to with and without them. A directory of keys holds
 *
 *   controller.key  0600  the controller's pair              on the controller's host only
 *   controller.pub  0644  its public half                    wherever somebody connects to it
 *   client.key      0600  the pair of who uses the command line
 *   instance.key    0600  the pair of the sidecars
 *   clients/NAME.pub   0644  who may give instructions          read by the controller
 *   instances/NAME.pub 0644  who may report and is instructed   read by the controller
 *
 * A file is text: "public " and "secret ", each with 40 characters of Z85, a line each; lines that
 * begin with # say something to people.
 *
 *  K1  a secret is taken only from a regular file that is ours or root's and closed to others
 *  K2  an address beyond this host is connected to with keys, or because somebody said --plain-tcp
 *  K3  an ipc address is connected to only where nobody but us or root can have put the socket
 * No socket here. */
#ifndef WEFT_KEYS_H
#define WEFT_KEYS_H

#include <stddef.h>

#define WEFT_KEY_TEXT     41 /* Z85 of 32 bytes and the terminator */
#define WEFT_KEYS_DIR_MAX 512

typedef struct {
  char public_key[WEFT_KEY_TEXT];
  char secret_key[WEFT_KEY_TEXT]; /* "" in a .pub file */
} weft_key_pair_t;

/* Of one that connects. */
typedef struct {
  int loaded;    /* 0: none, the connection is a plain one */
  int plain_tcp; /* the user wants plain tcp beyond this host */
  char controller[WEFT_KEY_TEXT];
  weft_key_pair_t own;
} weft_keys_t;

/* The absolute path of `given`, else of WEFT_KEYS, else "". Whether it is there shows when it is read.
 * WEFT_E_NOT_FOUND: no working directory; WEFT_E_RANGE: too long. */
int weft_keys_directory (const char *given, char out[WEFT_KEYS_DIR_MAX]);
/* One file. secret 1: K1, and it must hold both lines. WEFT_E_NOT_FOUND, WEFT_E_DENIED,
 * WEFT_E_MALFORMED, WEFT_E_IO with why. */
int weft_keys_read (const char *path, int secret, weft_key_pair_t *ret_pair, char *why, size_t why_size);
/* What a "client" or an "instance" needs for `address`: nothing for ipc and where dir is "".
 * Checks K2 and K3. ret_keys->plain_tcp is read. Status as of weft_keys_read. */
int weft_keys_for (const char *address, const char *dir, const char *role, weft_keys_t *ret_keys, char *why,
                   size_t why_size);
/* 1 if the text is a key: 40 characters of Z85. */
int weft_key_valid (const char *text, size_t size);
/* Overwrites the secret. */
void weft_keys_clear (weft_keys_t *keys);

#endif
