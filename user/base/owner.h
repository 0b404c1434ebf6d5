/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: whose files and directories are trusted. What a command makes in a directory belongs to
 * the directory's owner and group, so that root and the user OWNER_USER can change the same gate.
 */
#ifndef SLUICE_OWNER_H
#define SLUICE_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>

#define OWNER_USER "sluice" /* the user that may run Sluice without being root */

/* Whether files of this owner are trusted: it is root, the caller, or OWNER_USER. */
bool owner_is_trusted(uid_t owner);

/* Whether a file has a trusted owner, and its group and others may not write to it. */
bool owner_alone_writes(const struct stat *st);

/* The name of a user, or the number of one without a name. Lives until the next call. */
const char *owner_name(uid_t owner);

/* The name of a group, or the number of one without a name. Lives until the next call. */
const char *group_name(gid_t group);

struct owner {
	uid_t user;
	gid_t group;
};

/*
 * Makes files as the owner of the open directory, until owner_leave(): the kernel gives what is
 * made to that user, and checks each access as the user's. So a directory of another user cannot
 * make root change a file elsewhere. Returns 0 or a negative errno; -EACCES: it is another user's,
 * and this takes CAP_SETUID.
 */
int owner_become(int directory, struct owner *ret_before);
void owner_leave(const struct owner *before);

#endif
