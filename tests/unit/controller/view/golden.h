/* SPDX-License-Identifier: Apache-2.0 */
/* golden: fixed executions, and the comparison of what a view prints of them with
 * tests/golden/view/NAME. WEFT_GOLDEN_WRITE=1 writes the files instead; look at
 * the difference before it is committed. Header only. */
#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../controller/task/analyse.h"
#include "../../../../controller/task/instances.h"
#include "../../../../controller/view/style.h"

#define GOLDEN_START 1796046131482000000ull /* 2026-11-30 13:42:11.482 UTC */
#define GOLDEN_MS    1000000ull

static const ctl_style_t golden_wide = {100, 1, 0}, golden_ascii = {80, 0, 0}, golden_colour = {100, 1, 1};

static inline ctl_subtask_t *golden_add (ctl_execution_t *execution, uint64_t id, uint64_t caller,
                                         ctl_hop_t hop, const char *service, const char *vm, const char *name,
                                         double from_ms, double to_ms)
{
  ctl_subtask_t *subtask = &execution->subtasks[execution->count++];
  *subtask = (ctl_subtask_t){.id = id,
                             .request = caller ? id + 1000 : 0,
                             .caller = caller,
                             .hop = hop,
                             .answered = 1,
                             .status = 200,
                             .pid = 100 + (uint32_t) (id % 3),
                             .service = service,
                             .vm = vm,
                             .name = name,
                             .start_ns = GOLDEN_START + (uint64_t) (from_ms * 1e6),
                             .end_ns = GOLDEN_START + (uint64_t) (to_ms * 1e6),
                             .cpu_ns = WEFT_NS_NONE};
  memset (subtask->instance, 0x11 * (int) (1 + id % 3), WEFT_UUID_SIZE);
  if (hop == CTL_HOP_PROVEN || hop == CTL_HOP_EMBED_ONLY) {
    uint64_t gap = hop == CTL_HOP_PROVEN ? 200000 : 0;
    subtask->sent_ns = subtask->start_ns - gap;
    subtask->answered_ns = subtask->end_ns + gap;
  }
  return subtask;
}

