/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: replaces the programs of all attachments of a gate. Every packet meets the old or the new
 * program.
 */
#ifndef SLUICE_REPLACE_H
#define SLUICE_REPLACE_H

#include "attach/attachment.h"
#include "gate/gate.h"

/* One attachment that was replaced. */
struct replaced {
	struct attachment attachment; /* with its new program */
	uint32_t before;	      /* the old program's id */
};

struct replacements {
	struct replaced one[ATTACHMENTS_MAX];
	int program_fd[ATTACHMENTS_MAX]; /* the old programs, kept open for programs_restore() */
	unsigned int count;
};

/*
 * Replaces the programs of every attachment that is alive by those of this binary on the maps of
 * `next`, which may be the same gate, and reports the other attachments. All or none: if one fails,
 * those before it get their old programs back. The gate is open for a change. The caller closes
 * `ret`.
 */
int programs_replace(const struct gate *gate, const struct gate *next, struct replacements *ret);

void replacements_close(struct replacements *replacements);

#endif
