/* SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

#include <stdio.h>
#include <string.h>

#include "status.h"

static int is_method_byte (char c)
{
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static int fail (int status, char *why, size_t why_size, const char *reason)
{
  if (why_size > 0)
    snprintf (why, why_size, "%s", reason);
  return status;
}

int weft_pattern_check (const char *pattern, char *why, size_t why_size)
{
  size_t size = strnlen (pattern, WEFT_MATCH_MAX);
  const char *space = memchr (pattern, ' ', size);
  const char *path = space ? space + 1 : pattern;

  if (size == 0)
    return 0;
  if (size == WEFT_MATCH_MAX)
    return fail (WEFT_E_RANGE, why, why_size, "pattern too long (127 bytes at most)");
  if (space) {
    size_t method = (size_t) (space - pattern);
    if (method >= WEFT_METHOD_MAX)
      return fail (WEFT_E_RANGE, why, why_size, "method too long (15 bytes at most)");
    for (size_t i = 0; i < method; i++)
      if (!is_method_byte (pattern[i]) && !(method == 1 && pattern[i] == '*'))
        return fail (WEFT_E_MALFORMED, why, why_size, "no method before the space (write 'POST /path')");
    if (method == 0)
      return fail (WEFT_E_MALFORMED, why, why_size, "no method before the space (write 'POST /path')");
  }
  if (path[0] != '/' && strncmp (path, "**", 2) != 0)
    return fail (WEFT_E_MALFORMED, why, why_size,
                 space ? "the path must begin with / or **" : "no path (write 'POST /path' or '/path')");
  if (strpbrk (path, " ?#"))
    return fail (WEFT_E_MALFORMED, why, why_size, "a path holds no space, '?' or '#' (queries are not seen)");
  for (const char *at = pattern; *at; at++)
    if ((unsigned char) *at < 0x20 || *at == 0x7f)
      return fail (WEFT_E_MALFORMED, why, why_size, "control byte in the pattern");
  return 0;
}

/* Size of the "*" or "{…}" at `at`, 0: it is a literal. */
static size_t star_size (const char *at)
{
  if (*at == '*')
    return 1;
  if (*at != '{')
    return 0;
  size_t size = strcspn (at, "/}");
  return at[size] == '}' ? size + 1 : 0;
}

/* Leftmost matching with two places to come back to: the last "*" and the last
 * "**". An earlier "*" need not be tried again (what a later one in the same
 * segment cannot reach, the earlier one cannot open up), nor what stands before
 * a "**". `dead` remembers where the last "*" ran against a slash: begun again
 * anywhere before it, it would run against the same one. */
static int path_holds (const char *pattern, const char *at, const char *end)
{
  const char *star = NULL, *star_at = NULL; /* pattern after the "*"; text it ends at */
  const char *deep = NULL, *deep_at = NULL; /* the same of the "**" */
  const char *dead_star = NULL, *dead = NULL;

  for (;;) {
    size_t wild = star_size (pattern);
    if (wild && pattern[0] == '*' && pattern[1] == '*') {
      while (*pattern == '*')
        pattern++;
      if (*pattern == 0)
        return 1;
      deep = pattern;
      deep_at = at;
      star = NULL;
    } else if (wild && !(pattern + wild == dead_star && at <= dead)) {
      pattern += wild;
      star = pattern;
      star_at = at;
    } else if (!wild && at < end && *pattern == *at) {
      pattern++;
      at++;
    } else if (!wild && at == end && *pattern == 0)
      return 1;
    else if (!wild && star && star_at < end && *star_at != '/') {
      pattern = star;
      at = ++star_at;
    } else if (!wild && star && star_at == end)
      return 0; /* a "**" that ends later leaves even less */
    else if (deep && deep_at < end) {
      if (!wild && star) {
        dead_star = star;
        dead = star_at;
      }
      pattern = deep;
      at = ++deep_at;
      star = NULL;
    } else
      return 0;
  }
}

int weft_pattern_holds (const char *pattern, const char *name, size_t name_size)
{
  const char *end = name + name_size;
  const char *name_space = name_size ? memchr (name, ' ', name_size) : NULL;
  const char *space = strchr (pattern, ' ');

  if (*pattern == 0)
    return 1;
  if (space && !(space == pattern + 1 && *pattern == '*')) {
    size_t method = (size_t) (space - pattern);
    if (!name_space || (size_t) (name_space - name) != method || memcmp (pattern, name, method) != 0)
      return 0;
  }
  return path_holds (space ? space + 1 : pattern, name_space ? name_space + 1 : name, end);
}
