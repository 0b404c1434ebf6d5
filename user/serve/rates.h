/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the present rates of gates, by user/live. A gate is watched while clients ask for it. All
 * clients get the rates of the same second.
 */
#ifndef SLUICE_RATES_H
#define SLUICE_RATES_H

#include "live/live.h"
#include "serve/route.h"
#include "state/pressure.h"

/* The rates of a gate. This element is free if `is_open` is false. */
struct rates {
	bool is_open;
	struct live live;
	uint64_t wanted_at;	/* uptime of the last request for the gate, in ns */
	time_t at;		/* time of the last refresh, in s since 1970 */
	uint64_t fill_due;	/* uptime from which `fill` may be read again, in ns */
	struct table_fill fill; /* numbers of limited and blocked sources */
};

/*
 * Prints the rates of a gate. The first request begins to watch the gate. Returns 0 or a negative
 * errno.
 */
int rates_print(struct rates *all, unsigned int count, const char *gate,
		const struct live_args *args);

/* Closes gates that no client has asked for in the last 30 s. */
void rates_rest(struct rates *all, unsigned int count);
void rates_close(struct rates *rates);

#endif
