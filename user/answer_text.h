/* SPDX-License-Identifier: GPL-2.0 */
/* What would come of a packet, in words. */
#ifndef SLUICE_ANSWER_TEXT_H
#define SLUICE_ANSWER_TEXT_H

#include "answer.h"

void answer_print(const struct gate *gate, const struct answer *answer);

#endif
