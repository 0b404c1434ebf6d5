/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: trusts a file or directory by its owner. A file that a command creates gets the owner and
 * group of its directory, so that root and the user OWNER_USER can change the same gate.
 */
#ifndef SLUICE_OWNER_H
#define SLUICE_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>

#define OWNER_USER "sluice" /* the user of Sluice's services */

/* Returns whether a user is trusted: root, the effective user of this process, or OWNER_USER. */
bool owner_is_trusted(uid_t owner);

/* Returns whether the owner of a file is trusted, and no other user may write to the file. */
bool owner_alone_writes(const struct stat *st);

/* Returns the name of a user, or its number if it has no name. Valid until the next call. */
const char *owner_name(uid_t owner);

/* Returns the name of a group, or its number if it has no name. Valid until the next call. */
const char *group_name(gid_t group);

struct owner {
	uid_t user;
	gid_t group;
};

/*
 * Until owner_leave(), accesses files with the user and group that own a directory. New files then
 * belong to this user, and the kernel checks the user's permissions. So a symbolic link by the user
 * cannot make root change another user's files. Returns 0, -EACCES without CAP_SETUID, or another
 * negative errno.
 */
int owner_become(int directory, struct owner *ret_before);
void owner_leave(const struct owner *before);

#endif
