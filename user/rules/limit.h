/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rules: a limit as users specify it (struct limit), and a limit as packets read it (struct
 * sl_limit).
 */
#ifndef SLUICE_LIMIT_H
#define SLUICE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host.h"
#include "sluice.h"

/* Longest frame without VLAN tag on Ethernet with an MTU of 1,500, in bytes. */
#define FRAME_USUAL 1514

/* Longest horizon in ns. Qdisc fq drops packets whose departure is more than 10 s ahead. */
#define HORIZON_MAX_NS 10000000000ULL

/* A limit as users specify it. */
struct limit {
	struct sl_limit_spec spec;
	struct sl_match match;
	/* second rate, as in `rate 10kpps 100mbit`; `rate` is 0 if the limit has only one rate */
	struct {
		uint64_t rate;
		uint64_t burst;
		uint8_t burst_unit;
	} second;
};

/* Returns the second rate of a limit as a separate limit, which has its own slot. */
struct limit limit_second(const struct limit *limit);

/* Formats the label of a limit: NAME, or NAME:bits for the second of two rates. */
#define LIMIT_LABEL (SL_NAME + sizeof(":bits"))
const char *limit_label(const struct sl_limit_spec *spec, char text[LIMIT_LABEL]);

/*
 * Checks whether the numbers of a limit fit each other. A burst must be at least one packet, or one
 * byte for a bit rate, and must refill within two years. A frame may cost more than the burst
 * (include/credit.h). The horizon of a shaper must have room for a second packet. Returns 0, or
 * adds an error and returns -EINVAL.
 */
int limit_check(const struct sl_limit_spec *spec);

/* Returns whether the text is a valid name of a limit. A name in a map may lack its final NUL. */
bool limit_name_is_valid(const char name[SL_NAME]);

/*
 * Returns whether the numbers of a limit are valid. A caller that reads a spec from a map must call
 * this first, because all other functions require valid numbers.
 */
bool limit_is_sound(const struct sl_limit_spec *spec);

/* Returns the number of escalations after which a block has its longest time (include/kinds.h). */
unsigned int limit_escalations(const struct sl_limit_spec *spec);

/*
 * Compiles a limit for packets (include/kinds.h). If the limit has two rates, compiles only the
 * first. The limit must be valid: limit_check(). The compiled limit has the id of `limit`, and slot
 * 0.
 */
struct sl_limit limit_compile(const struct limit *limit, enum sl_family family,
			      const struct machine *machine);

/*
 * Returns whether a window allows less than one packet of the largest size that the kernel makes by
 * merging (GRO).
 */
bool limit_is_below_merged(const struct limit *limit);

/*
 * Returns whether a changed limit keeps its states. It keeps them if its key, its kind, and the
 * units and sub-windows of a window do not change.
 */
bool limit_keeps_states(const struct sl_limit_spec *old, const struct sl_limit_spec *new);

#endif
