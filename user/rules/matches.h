/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: parses and formats matches such as "any", "udp port 53" and "tcp flags syn,!ack to
 * 192.0.2.0/24". A match is a kind of packet, and words that compare further fields. The words are
 * in any order. A packet must match the kind and all words.
 */
#ifndef SLUICE_MATCHES_H
#define SLUICE_MATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice.h"

#define MATCH_TEXT 352 /* size of a buffer for a match with all words and all port ranges */
#define PORTS_TEXT 104 /* size of a buffer for the value of one word of a match */

/* Parses a match. Returns 0, or -EINVAL and adds an error. */
int match_parse(const char *text, struct sl_match *ret);

/* Returns whether match_parse() could have stored the match. */
bool match_is_sound(const struct sl_match *match);

/* Returns whether a number in a Next Header field means an IPv6 extension header. */
bool proto_is_extension(uint8_t proto);

/* Formats a match as words that can be parsed again. */
const char *match_format(const struct sl_match *match, char text[MATCH_TEXT]);

/*
 * Parses TCP flags such as "syn,!ack": `!` means that the flag is not set. Returns 0 or -EINVAL;
 * adds no error.
 */
int flags_read(const char *text, uint8_t *ret_mask, uint8_t *ret_flags);

const char *flags_format(uint8_t mask, uint8_t flags, char text[PORTS_TEXT]);

/*
 * Parses the number or the name of an ICMP message into its type in ICMP and in ICMPv6. Returns 0
 * or -EINVAL; adds no error.
 */
int icmp_type_read(const char *text, uint16_t ret[SL_FAMILIES]);

const char *icmp_type_format(const uint16_t type[SL_FAMILIES], char text[PORTS_TEXT]);

/* Returns the prefix after the word `to`. */
struct sl_prefix match_to_prefix(const struct sl_match *match);

bool match_equal(const struct sl_match *a, const struct sl_match *b);

#endif
