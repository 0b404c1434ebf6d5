/* SPDX-License-Identifier: GPL-2.0 */
/* The way back from a resize whose new gate has not begun. */
#ifndef SLUICE_RESIZE_UNDO_H
#define SLUICE_RESIZE_UNDO_H

#include "gate.h"

/* Puts all devices on the gate's own maps again, and drops the new ones, which are pinned in `next`. */
enum status resize_undo(const struct gate *gate, const struct pins *next);

#endif
