/* SPDX-License-Identifier: GPL-2.0 */
/* Moments of the calendar as a rules file holds them: RFC 3339. */
#ifndef SLUICE_MOMENT_H
#define SLUICE_MOMENT_H

#include <time.h>

#include "log.h"

#define MOMENT_TEXT 32 /* room for any formatted moment of these millennia */

/* Parses "2026-11-21T13:00:00Z", or with an offset, "+02:00"; a fraction of a second is dropped. */
enum status moment_parse(const char *text, time_t *ret);

/* In UTC. */
const char *moment_format(time_t when, char text[MOMENT_TEXT]);

#endif
