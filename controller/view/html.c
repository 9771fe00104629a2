/* SPDX-License-Identifier: Apache-2.0 */
#include "html.h"

#include <string.h>

#include "../../common/status.h"

/* The Makefile links these files as they are, and beside them the SHA-256 of two, in base64. */
#define LINKED(name) extern const char _binary_page_##name##_start[], _binary_page_##name##_end[]
LINKED (html);
LINKED (css);
LINKED (js);
LINKED (css_sha256);
LINKED (js_sha256);

typedef struct {
  const char *mark; /* in page.html */
  const char *from, *to;
} part_t;

#define PART(mark, name)                                                                                     \
  {                                                                                                          \
    mark, _binary_page_##name##_start, _binary_page_##name##_end                                             \
  }
static const part_t parts[] = {
    PART ("@STYLE_DIGEST@", css_sha256),
    PART ("@SCRIPT_DIGEST@", js_sha256),
    PART ("@STYLE@", css),
    PART ("@SCRIPT@", js),
};
#define DATA_MARK "@DATA@"

static const part_t *part_at (const char *text, size_t size)
{
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (size >= strlen (parts[i].mark) && memcmp (text, parts[i].mark, strlen (parts[i].mark)) == 0)
      return &parts[i];
  return NULL;
}

static void fill (FILE *out, const char *from, const char *to)
{
  while (from < to) {
    const char *mark = memchr (from, '@', (size_t) (to - from));
    const char *stop = mark ? mark : to;
    fwrite (from, 1, (size_t) (stop - from), out);
    const part_t *part = mark ? part_at (mark, (size_t) (to - mark)) : NULL;
    if (part)
      fwrite (part->from, 1, (size_t) (part->to - part->from), out);
    else if (mark)
      fputc ('@', out);
    from = stop + (part ? strlen (part->mark) : mark ? 1 : 0);
  }
}

static const char *data_mark (void)
{
  return memmem (_binary_page_html_start, (size_t) (_binary_page_html_end - _binary_page_html_start),
                 DATA_MARK, strlen (DATA_MARK));
}

int ctl_html_begin (FILE *out)
{
  fill (out, _binary_page_html_start, data_mark ());
  return ferror (out) ? WEFT_E_IO : 0;
}

int ctl_html_end (FILE *out)
{
  fill (out, data_mark () + strlen (DATA_MARK), _binary_page_html_end);
  return ferror (out) ? WEFT_E_IO : 0;
}

/* In JSON these three stand in strings only. */
static int escaped (const char *text, size_t size, void *arg)
{
  FILE *out = arg;
  for (size_t i = 0; i < size; i++)
    if (text[i] == '<' || text[i] == '>' || text[i] == '&')
      fprintf (out, "\\u%04x", (unsigned char) text[i]);
    else
      fputc (text[i], out);
  return ferror (out) ? -1 : 0;
}

int ctl_html_json (FILE *out, const json_t *json)
{
  return json_dump_callback (json, escaped, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY) < 0
             ? WEFT_E_IO
             : 0;
}
