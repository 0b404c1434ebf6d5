/* SPDX-License-Identifier: GPL-2.0 */
/* Rules: a limit as users specify it, and its compiled form, which the packet path reads. */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host.h"
#include "sluice.h"

/* The longest Ethernet frame if the MTU is 1,500, in bytes. */
#define FRAME_USUAL 1514

/* The longest horizon, in ns: qdisc fq drops packets that depart more than 10 s from now. */
#define HORIZON_MAX_NS 10000000000ULL

/* A limit, in the units in which the user wrote it. */
struct limit {
	struct sl_limit_spec spec;
	struct sl_match match;
	/* bit rate of `rate 10kpps 100mbit`; `rate` here is 0 if the limit has only one rate */
	struct {
		uint64_t rate;
		uint64_t burst;
		uint8_t burst_unit;
	} second;
};

/* Returns the second rate as a limit of its own. It occupies a slot of its own. */
struct limit limit_second(const struct limit *limit);

/* Formats the name of a limit in its policy: NAME, or NAME:bits for the second of two rates. */
#define LIMIT_LABEL (SL_NAME + sizeof(":bits"))
const char *limit_label(const struct sl_limit_spec *spec, char text[LIMIT_LABEL]);

/*
 * Checks that the numbers of a limit fit each other. A burst must hold one packet, or one byte if
 * the rate is in bits, and refill within two years; a frame may cost more than the burst
 * (include/credit.h). The horizon of a shaper must hold a second packet. Returns 0, or -EINVAL and
 * adds an error.
 */
int limit_check(const struct sl_limit_spec *spec);

/* Returns whether the bytes are a valid limit name. A name from a map may lack its NUL. */
bool limit_name_is_valid(const char name[SL_NAME]);

/*
 * Returns whether the parser could have made these numbers. Specs from maps must be checked,
 * because all other functions rely on it.
 */
bool limit_is_sound(const struct sl_limit_spec *spec);

/* Returns how many escalations a block needs to reach its longest time (include/kinds.h). */
unsigned int limit_escalations(const struct sl_limit_spec *spec);

/*
 * Compiles the first rate of a limit for the packet path (include/kinds.h). The limit has passed
 * limit_check(). The result has the id of the spec, and slot 0.
 */
struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine);

/* Returns whether the N of a window is smaller than a packet that the kernel may merge (GRO). */
bool limit_is_below_merged(const struct limit *limit);

/*
 * Returns whether a changed limit keeps its states: key and kind are the same, and a window counts
 * in the same units and sub-windows.
 */
bool limit_keeps_states(const struct sl_limit_spec *old, const struct sl_limit_spec *new);

#endif
