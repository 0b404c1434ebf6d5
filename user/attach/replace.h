/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: replaces the programs of all attachments of a gate. Every packet meets the old or the new
 * program.
 */
#ifndef SLUICE_REPLACE_H
#define SLUICE_REPLACE_H

#include "attach/attachment.h"

struct replacements {
	struct replaced {
		struct attachment attachment; /* with its new program */
		uint32_t before;	      /* the id of the old program */
		int program_fd;		      /* the old program, to put it back */
	} one[ATTACHMENTS_MAX];
	unsigned int count;
};

/*
 * Replaces the programs of every attachment that is alive by those of this binary on the maps of
 * `next`, which may be the same gate, and adds a notice for each other attachment. All or none: if
 * a replacement fails, those before it are undone. The gate is open for a change. The caller
 * closes `ret`.
 */
int programs_replace(const struct gate *gate, const struct gate *next, struct replacements *ret);

void replacements_close(struct replacements *replacements);

#endif
