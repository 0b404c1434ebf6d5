/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: publishes the attachments of a gate for users that may only read the gate. Such users may
 * not open the gate's links, because an open link can be detached. So a command that changes
 * attachments also writes this file:
 *
 *   /run/sluice/GATE.json  mode 0640, owner of /run/sluice, group of the gate
 *
 * The administrator creates /run/sluice (tmpfiles.d); otherwise no file is written. The file is
 * used only if file_read_own() trusts it, and if it belongs to this gate, not to an earlier gate of
 * the same name.
 */
#ifndef SLUICE_PUBLISHED_H
#define SLUICE_PUBLISHED_H

#include "attach/attachment.h"

/* From where the list of attachments was read. */
enum sight {
	SIGHT_LINKS,	 /* read from the pinned bpf links, so `all` is up to date */
	SIGHT_PUBLISHED, /* read from the published file, so `all` may be out of date */
	SIGHT_NONE,	 /* the attachments cannot be read; a notice has the reason */
};

struct seen {
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	enum sight sight;
	uint64_t age_ns; /* age of the published file in ns, if `sight` is SIGHT_PUBLISHED */
};

/*
 * Reads the attachments of a gate. If they cannot be read, sets SIGHT_NONE, adds a notice, and
 * returns 0.
 */
int attachments_see(const struct gate *gate, struct seen *ret);

/*
 * attachments_publish() writes the gate's attachments to its published file. If that fails, adds a
 * notice instead of an error, because the gate filters packets without the file.
 * attachments_unpublish() removes the file of a removed gate.
 */
void attachments_publish(const struct gate *gate);
void attachments_unpublish(const struct gate *gate);

/* Formats the path of the published file. */
#define PUBLISHED_PATH (sizeof("/run/sluice/.json") + GATE_NAME)
const char *published_path(const struct gate *gate, char path[PUBLISHED_PATH]);

#endif
