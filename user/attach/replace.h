/* SPDX-License-Identifier: GPL-2.0 */
/* Putting other programs under all attachments of a gate, with no packet in between that none judges. */
#ifndef SLUICE_REPLACE_H
#define SLUICE_REPLACE_H

#include "attach/attachment.h"
#include "gate/object.h"

/* One attachment that was replaced. */
struct replaced {
	struct attachment attachment; /* with the new program */
	uint32_t before;	      /* the old program's id */
};

struct replacements {
	struct replaced one[ATTACHMENTS_MAX];
	int program_fd[ATTACHMENTS_MAX]; /* the old programs, held so that they can be had back */
	unsigned int count;
	uint64_t began; /* just before the first, in ticks */
};

/*
 * Switches every attachment that is alive to these programs; says which are not. All or none: if one cannot be
 * replaced, those before it get their programs back. The gate is open to change. The caller closes `ret`.
 */
enum status programs_replace(const struct gate *gate, const struct programs *programs,
			     struct replacements *ret);

/* Puts the programs of before back under all of them; says where that fails. */
bool programs_restore(const struct gate *gate, struct replacements *replacements);

void replacements_close(struct replacements *replacements);

#endif
