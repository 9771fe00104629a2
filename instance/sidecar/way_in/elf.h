/* SPDX-License-Identifier: Apache-2.0 */
/* elf: a loaded ELF object as it lies in another process's memory: its exported
 * functions, its build id, its slots. Whoever mapped it may lie: every count,
 * offset and address is bounded before it is used, and nothing is written.
 *
 *  E1  no read outside the object's own extent
 *  E2  no allocation beyond CAR_ELF_TABLE_MAX, whatever the headers say */
#ifndef CAR_ELF_H
#define CAR_ELF_H

#include <stddef.h>
#include <stdint.h>

#define CAR_ELF_TABLE_MAX   (32u << 20) /* bytes of one table: more than libjvm's symbols */
#define CAR_ELF_HEADERS_MAX 64          /* program headers */
#define CAR_ELF_DYNAMIC_MAX 256         /* entries of the dynamic section */
#define CAR_ELF_BUILD_ID    20          /* bytes */

/* Reads memory of whatever the object lies in. 0 or a status. */
typedef int car_elf_read_t (void *arg, uint64_t address, void *out, size_t size);

typedef struct car_elf_t car_elf_t;

/* base: where its headers are. WEFT_E_MALFORMED, WEFT_E_UNSUPPORTED (not
 * x86-64), WEFT_E_NOMEM, or what `read` says. */
int car_elf_open (car_elf_read_t *read, void *arg, uint64_t base, car_elf_t **ret_self);
void car_elf_destroy (car_elf_t **self_p);

/* Address of an exported function. WEFT_E_NOT_FOUND. */
int car_elf_function (car_elf_t *self, const char *name, uint64_t *ret_address);
/* 0, or WEFT_E_NOT_FOUND: it has none. */
int car_elf_build_id (car_elf_t *self, uint8_t ret_id[CAR_ELF_BUILD_ID]);
/* Calls `each` for every slot through which the object calls or takes the
 * address of a function of another object: name, address of the slot. */
typedef void car_elf_slot_t (void *arg, const char *name, uint64_t slot);
int car_elf_slots (car_elf_t *self, car_elf_slot_t *each, void *arg);

#endif
