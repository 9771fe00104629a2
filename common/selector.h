/* SPDX-License-Identifier: Apache-2.0 */
/* selector: which instances an instruction is for.
 *
 *   SEL  = term *( "," term )            every term must hold
 *   term = key "=" value
 *   key  = "service" | "vm" | "host" | "instance" | "pid"
 *
 * A list of selectors holds where one of them holds; an empty list holds
 * nowhere; the text "*" holds everywhere. Values are compared whole;
 * `vm` is jvm|cpython|node|ruby|php. No allocation; thread-safe. */
#ifndef WEFT_SELECTOR_H
#define WEFT_SELECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "limits.h"

/* What a selector is compared with. Borrowed strings, none NULL. */
typedef struct weft_subject_t {
  const char *service;
  const char *vm;
  const char *host;
  const uint8_t *instance; /* WEFT_UUID_SIZE bytes */
  int64_t pid;
  /* The process that this one descends from, NULL: none that matters. What selects it selects this one. */
  const struct weft_subject_t *parent;
} weft_subject_t;

/* 0, or WEFT_E_MALFORMED / WEFT_E_RANGE with a reason in `why` (cut to size),
 * e.g. "unknown key 'servce' (service, vm, host, instance, pid)". */
int weft_selector_check (const char *text, char *why, size_t why_size);
/* 1 if `text` (which passed the check) holds for the subject, else 0. */
int weft_selector_holds (const char *text, const weft_subject_t *subject);

#endif
