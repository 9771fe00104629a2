/* SPDX-License-Identifier: Apache-2.0 */
/* log: one line on stderr for the people who run a program of ours.
 *
 * Only `main` and the two loops call it; library code returns a status and its
 * caller logs once. The probe never links it. Thread-safe: one write(2) a line. */
#ifndef WEFT_LOG_H
#define WEFT_LOG_H

/* Prefix of every line, "weft" or "weft-instance"; borrowed, set once in main. */
void weft_log_name (const char *name);
/* "weft: <text>\n": what, why, what to do next. */
void weft_log_error (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
/* The same, only if WEFT_LOG=debug or --verbose turned it on. */
void weft_log_debug (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
void weft_log_verbose (int on);

#endif
