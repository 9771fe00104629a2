/* SPDX-License-Identifier: Apache-2.0 */
/* bench: rows of figures, each beside its yardstick from the same run.
 *
 * A measurement and its yardstick are run in turns, many short rounds, and the
 * best round of each counts: whoever shares the core only ever adds to a round.
 * The median stands beside it. Every row says what it must reach; one that does
 * not makes the program fail. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_ROUNDS 61 /* short ones: some of them have the core to themselves */

/* A benchmark of one thread that never waits may take its own CPU clock instead. */
#ifndef BENCH_CLOCK
#define BENCH_CLOCK CLOCK_MONOTONIC
#endif

static int bench_failed;

static inline uint64_t bench_now_ns (void)
{
  struct timespec t;
  clock_gettime (BENCH_CLOCK, &t);
  return (uint64_t) t.tv_sec * 1000000000ull + (uint64_t) t.tv_nsec;
}

static inline int bench_by_value (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return x < y ? -1 : x > y;
}

static inline double bench_median (double *values, unsigned count)
{
  qsort (values, count, sizeof *values, bench_by_value);
  return values[count / 2];
}

/* Runs fn (n) once and returns ns for each of the n. */
typedef void (bench_fn) (uint64_t n);
static inline double bench_once (bench_fn *fn, uint64_t n)
{
  uint64_t start = bench_now_ns ();
  fn (n);
  return (double) (bench_now_ns () - start) / (double) n;
}

typedef struct {
  double subject, yardstick; /* ns each, best round */
  double difference, ratio;  /* of these */
  double usual;              /* median of the rounds' differences */
  uint64_t runs;             /* how often the subject ran */
} bench_pair_t;

/* About `total` runs of each in all. */
static inline bench_pair_t bench_pair (bench_fn *subject, bench_fn *yardstick, uint64_t total)
{
  double difference[BENCH_ROUNDS];
  uint64_t n = total / BENCH_ROUNDS + 1;
  bench_pair_t pair = {.subject = 1e18, .yardstick = 1e18, .runs = n * (BENCH_ROUNDS + 1)};
  bench_once (subject, n);
  bench_once (yardstick, n);
  for (unsigned i = 0; i < BENCH_ROUNDS; i++) {
    double s = bench_once (subject, n), y = bench_once (yardstick, n);
    difference[i] = s - y;
    pair.subject = s < pair.subject ? s : pair.subject;
    pair.yardstick = y < pair.yardstick ? y : pair.yardstick;
  }
  pair.difference = pair.subject - pair.yardstick;
  pair.ratio = pair.subject / pair.yardstick;
  pair.usual = bench_median (difference, BENCH_ROUNDS);
  return pair;
}

/* One line: what, figure, unit, what it must be, the yardstick beside it. */
static inline void bench_row (const char *what, double figure, const char *unit, int at_most, double must,
                              const char *beside)
{
  int good = at_most ? figure <= must : figure >= must;
  printf ("%-46s %10.2f %-8s %s %8.2f  %s  %s\n", what, figure, unit, at_most ? "<=" : ">=", must,
          good ? "ok  " : "FAIL", beside);
  if (!good)
    bench_failed = 1;
}

/* A line that is shown and not judged. */
static inline void bench_note (const char *what, double figure, const char *unit, const char *beside)
{
  printf ("%-46s %10.2f %-8s %18s  %s\n", what, figure, unit, "", beside);
}

/* A count that must be exact: a benchmark that lost work measured nothing. */
static inline void bench_equal (const char *what, uint64_t got, uint64_t want)
{
  if (got == want)
    return;
  printf ("%-46s %llu instead of %llu: FAIL\n", what, (unsigned long long) got, (unsigned long long) want);
  bench_failed = 1;
}

#define BENCH_KEEP(value) __asm__ volatile("" : : "g"(value) : "memory")

/* A bench_fn that makes one call, again and again. */
#define BENCH_SUBJECT(name, call)                                                                            \
  static void name (uint64_t n)                                                                              \
  {                                                                                                          \
    for (uint64_t i = 0; i < n; i++)                                                                         \
      BENCH_KEEP (call);                                                                                     \
  }

#endif
