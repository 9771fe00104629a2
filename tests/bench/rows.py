# SPDX-License-Identifier: Apache-2.0
"""Rows of figures, as bench.h prints them: what, figure, what it must reach, what stands beside it."""

FAILED = []


def row(what, figure, unit, must, beside):
    good = figure <= must
    print("%-46s %10.2f %-8s <= %8.2f  %s  %s" % (what, figure, unit, must, "ok  " if good else "FAIL", beside), flush=True)
    if not good:
        FAILED.append(what)


def spread(values, unit):
    return "%.2f to %.2f %s in %d rounds" % (min(values), max(values), unit, len(values))
