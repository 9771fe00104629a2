/* SPDX-License-Identifier: Apache-2.0 */
/* names: "POST /orders/12345" becomes "POST /orders/{id}", before anything is
 * spooled: names stay few, and ids of customers never leave the host.
 *
 * A path segment becomes {id} when it is all digits, a uuid, hexadecimal of
 * CAR_NAMES_HEX_MIN digits or more, or holds CAR_NAMES_DIGITS_MIN digits. */
#ifndef CAR_NAMES_H
#define CAR_NAMES_H

#include <stddef.h>

#define CAR_NAMES_CACHE      4096 /* raw names remembered; one more replaces an old one */
#define CAR_NAMES_HEX_MIN    16   /* shorter hexadecimal may be a word */
#define CAR_NAMES_DIGITS_MIN 8    /* a date, a phone number, an order number with a prefix */

typedef struct car_names_t car_names_t;

/* NULL when out of memory. One thread at a time. */
car_names_t *car_names_new (void);
void car_names_destroy (car_names_t **self_p);
/* The template of `name` (size bytes, more than WEFT_NAME_MAX are cut), not
 * terminated, owned by self and valid until the next call. No allocation. */
const char *car_names_template (car_names_t *self, const char *name, size_t size, size_t *ret_size);

#endif
