/* SPDX-License-Identifier: GPL-2.0 */
/* Top: the header lines above a view, and the footer, for the screen and for batch mode. */
#ifndef SLUICE_TOP_HEADER_H
#define SLUICE_TOP_HEADER_H

#include "top/glyphs.h"

enum header_row {
	HEADER_TITLE,
	HEADER_PASSED,
	HEADER_DROPPED,
	HEADER_REASONS,
	HEADER_NEW,
	HEADER_DEVICES,
	HEADER_FINDING,
	HEADER_ROWS,
};

#define HEADER_LINE 512

struct header {
	char line[HEADER_ROWS][HEADER_LINE];
	char footer[HEADER_LINE];
	bool drops; /* packets are being dropped */
	bool warns; /* new sources flood the gate, or the gate has a finding */
};

/* spark: width of a sparkline in characters; 0: no sparklines */
void header_build(const struct live *live, uint64_t interval_ns, unsigned int spark,
		  struct header *ret);

#endif
