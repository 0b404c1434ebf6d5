/* SPDX-License-Identifier: GPL-2.0 */
/* Serve: the files of the web page, which are embedded in the program. */
#ifndef SLUICE_ASSETS_H
#define SLUICE_ASSETS_H

#include <stddef.h>

#include "serve/route.h"

struct asset {
	const char *type; /* media type */
	const char *text;
	size_t length;
};

/* Returns the embedded file of a route. The route must be below ROUTES_FIXED. */
struct asset asset_of(enum route_id route);

#endif
