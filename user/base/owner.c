// SPDX-License-Identifier: GPL-2.0
#include "base/owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

bool owner_is_trusted(uid_t owner)
{
	const struct passwd *user;

	if (!owner || owner == geteuid())
		return true;
	user = getpwnam(OWNER_USER);
	return user && user->pw_uid == owner;
}

bool owner_alone_writes(const struct stat *st)
{
	return owner_is_trusted(st->st_uid) && !(st->st_mode & 0022);
}

const char *owner_name(uid_t owner)
{
	static char number[16];
	const struct passwd *user = getpwuid(owner);

	snprintf(number, sizeof(number), "%u", owner);
	return user ? user->pw_name : number;
}

const char *group_name(gid_t group)
{
	static char number[16];
	const struct group *found = getgrgid(group);

	snprintf(number, sizeof(number), "%u", group);
	return found ? found->gr_name : number;
}

/* An invalid id: setfsuid(2) and setfsgid(2) then only return the present id. */
#define ID_SAME ((uid_t)-1)

int owner_become(int directory, struct owner *ret_before)
{
	struct owner before = {ID_SAME, ID_SAME};
	struct stat st;

	if (fstat(directory, &st))
		return -errno;
	/*
	 * skip a call that would change nothing, because seccomp (SystemCallFilter=) may forbid it
	 */
	if (st.st_gid != getegid())
		before.group = setfsgid(st.st_gid);
	if (st.st_uid != geteuid())
		before.user = setfsuid(st.st_uid);
	*ret_before = before;
	if (st.st_uid == geteuid() || (uid_t)setfsuid(ID_SAME) == st.st_uid)
		return 0;
	owner_leave(ret_before);
	return -EACCES;
}

void owner_leave(const struct owner *before)
{
	if (before->user != ID_SAME)
		setfsuid(before->user);
	if (before->group != ID_SAME)
		setfsgid(before->group);
}
