/* SPDX-License-Identifier: Apache-2.0 */
/* replay: runs a fuzz target over files, and over every file cut short and with
 * a bit turned, as ordinary tests do. Arguments: files; last line: what ran. */
#include "fuzz.h"

#define INPUT_MAX (1u << 20)
#define TURNS     64 /* variants of each file */

/* In memory of exactly its size, so that a sanitizer sees a byte too many. */
static void run (const uint8_t *data, size_t size)
{
  uint8_t *copy = malloc (size ? size : 1);
  if (!copy)
    abort ();
  memcpy (copy, data, size);
  LLVMFuzzerTestOneInput (copy, size);
  free (copy);
}

static unsigned run_variants (uint8_t *data, size_t size)
{
  run (data, size);
  for (unsigned i = 0; i < TURNS && size; i++) {
    size_t at = size * i / TURNS;
    run (data, at);
    data[at] ^= (uint8_t) (1u << i % 8);
    run (data, size);
    data[at] ^= (uint8_t) (1u << i % 8);
  }
  return 1 + (size ? 2 * TURNS : 0);
}

int main (int argc, char **argv)
{
  static uint8_t data[INPUT_MAX];
  unsigned inputs = 0;
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen (argv[i], "rb");
    if (!file) {
      perror (argv[i]);
      return 1;
    }
    inputs += run_variants (data, fread (data, 1, sizeof data, file));
    fclose (file);
  }
  printf ("%d files, %u inputs\n", argc - 1, inputs);
  return inputs ? 0 : 1;
}
