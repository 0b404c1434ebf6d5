/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Serve: parses the path and the query of a request. The text comes from a client that is not
 * trusted. The functions allocate no memory and read no gate.
 */
#ifndef SLUICE_ROUTE_H
#define SLUICE_ROUTE_H

#include "gate/gate.h"
#include "live/sources.h"
#include "report/report.h"

enum route_id {
	/* files of the web page, without data of gates */
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

/* Parameters of `live`: which sources to list with their rates. */
struct live_args {
	struct sl_prefix within;
	unsigned int order; /* enum live_order */
	unsigned int top;   /* number of sources to list; 0: ROUTE_LIVE_TOP */
};

#define ROUTE_SOURCES_TOP 100	/* default number of sources in a document */
#define ROUTE_SOURCES_MAX 10000 /* largest number of sources in a document, about 5 MB */
#define ROUTE_LIVE_TOP	  25
#define ROUTE_LIVE_MAX	  100

/*
 * The parameters of a request. Equal requests have equal bytes, because route_parse() first sets
 * all bytes to 0.
 */
struct route {
	enum route_id id;
	bool open_metrics; /* /metrics: use the format OpenMetrics; the caller sets this */
	char gate[GATE_NAME + 1];
	struct sources_args sources;
	struct check_args check;
	struct live_args live;
	uint64_t since; /* number of the last event that the client has received */
};

/*
 * Parses a request target, such as "/api/v1/sources?gate=main&top=10". Returns 0, -ENOENT if the
 * path does not exist, or -EINVAL if the query is wrong, with an error.
 */
int route_parse(const char *target, struct route *ret);

#endif
