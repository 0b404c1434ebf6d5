/* SPDX-License-Identifier: GPL-2.0 */
/* Live: the syntax of command `top`, which `sluice` describes and sluice-top runs. */
#ifndef SLUICE_COMMAND_TOP_H
#define SLUICE_COMMAND_TOP_H

#include "program/program.h"
#include "sluice.h"

struct top_words {
	struct sl_prefix within; /* `bits` is 0 for all sources */
	unsigned int order;	 /* enum live_order + 1; 0 if not given */
	unsigned int top;	 /* number of sources; 0 if not given */
	unsigned int times;	 /* number of refreshes in batch mode; 0: until a signal */
	uint64_t interval_ns;	 /* 0 if not given */
	bool batch;
};

/* The words of `sort`, by enum live_order. */
extern const char *const top_orders[];

/* Bounds of the interval between two refreshes. */
#define TOP_INTERVAL_LEAST_NS 200000000ULL
#define TOP_INTERVAL_NS	      1000000000ULL
#define TOP_INTERVAL_MOST_NS  60000000000ULL

/* The command without `run`, because its program is in another package. */
extern const struct command command_top;

#endif
