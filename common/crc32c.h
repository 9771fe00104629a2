/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c: the Castagnoli checksum (RFC 3720, B.4) over journal records and
 * spool slots. A torn write is found by it; it is no protection from malice.
 * Thread-safe; uses the SSE 4.2 and PCLMUL instructions where the processor has them. */
#ifndef WEFT_CRC32C_H
#define WEFT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Checksum of `data` appended to what `seed` is the checksum of; 0 to begin. */
uint32_t weft_crc32c (uint32_t seed, const void *data, size_t size);
/* The same without the instruction: the reference that tests compare with. */
uint32_t weft_crc32c_portable (uint32_t seed, const void *data, size_t size);

#endif
