/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: attachments for readers of a gate. Whoever may open a link may detach it, so readers may
 * not. Commands that change attachments publish what they see, in a file:
 *
 *   /run/sluice/GATE.json  0640, of the owner and the group of the directory; replaced by rename
 *
 * The directory has its administrator made (tmpfiles.d), and without it nothing is published. What
 * is read there is believed only from root or the owner of the gate, and only of this very gate.
 */
#ifndef SLUICE_PUBLISHED_H
#define SLUICE_PUBLISHED_H

#include "attach/attachment.h"
#include "base/log.h"
#include "gate/gate.h"

/* Where attachments were read. */
enum sight {
	SIGHT_LINKS,	 /* from the links: they are so now */
	SIGHT_PUBLISHED, /* from the file: they were so */
	SIGHT_NONE,	 /* nowhere: what is attached is not known, and why was said */
};

struct seen {
	struct attachment all[ATTACHMENTS_MAX];
	time_t since[ATTACHMENTS_MAX]; /* when it was first published; 0: not published */
	unsigned int count;
	enum sight sight;
	uint64_t age_ns; /* of the file */
};

/*
 * Reads the attachments of a gate as far as the caller may see them. It is no failure that they
 * cannot be seen: a note says why.
 */
int attachments_see(const struct gate *gate, struct seen *ret);

/*
 * Publishes the attachments of a gate whose links are open. What cannot be written is noted, as the
 * filter does not depend on it. attachments_unpublish() is for a gate that is removed.
 */
void attachments_publish(const struct gate *gate);
void attachments_unpublish(const struct gate *gate);

/* The path of the file, for messages. */
#define PUBLISHED_PATH (sizeof("/run/sluice/.json") + GATE_NAME)
const char *published_path(const struct gate *gate, char path[PUBLISHED_PATH]);

#endif
