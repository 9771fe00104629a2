/* SPDX-License-Identifier: Apache-2.0 */
/* over_memory: a writer's memory and a reader over it, new for each test. Header only;
 * a test begins with it. */
#ifndef TEST_OVER_MEMORY_H
#define TEST_OVER_MEMORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../../instance/shm/reader.h"
#include "../../../../instance/shm/writer.h"

#define TID 64u /* ring 0 */

static void *base;
static int fd;
static shm_reader_t *reader;
static weft_report_t got;

static int make (void **state)
{
  return shm_create (NULL, "cpython", "3.11.2", 0, &base, &fd) || shm_reader_over (base, &reader);
}

static int unmake (void **state)
{
  shm_reader_destroy (&reader);
  munmap (base, SHM_SIZE);
  close (fd);
  return 0;
}

static shm_event_t *first_event (void)
{
  return (shm_event_t *) shm_ring_data (base, 0);
}

#endif
