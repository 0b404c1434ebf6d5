/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: publishes the attachments of a gate for the users that may only read the gate. They may
 * not open its links, because an open link can be detached. So a command that changes attachments
 * also writes them to a file:
 *
 *   /run/sluice/GATE.json  mode 0640, the owner of /run/sluice, the group of the gate
 *
 * The administrator makes /run/sluice (tmpfiles.d); without it no file is written. The file is used
 * only if file_read_own() trusts it, and if it belongs to the present gate, not to an earlier gate
 * of the same name.
 */
#ifndef SLUICE_PUBLISHED_H
#define SLUICE_PUBLISHED_H

#include "attach/attachment.h"

/* How the attachments were read. */
enum sight {
	SIGHT_LINKS,	 /* attachments were read from the links, so they are up to date */
	SIGHT_PUBLISHED, /* attachments were read from the file, and may be out of date */
	SIGHT_NONE,	 /* attachments could not be read; a notice contains the reason */
};

struct seen {
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	enum sight sight;
	uint64_t age_ns; /* age of the file if the sight is SIGHT_PUBLISHED */
};

/* Reads the attachments of a gate. Also returns 0 if they cannot be read: see SIGHT_NONE. */
int attachments_see(const struct gate *gate, struct seen *ret);

/*
 * Writes the attachments of a gate to its file. If that fails, adds a notice only, because packets
 * are filtered without the file. attachments_unpublish() removes the file of a removed gate.
 */
void attachments_publish(const struct gate *gate);
void attachments_unpublish(const struct gate *gate);

/* Formats the path of the file. */
#define PUBLISHED_PATH (sizeof("/run/sluice/.json") + GATE_NAME)
const char *published_path(const struct gate *gate, char path[PUBLISHED_PATH]);

#endif
