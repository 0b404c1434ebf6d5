/* SPDX-License-Identifier: GPL-2.0 */
/* All counters of a gate at one look: what `stats` and `export` tell. */
#ifndef SLUICE_TALLY_H
#define SLUICE_TALLY_H

#include "counters.h"
#include "gate.h"
#include "prefix.h"

struct tally_line {
	char policy[PREFIX_TEXT]; /* a prefix; "none": no rule; "deleted": rules that were */
	bool is_rule;
	struct sl_counters counters;
};

struct tally {
	struct tally_line *lines; /* "none", the rules in order, "deleted" */
	unsigned int count;
	struct sl_counters total;
};

/* Reads per-CPU arrays only. The caller frees it with tally_free(). */
enum status tally_read(const struct gate *gate, struct tally *ret);
void tally_free(struct tally *tally);

/* Whether a line has anything to say of a reason: it can occur there, or it did. */
bool tally_has(const struct tally_line *line, int reason);

#endif
