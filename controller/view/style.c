/* SPDX-License-Identifier: Apache-2.0 */
#include "style.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../task/utf8.h"

#define COLUMNS_MIN 40u

static int says_utf8 (void)
{
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv (names[i]);
    if (value && *value)
      return strcasestr (value, "utf-8") != NULL || strcasestr (value, "utf8") != NULL;
  }
  return 0;
}

void ctl_style_detect (int fd, ctl_style_t *ret_style)
{
  struct winsize size = {0};
  int terminal = isatty (fd);
  const char *columns = getenv ("COLUMNS"), *term = getenv ("TERM"), *no_colour = getenv ("NO_COLOR");
  unsigned long wanted = columns ? strtoul (columns, NULL, 10) : 0;
  if (!wanted && terminal && ioctl (fd, TIOCGWINSZ, &size) == 0)
    wanted = size.ws_col;
  if (!wanted)
    wanted = CTL_STYLE_COLUMNS;
  ret_style->columns = (uint32_t) (wanted < COLUMNS_MIN             ? COLUMNS_MIN
                                   : wanted > CTL_STYLE_COLUMNS_MAX ? CTL_STYLE_COLUMNS_MAX
                                                                    : wanted);
  ret_style->utf8 = (uint8_t) says_utf8 ();
  ret_style->colour = terminal && !(no_colour && *no_colour) && term && strcmp (term, "dumb") != 0;
}

/* ---- numbers ---------------------------------------------------------------------- */

static size_t written (size_t size, int length)
{
  return length < 0 ? 0 : (size_t) length < size ? (size_t) length : size ? size - 1 : 0;
}

size_t ctl_style_number (char *out, size_t size, uint64_t number)
{
  char digits[32], grouped[48];
  int length = snprintf (digits, sizeof digits, "%llu", (unsigned long long) number);
  size_t at = 0;
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0)
      grouped[at++] = ',';
    grouped[at++] = digits[i];
  }
  grouped[at] = 0;
  return written (size, snprintf (out, size, "%s", grouped));
}

/* The limits are where rounding would add a digit. */
size_t ctl_style_ms (char *out, size_t size, uint64_t ns)
{
  if (ns == 0)
    return written (size, snprintf (out, size, "0"));
  if (ns >= 99950000u)
    return ctl_style_number (out, size, ns / 1000000u + (ns % 1000000u >= 500000u));
  unsigned decimals = ns >= 995000u ? 1 : ns >= 9950u ? 2 : 3;
  return written (size, snprintf (out, size, "%.*f", (int) decimals, (double) ns / 1e6));
}

size_t ctl_style_percent (char *out, size_t size, double share)
{
  if (share > 0 && share < 0.0005)
    return written (size, snprintf (out, size, "<0.1 %%"));
  if (share > 0 && share < 0.0095)
    return written (size, snprintf (out, size, "%.1f %%", share * 100));
  double percent = share >= 0.995 && share < 1 ? 99 : share * 100;
  return written (size, snprintf (out, size, "%.0f %%", percent));
}

size_t ctl_style_date (char *out, size_t size, uint64_t wall_ns)
{
  time_t seconds = (time_t) (wall_ns / 1000000000u);
  struct tm tm;
  char date[40];
  if (!localtime_r (&seconds, &tm) || !strftime (date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm))
    return written (size, snprintf (out, size, "?"));
  return written (size, snprintf (out, size, "%s.%03u", date, (unsigned) (wall_ns / 1000000u % 1000u)));
}

/* ---- text --------------------------------------------------------------------------- */

static uint32_t code_of (const char *at, size_t size)
{
  const unsigned char *byte = (const unsigned char *) at;
  if (size == 1)
    return byte[0];
  uint32_t code = byte[0] & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; i++)
    code = code << 6 | (byte[i] & 0x3f);
  return code;
}

/* Control characters of both sets, and what reorders or hides text around it. */
static int is_dangerous (uint32_t code)
{
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

size_t ctl_style_safe (char *out, size_t size, const char *text, uint8_t utf8)
{
  size_t at = 0;
  while (*text) {
    size_t taken = ctl_utf8_sequence (text);
    int plain = taken && !is_dangerous (code_of (text, taken)) && (utf8 || taken == 1);
    size_t raw = taken ? taken : 1, need = plain ? raw : raw * 4;
    if (at + need >= size)
      break;
    for (size_t i = 0; i < raw; i++)
      if (plain)
        out[at++] = text[i];
      else
        at += (size_t) snprintf (out + at, size - at, "\\x%02x", (unsigned char) text[i]);
    text += raw;
  }
  if (size)
    out[at] = 0;
  return at;
}

const char *ctl_style_vm (const char *vm)
{
  static const char *const name[][2] = {
      {"jvm", "HotSpot"}, {"cpython", "CPython"}, {"node", "Node.js"}, {"ruby", "Ruby"}, {"php", "PHP"}};
  for (size_t i = 0; i < sizeof name / sizeof *name; i++)
    if (strcmp (vm, name[i][0]) == 0)
      return name[i][1];
  return vm;
}

/* No locale is asked: combining marks count 0, the wide East Asian blocks 2. */
static uint32_t width_of (uint32_t code)
{
  if (code >= 0x300 && code <= 0x36f)
    return 0;
  return (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                 (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                 (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                 (code >= 0x1f300 && code <= 0x1f64f) || (code >= 0x1f900 && code <= 0x1f9ff) ||
                 (code >= 0x20000 && code <= 0x3fffd)
             ? 2
             : 1;
}

uint32_t ctl_style_width (const char *text)
{
  uint32_t width = 0;
  while (*text) {
    size_t taken = ctl_utf8_sequence (text);
    width += taken ? width_of (code_of (text, taken)) : 1;
    text += taken ? taken : 1;
  }
  return width;
}

void ctl_style_cell (FILE *out, const ctl_style_t *style, const char *text, uint32_t width, int right)
{
  uint32_t whole = ctl_style_width (text);
  if (whole <= width) {
    if (right)
      fprintf (out, "%*s", (int) (width - whole), "");
    fputs (text, out);
    if (!right)
      fprintf (out, "%*s", (int) (width - whole), "");
    return;
  }
  const char *ellipsis = style->utf8 ? "…" : "~";
  uint32_t used = 0;
  while (width && *text) {
    size_t taken = ctl_utf8_sequence (text);
    uint32_t wide = taken ? width_of (code_of (text, taken)) : 1;
    if (used + wide > width - 1)
      break;
    fwrite (text, 1, taken ? taken : 1, out);
    used += wide;
    text += taken ? taken : 1;
  }
  if (width)
    fprintf (out, "%s%*s", ellipsis, (int) (width - 1 - used), "");
}

void ctl_style_colour (FILE *out, const ctl_style_t *style, ctl_colour_t colour)
{
  static const char *const code[] = {"\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[33m"};
  if (style->colour)
    fputs (code[colour], out);
}
