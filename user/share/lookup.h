/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Share: lookups of host names by a thread of the C library, because a name server may need more
 * time than a round has.
 */
#ifndef SLUICE_SHARE_LOOKUP_H
#define SLUICE_SHARE_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>

struct lookup;

bool host_is_address(const char *host);

/* Returns NULL if no lookup can be started. */
struct lookup *lookup_begin(const char *host);
bool lookup_is_done(const struct lookup *lookup);

/*
 * Formats an address of a lookup that is done, the next one at each attempt. Returns false if there
 * is none.
 */
bool lookup_take(const struct lookup *lookup, unsigned int attempt, char text[NI_MAXHOST]);

/* Frees a lookup, or NULL. Returns false if the thread still uses it. */
bool lookup_end(struct lookup *lookup);

/*
 * Adds a lookup, or NULL, to a list, and frees those of the list that are done. The C library has
 * 20 threads for lookups, so no more are left, however many names a store reports.
 */
void lookup_leave(struct lookup *lookup, struct lookup **left);

#endif
