/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: what a request asks for, by its path and its query. The text comes from a client that is
 * not trusted. The functions allocate nothing and read no gate.
 */
#ifndef SLUICE_ROUTE_H
#define SLUICE_ROUTE_H

#include "gate/gate.h"
#include "live/sources.h"
#include "report/report.h"

enum route_id {
	/* parts of the page, which contain no data */
	ROUTE_PAGE,
	ROUTE_SCRIPT,
	ROUTE_STYLE,
	ROUTE_OPENAPI,
	ROUTES_FIXED,
	/* documents */
	ROUTE_HEALTH = ROUTES_FIXED,
	ROUTE_METRICS,
	ROUTE_GATES,
	ROUTE_STATUS,
	ROUTE_STATS,
	ROUTE_SOURCES,
	ROUTE_CHECK,
	ROUTE_LIMITS,
	ROUTE_LISTS,
	ROUTE_DOCTOR,
	ROUTE_LIVE,
	/* a stream */
	ROUTE_EVENTS,
	ROUTES,
};

/* The words of `live`: the sources to list, with their rates. */
struct live_args {
	struct sl_prefix within;
	unsigned int order; /* enum live_order */
	unsigned int top;   /* number of sources; 0: ROUTE_LIVE_TOP */
};

#define ROUTE_SOURCES_TOP 100	/* sources on a page, unless `top` is given */
#define ROUTE_SOURCES_MAX 10000 /* most sources on a page, some 5 MB */
#define ROUTE_LIVE_TOP	  25
#define ROUTE_LIVE_MAX	  100

/* Two equal requests have equal bytes, because route_parse() clears the whole struct first. */
struct route {
	enum route_id id;
	bool open_metrics; /* /metrics in the format OpenMetrics; set by the caller */
	char gate[GATE_NAME + 1];
	struct sources_args sources;
	struct check_args check;
	struct live_args live;
	uint64_t since; /* number of the last event that the client has */
};

/*
 * Parses a request target, such as "/api/v1/sources?gate=main&top=10". Returns 0, -ENOENT if there
 * is no such path, or -EINVAL if the query is wrong, with an error.
 */
int route_parse(const char *target, struct route *ret);

#endif