static inline ctl_execution_t *golden_new (uint8_t number)
{
  ctl_execution_t *execution = calloc (1, sizeof *execution);
  execution->subtasks = calloc (64, sizeof *execution->subtasks);
  memcpy (execution->task,
          (const uint8_t[]){0x01, 0x92, 0xf3, 0xc4, number, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 16);
  execution->name = execution->origin = "";
  execution->hosts = 1;
  return execution;
}

/* The N+1 of a shop: nine quotes one after another, a request to the outside beside them. */
static inline ctl_execution_t *golden_shop (uint8_t number, double factor)
{
  ctl_execution_t *shop = golden_new (number);
  golden_add (shop, 1, 0, CTL_HOP_ROOT, "front", "cpython", "POST /checkout", 0, 231 * factor)->instruction =
      7;
  golden_add (shop, 2, 1, CTL_HOP_PROVEN, "orders", "jvm", "POST /orders", 3 * factor, 227.9 * factor)
      ->cpu_ns = 5 * GOLDEN_MS;
  ctl_subtask_t *leaf = golden_add (shop, 3, 2, CTL_HOP_EMBED_ONLY, "10.0.0.5:9000", "", "GET /rates",
                                    5 * factor, 24.1 * factor);
  leaf->id = leaf->request;
  for (uint32_t i = 0; i < 9; i++)
    golden_add (shop, 10 + i, 2, CTL_HOP_PROVEN, "pricing", "cpython", "GET /quote/{id}",
                (30 + 21 * i) * factor, (49 + 21 * i) * factor);
  if (ctl_execution_settle (shop))
    abort ();
  return shop;
}

/* Everything that can go wrong with one execution, from a peer that means no good. */
static inline ctl_execution_t *golden_odd (void)
{
  ctl_execution_t *odd = golden_new (9);
  golden_add (odd, 1, 0, CTL_HOP_ROOT, "front\033[31m", "cpython", "GET /\033]0;owned\007x\r\n", 0, 90);
  ctl_subtask_t *late =
      golden_add (odd, 2, 1, CTL_HOP_PROVEN, "orders", "jvm", "GET /größe\xff\u202e", 10, 60);
  late->answered = 0;
  late->error = WEFT_ERROR_OPEN;
  late->status = 0;
  golden_add (odd, 3, 1, CTL_HOP_EMBED_ONLY, "127.0.0.1:8001", "", "GET /lost", 61, 80)->inside = 1;
  golden_add (odd, 4, 0, CTL_HOP_CAPTURE_ONLY, "pricing", "node", "GET /stray", 20, 30)->status = 503;
  odd->subtasks[3].request = 77;
  odd->truncated = 3;
  odd->hosts = 2;
  if (ctl_execution_settle (odd))
    abort ();
  return odd;
}

static inline ctl_execution_t *golden_orphan (uint8_t number)
{
  ctl_execution_t *orphan = golden_new (number);
  golden_add (orphan, 5, 0, CTL_HOP_PROVEN, "pricing", "cpython", "GET /quote/{id}", 0, 12)->orphan =
      WEFT_REASON_EVENT_LOOP;
  orphan->subtasks[0].request = 55;
  orphan->origin = "gateway";
  if (ctl_execution_settle (orphan))
    abort ();
  return orphan;
}

/* A leaf of `caller`: what it asked of an opaque peer. */
static inline void golden_ask (ctl_execution_t *execution, uint64_t id, uint64_t caller, const char *peer,
                               const char *protocol, double from_ms, double to_ms, double wait_ms,
                               uint32_t calls)
{
  ctl_subtask_t *leaf =
      golden_add (execution, id, caller, CTL_HOP_OPAQUE, peer, "", protocol, from_ms, to_ms);
  leaf->request = leaf->status = 0;
  leaf->pid = 0;
  leaf->wait_ns = (uint64_t) (wait_ms * 1e6);
  leaf->calls = calls;
  leaf->bytes_out = 100u * calls;
  leaf->bytes_in = 1000u * calls;
}

/* Half of it is spent in a database (through two connections, told apart), with a cache that is
 * not there and a name that had to be looked up. */
static inline ctl_execution_t *golden_database (uint8_t number)
{
  ctl_execution_t *task = golden_new (number);
  golden_add (task, 1, 0, CTL_HOP_ROOT, "front", "cpython", "POST /checkout", 0, 231);
  golden_add (task, 2, 1, CTL_HOP_PROVEN, "orders", "jvm", "POST /orders", 3, 227);
  golden_ask (task, 20, 2, "", "dns", 4, 5, 0.7, 1);
  golden_ask (task, 21, 2, "10.0.0.5:5432", "postgresql", 6, 200, 100, 37);
  golden_ask (task, 22, 2, "10.0.0.5:5432", "postgresql", 201, 215, 12, 1);
  golden_ask (task, 23, 2, "[fd00::12]:6379", "redis", 5, 5.2, 0.2, 1);
  task->subtasks[5].error = WEFT_ERROR_REFUSED;
  golden_add (task, 3, 2, CTL_HOP_PROVEN, "pricing", "cpython", "GET /quote/{id}", 216, 226);
  if (ctl_execution_settle (task))
    abort ();
  return task;
}

static inline ctl_analysis_t *golden_analysis (void)
{
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  for (uint8_t i = 0; i < 12; i++) {
    ctl_execution_t *execution = i < 9    ? golden_shop (i, 0.2 + 0.1 * i)
                                 : i < 11 ? golden_orphan (i)
                                          : golden_odd ();
    if (ctl_analyse_add (analyse, execution))
      abort ();
    ctl_execution_destroy (&execution);
  }
  if (ctl_analyse_finish (analyse, &analysis))
    abort ();
  analysis->losses[WEFT_LOSS_RING_FULL] = 1234;
  ctl_analyse_destroy (&analyse);
  return analysis;
}

static inline void golden_instances (ctl_instance_t instances[3])
{
  memset (instances, 0, 3 * sizeof *instances);
  static const char *const text[3][5] = {{"cpython", "3.11.2", "front", "shop-1", ":8000"},
                                         {"jvm", "17.0.15", "orders", "shop-1", ":8080 :8081"},
                                         {"cpython", "3.11.2", "pricing\033[2J", "shop-1", ":8001"}};
  for (int i = 0; i < 3; i++) {
    memset (instances[i].uuid, 0x11 * (i + 1), WEFT_UUID_SIZE);
    instances[i].vm = text[i][0];
    instances[i].version = text[i][1];
    instances[i].service = text[i][2];
    instances[i].host = text[i][3];
    instances[i].listens = text[i][4];
    instances[i].pid = 4121 + i;
    instances[i].active = i == 0 ? 3 : i == 1 ? 6 : 0;
    instances[i].presence = (ctl_presence_t) i;
    instances[i].bytes_total = i < 2 ? 1000000 : 0;
    instances[i].bytes_spoken = i == 0 ? 1000000 : i == 1 ? 614000 : 0;
    instances[i].stored = 5000;
  }
  instances[1].rest[WEFT_PROTOCOL_POSTGRESQL] = 380000;
  instances[1].rest[WEFT_PROTOCOL_TCP] = 6000;
  instances[1].losses[WEFT_LOSS_RING_FULL] = 1234;
  instances[0].written = 5000;
  instances[1].written = 6234;
  instances[1].tail_since_ns = GOLDEN_START;
}

/* ---- comparing -------------------------------------------------------------------- */

typedef struct {
  FILE *out;
  char *text;
  size_t size;
} golden_t;

static inline FILE *golden_begin (golden_t *self)
{
  self->text = NULL;
  self->out = open_memstream (&self->text, &self->size);
  assert_non_null (self->out);
  return self->out;
}

static inline void golden_end (golden_t *self, const char *name)
{
  char path[256];
  static char wanted[262144];
  fclose (self->out);
  snprintf (path, sizeof path, "tests/golden/view/%s", name);
  if (getenv ("WEFT_GOLDEN_WRITE")) {
    FILE *file = fopen (path, "we");
    assert_non_null (file);
    fwrite (self->text, 1, self->size, file);
    fclose (file);
  }
  FILE *file = fopen (path, "re");
  if (!file)
    fail_msg ("%s is missing: run from the top of the tree", path);
  size_t size = fread (wanted, 1, sizeof wanted - 1, file);
  fclose (file);
  wanted[size] = 0;
  assert_string_equal (self->text, wanted);
  free (self->text);
}

#endif
