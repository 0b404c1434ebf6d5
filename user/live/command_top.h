/* SPDX-License-Identifier: GPL-2.0 */
/* Live: the syntax of command `top`, which `sluice` describes and sluice-top runs. */
#ifndef SLUICE_COMMAND_TOP_H
#define SLUICE_COMMAND_TOP_H

#include "program/program.h"
#include "sluice.h"

struct top_words {
	struct sl_prefix within; /* sources to list: those within this prefix; `bits` 0: all */
	unsigned int order;	 /* enum live_order + 1 of the sources; 0: not specified */
	unsigned int top;	 /* number of sources to list; 0: not specified */
	unsigned int times;	 /* number of refreshes in batch mode; 0: until a signal */
	uint64_t interval_ns;	 /* time between two refreshes, in ns; 0: not specified */
	bool batch;
};

/* The words that option `sort` accepts, indexed by enum live_order. */
extern const char *const top_orders[];

/* Bounds of the interval between two refreshes. */
#define TOP_INTERVAL_LEAST_NS 200000000ULL
#define TOP_INTERVAL_NS	      1000000000ULL
#define TOP_INTERVAL_MOST_NS  60000000000ULL

/* Command `top` without function `run`, because sluice-top, in another package, runs it. */
extern const struct command command_top;

#endif
