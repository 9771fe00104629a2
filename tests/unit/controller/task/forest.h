/* SPDX-License-Identifier: Apache-2.0 */
/* forest: random call trees whose truth is known, as reports in batches. Header
 * only; shared by the tests of correlate, store and analyse. */
#ifndef TEST_FOREST_H
#define TEST_FOREST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../common/batch.h"
#include "../../../../common/ids.h"
#include "../../../../controller/task/correlate.h"

#define FOREST_INSTANCES 5u
#define FOREST_NODES     96u /* with copies or without, more than few.h holds */
#define FOREST_USUAL     24u
#define FOREST_ANCHOR    1700000000000000000ull /* wall minus boot */

typedef struct {
  uint64_t id, request;
  int parent; /* -1: the root */
  uint32_t instance;
  uint64_t start_ns, end_ns, sent_ns, answered_ns; /* boottime */
  uint16_t status;
  char name[32];
} forest_node_t;

typedef struct {
  uint8_t task[WEFT_TASK_ID_SIZE];
  forest_node_t node[FOREST_NODES];
  uint32_t count;
} forest_tree_t;

/* A report and the instance that sends it. */
typedef struct {
  weft_report_t report;
  uint32_t instance;
} forest_copy_t;

typedef struct {
  weft_ids_t random;
  forest_tree_t *tree;
  uint32_t trees;
  forest_copy_t *copy;
  uint32_t copies;
} forest_t;

static inline uint32_t forest_draw (forest_t *self, uint32_t below)
{
  return (uint32_t) (weft_ids_next (&self->random) >> 33) % below;
}

static inline void forest_uuid (uint32_t instance, uint8_t uuid[WEFT_UUID_SIZE])
{
  memset (uuid, 0x11 * (int) (instance + 1), WEFT_UUID_SIZE);
}

/* Children share their parent's time in disjoint or overlapping pieces, always inside it. */
static inline void forest_node (forest_t *self, forest_tree_t *tree, int parent)
{
  forest_node_t *node = &tree->node[tree->count];
  node->id = weft_ids_next (&self->random);
  node->parent = parent;
  node->instance = forest_draw (self, FOREST_INSTANCES);
  node->status = forest_draw (self, 10) ? 200 : 503;
  snprintf (node->name, sizeof node->name, "GET /%u", forest_draw (self, 7));
  if (parent < 0) {
    node->start_ns = 1000000000ull + forest_draw (self, 1000000000u);
    node->end_ns = node->start_ns + 1000000u + forest_draw (self, 500000000u);
  } else {
    const forest_node_t *above = &tree->node[parent];
    uint64_t room = above->end_ns - above->start_ns;
    node->request = weft_ids_next (&self->random);
    node->sent_ns = above->start_ns + room * (1 + forest_draw (self, 50)) / 100;
    node->answered_ns = node->sent_ns + room * (1 + forest_draw (self, 40)) / 100;
    uint64_t network = (node->answered_ns - node->sent_ns) / 8;
    node->start_ns = node->sent_ns + network;
    node->end_ns = node->answered_ns - network;
  }
  tree->count++;
}

static inline void forest_add (forest_t *self, const forest_tree_t *tree, const forest_node_t *node,
                               weft_report_kind_t kind)
{
  forest_copy_t *copy = &self->copy[self->copies++];
  weft_report_t *report = &copy->report;
  int embed = kind == WEFT_REPORT_EMBED;
  memset (copy, 0, sizeof *copy);
  report->kind = (uint8_t) kind;
  report->status = node->status;
  report->name = node->name;
  report->name_size = (uint16_t) strlen (node->name);
  report->instruction = !embed && node->parent < 0 ? 7 : 0;
  report->flags = !embed && node->parent < 0 ? WEFT_REPORT_ROOT : 0;
  memcpy (report->task, tree->task, WEFT_TASK_ID_SIZE);
  report->request = node->request;
  report->subtask = embed ? tree->node[node->parent].id : node->id;
  report->start_ns = embed ? node->sent_ns : node->start_ns;
  report->end_ns = embed ? node->answered_ns : node->end_ns;
  report->cpu_ns = embed ? WEFT_NS_NONE : (node->end_ns - node->start_ns) / 2;
  report->local =
      (weft_address_t){.ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t) node->instance},
                       .port = (uint16_t) (embed ? 40000 : 8080),
                       .family = 4};
  report->peer = report->local;
  report->peer.port = (uint16_t) (embed ? 8080 : 40000);
  copy->instance = embed ? tree->node[node->parent].instance : node->instance;
}

