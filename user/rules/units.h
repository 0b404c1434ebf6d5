/* SPDX-License-Identifier: GPL-2.0 */
/* Rates and bursts as people write them. */
#ifndef SLUICE_UNITS_H
#define SLUICE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "sluice.h"

#define UNITS_TEXT 32 /* room for any formatted rate or burst */

/*
 * Parses RATE into rate and rate_unit: 500pps, 10kpps, 2mpps, 30/min, 5/h, 50mbit, 1gbit. From 1/h
 * to 200 mpps and from 1 kbit to 400 gbit.
 */
enum status rate_parse(const char *text, struct sl_limit_spec *spec);

/*
 * Parses BURST into burst and burst_unit, for the rate already in `spec`: 2000 (packets, for a
 * packet rate), 64kB (for a bit rate), or a time, 250ms (for either).
 */
enum status burst_parse(const char *text, struct sl_limit_spec *spec);

/*
 * The burst of a limit that names none: a quarter of a second at its rate, but at least 8 packets,
 * or 128 kB: two frames of the size to which the kernel merges.
 */
void burst_default(struct sl_limit_spec *spec);

/*
 * Parses TIME, a positive number and one of ns, us, ms, s, min, h, d, into ns; at most 2 years. `what` names it
 * in messages.
 */
enum status time_parse(const char *what, const char *text, uint64_t *ret_ns);
const char *time_format(uint64_t ns, char text[UNITS_TEXT]);

/* A time that is left, as "27s": rounded up to a second, a short one to a millisecond. */
const char *left_format(uint64_t ns, char text[UNITS_TEXT]);

/* The same words back; what they print parses to the same spec. */
const char *rate_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT]);
const char *burst_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT]);

/* Reads a plain whole number, 0 to `most`. Returns what follows it; NULL: it is none. */
const char *number_read(const char *text, unsigned int most, unsigned int *ret);

/* The rate in packets or bits per second. */
double rate_per_second(const struct sl_limit_spec *spec);

#endif
