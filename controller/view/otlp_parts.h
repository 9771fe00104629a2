/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_parts: what an OTLP message is put together from: spans with their
 * attributes, sorted under the resources they belong to. Known to otlp.c alone. */
#ifndef CTL_OTLP_PARTS_H
#define CTL_OTLP_PARTS_H

#include <otlp.pb-c.h>
#include <stdint.h>

#include "pool.h"

/* Of one span or resource; more than any has. */
#define CTL_ATTRIBUTES_MAX 40

/* The first failure is remembered in `failed`; nothing needs to be looked at before the end. */
typedef struct {
  ctl_pool_t *pool;
  Otlp__KeyValue *list[CTL_ATTRIBUTES_MAX];
  size_t count;
  int failed;
} ctl_attributes_t;

/* Keys are literals. A text that is NULL or "" is not known: nothing is put. Texts are borrowed. */
void ctl_attributes_text (ctl_attributes_t *self, const char *key, const char *text);
/* The first `size` bytes of it. */
void ctl_attributes_part (ctl_attributes_t *self, const char *key, const char *text, size_t size);
void ctl_attributes_number (ctl_attributes_t *self, const char *key, uint64_t number);
void ctl_attributes_signed (ctl_attributes_t *self, const char *key, int64_t number);
void ctl_attributes_flag (ctl_attributes_t *self, const char *key, int flag);
/* A copy of the list in the pool. NULL when anything has failed. */
Otlp__KeyValue **ctl_attributes_done (ctl_attributes_t *self);

/* http.request.method and the path of "GET /orders/{id}"; nothing of a name that does not read so.
 * A path with a placeholder is a template: it is put under `template_key`, else under url.path. */
void ctl_attributes_http (ctl_attributes_t *self, const char *name, const char *template_key);
/* server.address and server.port, network.peer.* with them, of "10.0.0.5:80" or "[fd00::1]:80". */
void ctl_attributes_peer (ctl_attributes_t *self, const char *peer);

#endif
