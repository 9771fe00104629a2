/* SPDX-License-Identifier: Apache-2.0 */
#include "selector.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ids.h"
#include "status.h"

#define KEY_MAP(XX)                                                                                          \
  XX (SERVICE, "service")                                                                                    \
  XX (VM, "vm")                                                                                              \
  XX (HOST, "host")                                                                                          \
  XX (INSTANCE, "instance")                                                                                  \
  XX (PID, "pid")
typedef enum {
#define XX(name, text) KEY_##name,
  KEY_MAP (XX)
#undef XX
      KEY_COUNT
} selector_key_t;

static const char *const key_text[KEY_COUNT] = {
#define XX(name, text) text,
    KEY_MAP (XX)
#undef XX
};
static const char *const vm_text[] = {"jvm", "cpython", "node", "ruby", "php"};

/* One "key=value", pointing into the selector. */
typedef struct {
  const char *key, *value;
  size_t key_size, value_size;
} term_t;

static int same (const char *text, size_t size, const char *with)
{
  return strlen (with) == size && memcmp (text, with, size) == 0;
}

/* Cuts the term off that begins at *at_p and steps over its comma.
 * 1: *ret_term is set; 0: it has no '='. */
static int next_term (const char **at_p, term_t *ret_term)
{
  const char *at = *at_p;
  size_t size = strcspn (at, ",");
  const char *equals = memchr (at, '=', size);
  *at_p = at + size + (at[size] == ',');
  ret_term->key = at;
  ret_term->key_size = equals ? (size_t) (equals - at) : size;
  ret_term->value = equals ? equals + 1 : at + size;
  ret_term->value_size = equals ? (size_t) (at + size - ret_term->value) : 0;
  return equals != NULL;
}

static int find_key (const term_t *term)
{
  for (int i = 0; i < KEY_COUNT; i++)
    if (same (term->key, term->key_size, key_text[i]))
      return i;
  return -1;
}

/* -1: no decimal number in 1..INT64_MAX. */
static int64_t pid_value (const term_t *term)
{
  int64_t value = 0;
  if (term->value_size == 0)
    return -1;
  for (size_t i = 0; i < term->value_size; i++) {
    char c = term->value[i];
    if (c < '0' || c > '9' || __builtin_mul_overflow (value, 10, &value) ||
        __builtin_add_overflow (value, c - '0', &value))
      return -1;
  }
  return value > 0 ? value : -1;
}

static int instance_value (const term_t *term, uint8_t ret_uuid[WEFT_UUID_SIZE])
{
  char text[37];
  if (term->value_size != 36)
    return WEFT_E_MALFORMED;
  memcpy (text, term->value, 36);
  text[36] = 0;
  return weft_uuid_get (ret_uuid, text);
}

static int known_vm (const term_t *term)
{
  for (size_t i = 0; i < sizeof (vm_text) / sizeof (vm_text[0]); i++)
    if (same (term->value, term->value_size, vm_text[i]))
      return 1;
  return 0;
}

static int fail (int status, char *why, size_t why_size, const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));
static int fail (int status, char *why, size_t why_size, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  if (why_size > 0)
    vsnprintf (why, why_size, format, args);
  va_end (args);
  return status;
}

static int check_value (selector_key_t key, const term_t *term, char *why, size_t why_size)
{
  int size = (int) term->value_size;
  uint8_t uuid[WEFT_UUID_SIZE];

  if (size == 0)
    return fail (WEFT_E_MALFORMED, why, why_size, "'%s=' has no value", key_text[key]);
  if (key == KEY_VM && !known_vm (term))
    return fail (WEFT_E_RANGE, why, why_size, "unknown vm '%.*s' (jvm, cpython, node, ruby, php)", size,
                 term->value);
  if (key == KEY_PID && pid_value (term) < 0)
    return fail (WEFT_E_RANGE, why, why_size, "'%.*s' is no pid", size, term->value);
  if (key == KEY_INSTANCE && instance_value (term, uuid) < 0)
    return fail (WEFT_E_MALFORMED, why, why_size, "'%.*s' is no instance uuid (see `weft ls`)", size,
                 term->value);
  return 0;
}

int weft_selector_check (const char *text, char *why, size_t why_size)
{
  unsigned seen = 0;
  const char *at = text;

  if (*text == 0)
    return fail (WEFT_E_MALFORMED, why, why_size, "empty selector ('*' selects every instance)");
  if (strnlen (text, WEFT_SELECTOR_MAX) == WEFT_SELECTOR_MAX)
    return fail (WEFT_E_RANGE, why, why_size, "selector longer than %d bytes", WEFT_SELECTOR_MAX - 1);
  if (strcmp (text, "*") == 0)
    return 0;
  for (int more = 1; more;) {
    term_t term;
    int whole = next_term (&at, &term);
    int key = find_key (&term);
    int size = (int) term.key_size;

    if (!whole && size == 0)
      return fail (WEFT_E_MALFORMED, why, why_size, "empty term in '%s'", text);
    if (!whole)
      return fail (WEFT_E_MALFORMED, why, why_size, "'%.*s' is no key=value", size, term.key);
    if (key < 0)
      return fail (WEFT_E_MALFORMED, why, why_size, "unknown key '%.*s' (service, vm, host, instance, pid)",
                   size, term.key);
    /* Comma is "and": two values of one key hold nowhere, which nobody means. */
    if (seen & 1u << key)
      return fail (WEFT_E_MALFORMED, why, why_size, "'%s' given twice (repeat the option for \"or\")",
                   key_text[key]);
    seen |= 1u << key;
    int status = check_value ((selector_key_t) key, &term, why, why_size);
    if (status < 0)
      return status;
    more = term.value[term.value_size] == ',';
  }
  return 0;
}

static int term_holds (const term_t *term, const weft_subject_t *subject)
{
  uint8_t uuid[WEFT_UUID_SIZE];
  switch (find_key (term)) {
  case KEY_SERVICE:
    return same (term->value, term->value_size, subject->service);
  case KEY_VM:
    return same (term->value, term->value_size, subject->vm);
  case KEY_HOST:
    return same (term->value, term->value_size, subject->host);
  case KEY_INSTANCE:
    return instance_value (term, uuid) == 0 && memcmp (uuid, subject->instance, WEFT_UUID_SIZE) == 0;
  case KEY_PID:
    return pid_value (term) > 0 && pid_value (term) == subject->pid;
  default:
    return 0;
  }
}

int weft_selector_holds (const char *text, const weft_subject_t *subject)
{
  if (strcmp (text, "*") == 0)
    return 1;
  if (*text == 0)
    return 0;
  while (*text) {
    term_t term;
    if (!next_term (&text, &term) || !term_holds (&term, subject))
      return 0;
  }
  return 1;
}