/* most: nodes of the largest tree, up to FOREST_NODES. */
static inline void forest_new_of (forest_t *self, uint64_t seed, uint32_t trees, uint32_t most)
{
  memset (self, 0, sizeof *self);
  for (int i = 0; i < 4; i++)
    self->random.s[i] = seed * 0x9e3779b97f4a7c15ull + (uint64_t) i + 1;
  for (int i = 0; i < 16; i++)
    weft_ids_next (&self->random);
  self->trees = trees;
  self->tree = calloc (trees, sizeof *self->tree);
  self->copy = calloc ((size_t) trees * FOREST_NODES * 4, sizeof *self->copy);
  for (uint32_t t = 0; t < trees; t++) {
    forest_tree_t *tree = &self->tree[t];
    uint32_t nodes = 1 + forest_draw (self, most);
    weft_ids_task (&self->random, tree->task);
    for (uint32_t i = 0; i < nodes; i++)
      forest_node (self, tree, i ? (int) forest_draw (self, i) : -1);
    for (uint32_t i = 0; i < nodes; i++) {
      forest_add (self, tree, &tree->node[i], WEFT_REPORT_CAPTURE);
      if (i)
        forest_add (self, tree, &tree->node[i], WEFT_REPORT_EMBED);
    }
  }
}

static inline void forest_new (forest_t *self, uint64_t seed, uint32_t trees)
{
  forest_new_of (self, seed, trees, FOREST_USUAL);
}

static inline void forest_destroy (forest_t *self)
{
  free (self->tree);
  free (self->copy);
}

static inline void forest_shuffle (forest_t *self)
{
  for (uint32_t i = self->copies; i > 1; i--) {
    uint32_t k = forest_draw (self, i);
    forest_copy_t one = self->copy[i - 1];
    self->copy[i - 1] = self->copy[k];
    self->copy[k] = one;
  }
}

/* Says hello for each instance. */
static inline void forest_hello (ctl_instances_t *instances)
{
  for (uint32_t i = 0; i < FOREST_INSTANCES; i++) {
    weft_up_message_t message = {.kind = WEFT_UP_HELLO, .pid = 100 + i};
    ctl_instance_t *instance;
    forest_uuid (i, message.instance);
    snprintf (message.service, sizeof message.service, "svc%u", i);
    snprintf (message.vm, sizeof message.vm, "%s", i & 1 ? "jvm" : "cpython");
    if (ctl_instances_take (instances, &message, &instance))
      abort ();
  }
}

static inline void forest_head (uint32_t instance, uint64_t number, weft_batch_head_t *ret_head)
{
  *ret_head = (weft_batch_head_t){.major = 1, .number = number};
  forest_uuid (instance, ret_head->instance);
  memset (ret_head->boot, 0xbb, WEFT_UUID_SIZE);
  /* every batch has its own anchor, apart by a few us as in life; the earliest one counts */
  ret_head->anchor.boot_ns = 1000 + instance * 1000 + number * 77;
  ret_head->anchor.real_ns = FOREST_ANCHOR + ret_head->anchor.boot_ns + (instance || number != 1 ? 500 : 0);
}

/* Sends all copies in their present order: a batch per run of `run` copies of each instance. */
static inline uint32_t forest_send (forest_t *self, ctl_correlate_t *correlate, uint32_t run)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  uint64_t number[FOREST_INSTANCES] = {0};
  uint32_t total = 0;
  for (uint32_t from = 0; from < self->copies; from += run)
    for (uint32_t instance = 0; instance < FOREST_INSTANCES; instance++) {
      weft_batch_head_t head;
      uint32_t taken = 0;
      size_t size;
      forest_head (instance, ++number[instance], &head);
      if (weft_batch_writer_begin (writer, frame, sizeof frame, &head))
        abort ();
      for (uint32_t i = from; i < from + run && i < self->copies; i++)
        if (self->copy[i].instance == instance && weft_batch_writer_add (writer, &self->copy[i].report))
          abort ();
      if (weft_batch_writer_finish (writer, &head, &size) ||
          ctl_correlate_batch (correlate, frame, size, &taken))
        abort ();
      total += taken;
    }
  weft_batch_writer_destroy (&writer);
  return total;
}

#endif
