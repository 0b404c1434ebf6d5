/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: rates, bursts and times in words. */
#ifndef SLUICE_UNITS_H
#define SLUICE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "sluice.h"

#define UNITS_TEXT 32 /* room for any formatted rate or burst */

/* Whether a word alone is a unit of a rate, an amount or a time. */
bool unit_is_known(const char *word);

/*
 * Parses RATE into rate and rate_unit: 500pps, 10kpps, 2mpps, 30/min, 5/h, 50mbit, 1gbit. The range
 * is 1/h to 200 mpps, and 1 kbit to 400 gbit.
 */
int rate_parse(const char *text, struct sl_limit_spec *spec);

/* Whether rate_parse() could have made the rate. */
bool rate_is_sound(const struct sl_limit_spec *spec);

/*
 * Parses BURST into burst and burst_unit. The rate is in `spec` already: 2000 (packets) needs a
 * packet rate, 64kB a bit rate, and 250ms either.
 */
int burst_parse(const char *text, struct sl_limit_spec *spec);

/*
 * Parses an amount, 1000 (packets) or 10MB, and tells its unit as that of a rate: SL_RATE_PPS or
 * SL_RATE_BITS. what: the word for it in messages.
 */
int amount_parse(const char *what, const char *text, uint64_t *ret, uint8_t *ret_unit);
const char *amount_format(uint64_t amount, uint8_t unit, char text[UNITS_TEXT]);

/*
 * Sets the default burst: one second of the rate, at least 64 packets or 256 kB. Honest clients
 * send in bursts, so a shorter burst drops their packets far below the rate. TC passes on merged
 * packets of up to 45 segments or 64 kB, which the least bursts hold.
 */
void burst_default(struct sl_limit_spec *spec);

/*
 * Parses TIME, a positive number and one of ns, us, ms, s, min, h, d, or a sum of these, 1h30m,
 * into ns; at most 2 years. Units may be written out, and blanks may precede them: 5 minutes.
 * what: the word for it in messages.
 */
int time_parse(const char *what, const char *text, uint64_t *ret_ns);
const char *time_format(uint64_t ns, char text[UNITS_TEXT]);

/*
 * Formats a remaining time, such as "27s": rounded up to a second, or below one to a millisecond.
 */
const char *left_format(uint64_t ns, char text[UNITS_TEXT]);

/* Format a rate and a burst in words that parse to the same values. */
const char *rate_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT]);
const char *burst_format(const struct sl_limit_spec *spec, char text[UNITS_TEXT]);

/*
 * Parses a whole number of 0 to `most`, without leading zeros. Returns what follows it, or NULL if
 * there is no such number.
 */
const char *number_read(const char *text, unsigned int most, unsigned int *ret);

/* The rate in packets or bits per second; of a window, that of all it lets pass. */
double rate_per_second(const struct sl_limit_spec *spec);

#endif
