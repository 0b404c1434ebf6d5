/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: the present rates of gates, by user/live. A gate is watched while clients ask for it. All
 * of them get the rates of the same second.
 */
#ifndef SLUICE_RATES_H
#define SLUICE_RATES_H

#include "live/live.h"
#include "serve/route.h"
#include "state/pressure.h"

/* The rates of a gate. is_open is false if the element is free. */
struct rates {
	bool is_open;
	struct live live;
	uint64_t wanted_at;	/* uptime of the last request, in ns */
	time_t at;		/* wall clock of the last refresh, in s */
	uint64_t fill_due;	/* uptime at which `fill` is read again, in ns */
	struct table_fill fill; /* for the numbers of limited and of blocked sources */
};

/* Prints the rates of a gate, which the first request begins to watch. Returns 0 or -errno. */
int rates_print(struct rates *all, unsigned int count, const char *gate,
		const struct live_args *args);

/* Closes gates that no client has asked for lately. */
void rates_rest(struct rates *all, unsigned int count);
void rates_close(struct rates *rates);

#endif
