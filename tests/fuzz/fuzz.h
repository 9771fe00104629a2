/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what the fuzz targets share. Each target is one function over bytes of
 * a stranger's; `make fuzz` links it with libFuzzer, every other build with
 * replay.c, which runs it over files. A broken promise ends the program. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

#define FUZZ_MUST(what)                                                                                      \
  do {                                                                                                       \
    if (!(what)) {                                                                                           \
      fprintf (stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                    \
      abort ();                                                                                              \
    }                                                                                                        \
  } while (0)

/* The input taken from its front, piece by piece; zeros when it is used up. */
typedef struct {
  const uint8_t *at, *end;
} fuzz_input_t;

static inline uint64_t fuzz_take (fuzz_input_t *input, unsigned bytes)
{
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes && input->at < input->end; i++)
    value |= (uint64_t) *input->at++ << (8 * i);
  return value;
}

#endif
