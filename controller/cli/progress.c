/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "../../common/clocks.h"

static int stands; /* a line of somebody's */

void ctl_progress_begin (ctl_progress_t *self)
{
  *self = (ctl_progress_t){.shown = isatty (STDERR_FILENO), .start_ns = weft_mono_ns ()};
}

double ctl_progress_seconds (const ctl_progress_t *self)
{
  return (double) (weft_mono_ns () - self->start_ns) / 1e9;
}

static void say (ctl_progress_t *self, uint64_t now_ns, const char *format, va_list args)
{
  fputs ("\r\033[K", stderr);
  vfprintf (stderr, format, args);
  stands = 1;
  self->last_ns = now_ns;
}

void ctl_progress_say (ctl_progress_t *self, const char *format, ...)
{
  uint64_t now_ns = self->shown ? weft_mono_ns () : 0;
  if (!self->shown || now_ns - self->start_ns < CTL_PROGRESS_AFTER_MS * WEFT_NS_PER_MS ||
      now_ns - self->last_ns < CTL_PROGRESS_EVERY_MS * WEFT_NS_PER_MS)
    return;
  va_list args;
  va_start (args, format);
  say (self, now_ns, format, args);
  va_end (args);
}

void ctl_progress_now (ctl_progress_t *self, const char *format, ...)
{
  if (!self->shown)
    return;
  va_list args;
  va_start (args, format);
  say (self, weft_mono_ns (), format, args);
  va_end (args);
}

void ctl_progress_wipe (ctl_progress_t *self)
{
  if (self->last_ns)
    ctl_progress_clear ();
  self->last_ns = 0;
}

void ctl_progress_clear (void)
{
  if (stands)
    fputs ("\r\033[K", stderr);
  stands = 0;
}
