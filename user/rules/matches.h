/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: matches in words: any, udp port 53, tcp port 80,8000-8080 vlan 10, proto 47. */
#ifndef SLUICE_MATCHES_H
#define SLUICE_MATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"

#define MATCH_TEXT 160 /* room for any formatted match, with SL_PORTS_MAX ranges of ports */

int match_parse(const char *text, struct sl_match *ret);

/* Whether match_parse() could have made it. */
bool match_is_sound(const struct sl_match *match);

/* Whether it is an IPv6 extension header: on the way to the protocol, never the protocol itself. */
bool proto_is_extension(uint8_t proto);

/* Formats a match in words that parse to the same match. */
const char *match_format(const struct sl_match *match, char text[MATCH_TEXT]);

bool match_equal(const struct sl_match *a, const struct sl_match *b);

#endif
