/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: parses and formats matches such as "any", "udp port 53" and "tcp port 80,8000-8080 vlan
 * 10".
 */
#ifndef SLUICE_MATCHES_H
#define SLUICE_MATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"

#define MATCH_TEXT 160 /* size of a buffer for a match with SL_PORTS_MAX port ranges */

/* Parses a match. Returns 0, or -EINVAL and adds an error. */
int match_parse(const char *text, struct sl_match *ret);

/* Returns whether match_parse() could have stored the match. */
bool match_is_sound(const struct sl_match *match);

/* Returns whether a number in a Next Header field means an IPv6 extension header. */
bool proto_is_extension(uint8_t proto);

/* Formats a match as words that can be parsed again. */
const char *match_format(const struct sl_match *match, char text[MATCH_TEXT]);

bool match_equal(const struct sl_match *a, const struct sl_match *b);

#endif
