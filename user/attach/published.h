/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: attachments for readers of a gate. Readers may not open links, because an open link can
 * be detached. So commands that change attachments publish them in a file:
 *
 *   /run/sluice/GATE.json  0640, of the owner of the directory and the group of the gate
 *
 * The administrator makes the directory (tmpfiles.d). Without it nothing is published. The file is
 * used only if file_read_own() trusts it, and only for the gate that it was written for.
 */
#ifndef SLUICE_PUBLISHED_H
#define SLUICE_PUBLISHED_H

#include "attach/attachment.h"

/* The source of the attachments. */
enum sight {
	SIGHT_LINKS,	 /* from the links: they are present */
	SIGHT_PUBLISHED, /* from the file: they existed when it was written */
	SIGHT_NONE,	 /* nowhere: a notice gives the reason */
};

struct seen {
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	enum sight sight;
	uint64_t age_ns; /* of the file */
};

/* Reads the attachments of a gate. SIGHT_NONE is no failure. */
int attachments_see(const struct gate *gate, struct seen *ret);

/*
 * Publishes the attachments of a gate whose links are open. A failure adds a notice, because the
 * filter does not depend on the file. attachments_unpublish() is for a gate that is removed.
 */
void attachments_publish(const struct gate *gate);
void attachments_unpublish(const struct gate *gate);

/* Formats the path of the file. */
#define PUBLISHED_PATH (sizeof("/run/sluice/.json") + GATE_NAME)
const char *published_path(const struct gate *gate, char path[PUBLISHED_PATH]);

#endif
