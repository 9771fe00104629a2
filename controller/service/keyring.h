/* SPDX-License-Identifier: Apache-2.0 */
/* keyring: the controller's side of a directory of keys (common/keys.h): makes
 * it, and knows whose public keys are admitted.
 *
 *  R1  a file that is there is never written over
 *  R2  a key that was put into or taken out of the directory counts from the next handshake on
 *  R3  a directory that others can write admits nobody
 * One thread. */
#ifndef CTL_KEYRING_H
#define CTL_KEYRING_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/keys.h"

typedef enum { CTL_ROLE_CLIENT, CTL_ROLE_INSTANCE } ctl_role_t;

typedef struct ctl_keyring_t ctl_keyring_t;

/* Reads the controller's pair and who is admitted. Status as of weft_keys_read, reason in why. */
int ctl_keyring_new (const char *dir, ctl_keyring_t **ret_self, char *why, size_t why_size);
void ctl_keyring_destroy (ctl_keyring_t **self_p);
const weft_key_pair_t *ctl_keyring_own (const ctl_keyring_t *self);
/* The name under which the public key (Z85) is admitted in that role, borrowed until the next call; NULL. */
const char *ctl_keyring_find (ctl_keyring_t *self, ctl_role_t role, const char *public_key);

/* ---- making ------------------------------------------------------------- */
/* Called with each file that was made (1) or was there already (0). */
typedef void (ctl_keyring_made_fn) (const char *path, int made, void *arg);

/* Makes what is missing in `dir`: the directories, the three pairs, and admits the client and the instance
 * as "local". WEFT_E_DENIED, WEFT_E_IO, WEFT_E_MALFORMED with why. */
int ctl_keyring_make (const char *dir, ctl_keyring_made_fn *fn, void *arg, char *why, size_t why_size);
/* Makes `dir`/NAME, the directory of keys of another host: controller.pub, client.key, instance.key; and admits
 * both under that name. A name is 1 to WEFT_KEY_NAME_MAX - 1 of A-Z a-z 0-9 . _ -, no dot first. */
int ctl_keyring_make_for (const char *dir, const char *name, ctl_keyring_made_fn *fn, void *arg, char *why,
                          size_t why_size);
int ctl_keyring_name_valid (const char *name);

#endif
