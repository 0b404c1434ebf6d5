/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the messages of a task that is tried again and again. What the try before said, too, is not
 * printed again, so that a cause is in the log once.
 */
#ifndef SLUICE_TROUBLES_H
#define SLUICE_TROUBLES_H

#include <stdbool.h>

struct messages {
	char **list;
	unsigned int count, room;
};

struct troubles {
	struct messages before, now;
	const struct troubles *other; /* of troubles_begin() */
};

/*
 * Enclose a try. Not to be nested. other: of a task that finds the same causes; what its last try
 * said is not printed either. NULL: there is none.
 */
void troubles_begin(struct troubles *troubles, const struct troubles *other);
void troubles_end(struct troubles *troubles);

/* Forgets what was said: the next message is printed whatever it is. */
void troubles_free(struct troubles *troubles);

#endif
