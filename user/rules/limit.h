/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: a limit as users mean it, and the compiled limit that the packet path reads. */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host.h"
#include "sluice.h"

/* The longest Ethernet frame of most networks, in bytes. */
#define FRAME_USUAL 1514

/* The longest horizon: the qdisc fq drops packets that would depart later. */
#define HORIZON_MAX_NS 10000000000ULL

/* A limit in the units in which it was written. */
struct limit {
	struct sl_limit_spec spec;
	struct sl_match match;
	/* `rate 10kpps 100mbit`: a bit rate beside the packet rate; rate 0: none */
	struct {
		uint64_t rate;
		uint64_t burst;
		uint8_t burst_unit;
	} second;
};

/* The limit of the second rate alone, which has a slot of its own. */
struct limit limit_second(const struct limit *limit);

/* The name of a limit in its policy: the second of two rates is NAME:bits. */
#define LIMIT_LABEL (SL_NAME + sizeof(":bits"))
const char *limit_label(const struct sl_limit_spec *spec, char text[LIMIT_LABEL]);

/*
 * Checks that the parts of a limit fit each other. A burst holds one packet, or one byte of a bit
 * rate, and refills in at most two years; a frame may cost more: include/credit.h. A horizon holds
 * a second packet.
 */
int limit_check(const struct sl_limit_spec *spec);

/* Whether the name can be the name of a limit. A name in a map need not end. */
bool limit_name_is_valid(const char name[SL_NAME]);

/* Whether words could have made these numbers, which every other function requires. */
bool limit_is_sound(const struct sl_limit_spec *spec);

/* How often a block is multiplied until it is as long as the longest: include/kinds.h. */
unsigned int limit_escalations(const struct sl_limit_spec *spec);

/*
 * Computes what the packet path reads (include/kinds.h), of the first rate if there are two. The
 * limit has passed limit_check(). Its id is the spec's; its slot is 0.
 */
struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine);

/* Whether a window is smaller than a packet that the kernel has merged of many may be. */
bool limit_is_below_merged(const struct limit *limit);

/*
 * Whether a limit that is changed keeps its states: it has the same key and kind, and a window
 * counts in the same units and sub-windows.
 */
bool limit_keeps_states(const struct sl_limit_spec *old, const struct sl_limit_spec *new);

#endif
