/* SPDX-License-Identifier: GPL-2.0 */
/* Suggest: functions that only the files of this directory use. */
#ifndef SLUICE_SUGGEST_PARTS_H
#define SLUICE_SUGGEST_PARTS_H

#include "suggest/suggest.h"

/* Returns whether a packet belongs to a class. */
bool suggest_is_of(const struct suggest *suggest, enum suggest_class class,
		   const struct suggest_packet *packet);

/* Returns the time from the first packet to a packet, in ticks. */
uint64_t suggest_ticks(const struct suggest *suggest, const struct suggest_packet *packet);

/* Stores the key of a packet under a limit of this scope. */
void suggest_key(enum suggest_scope scope, const struct suggest_packet *packet, __u64 ret[2]);

/*
 * Sets curve->knee. A rate of the ladder qualifies if its burst refills within a second, or within
 * a tenth of the capture. The knee is the qualified rate with the lowest sum of rate and burst.
 */
void curve_choose(struct suggest_curve *curve, uint64_t span_ns);

/* Sets the rate and the burst of a limit to the knee of a curve, plus `headroom` per cent. */
void limit_of_curve(struct limit *limit, const struct suggest_curve *curve, unsigned int headroom);

/*
 * Adds packets of a source to the counts of new sources. The source must be in the population of
 * all sources.
 */
void newcomers_add(struct suggest *suggest, const struct member *source, uint64_t now,
		   uint32_t packets);

/* Second reading: adds a packet that limit `all` passes to the burst of the budget. */
void newcomers_try(struct suggest *suggest, const struct member *source, uint64_t now,
		   uint32_t packets);

/* Proposes the budget for new sources. Call it after the limits were proposed. */
void newcomers_propose(struct suggest *suggest);

#endif
