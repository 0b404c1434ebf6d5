/* SPDX-License-Identifier: GPL-2.0 */
/* Suggest: functions that the files of this directory share. */
#ifndef SLUICE_SUGGEST_PARTS_H
#define SLUICE_SUGGEST_PARTS_H

#include "suggest/suggest.h"

/* Returns whether a packet counts in a class. */
bool suggest_is_of(const struct suggest *suggest, enum suggest_class class,
		   const struct suggest_packet *packet);

/* Returns the time of a packet in ticks since the first packet. */
uint64_t suggest_ticks(const struct suggest *suggest, const struct suggest_packet *packet);

/* Stores the key under which a limit of this scope counts a packet. */
void suggest_key(enum suggest_scope scope, const struct suggest_packet *packet, __u64 ret[2]);

/*
 * Chooses a step of a curve. A step qualifies if its burst refills within a second or a tenth of
 * the capture, so that the capture shows ten such spans. The knee is the step that lets the fewest
 * packets pass in one second, which is its rate plus its burst.
 */
void curve_choose(struct suggest_curve *curve, uint64_t span_ns);

/* Sets the rate and the burst of a limit to the knee of a curve, plus the headroom in per cent. */
void limit_of_curve(struct limit *limit, const struct suggest_curve *curve, unsigned int headroom);

/* Adds packets of a source, which was already added to the population of all sources. */
void newcomers_add(struct suggest *suggest, const struct member *source, uint64_t now,
		   uint32_t packets);

/* Proposes a budget. The limits must have been proposed. */
void newcomers_propose(struct suggest *suggest);

#endif
