/* SPDX-License-Identifier: GPL-2.0 */
/* The programs under test, with the rules and the sources that their cases need. */
#ifndef SLUICE_BENCH_SUBJECTS_H
#define SLUICE_BENCH_SUBJECTS_H

#include "bench.h"

/* Of the cases that are chosen. */
int subjects_make(void);

/* The fd of the program of a case with this source. */
int subject_program(const struct bench_case *bench, const struct sl_prefix *source);

/* Hears each source of an established case once more, so that it stays known. */
int subject_refresh(const struct bench_case *bench);

/*
 * Counts the packets of a case since the last call: of a gate by reason, of a map of bench.bpf.c only
 * those of new sources, of other subjects none.
 */
int subject_take_counts(const struct bench_case *bench, struct sl_counters *ret);

void subjects_free(void);

#endif
