/* SPDX-License-Identifier: GPL-2.0 */
/* What rules, and attachments and the rules of their gate, do to each other that their owner may not expect. */
#ifndef SLUICE_ADVICE_H
#define SLUICE_ADVICE_H

#include "attachment.h"
#include "ruleset.h"

/* Says what a new attachment brings with it: packets charged twice, or merged. */
enum status advice_attached(const struct gate *gate, const struct attachment *attachment);

/* Says which of these rules, just set, has a budget for newcomers that drops nothing: all of its limits only observe. */
void advice_newcomers(const struct rule *rules, unsigned int count);

#endif
