// SPDX-License-Identifier: GPL-2.0
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "base/text.h"

const char *why(int err)
{
	static char text[128];
	const char *missing;

	err = abs(err);
	switch (err) {
	case EPERM:
	case EACCES:
		missing = caps_missing();
		if (!missing)
			return "the kernel does not permit it (without CAP_SYS_ADMIN, in lockdown, "
			       "or by a security module?)";
		snprintf(text, sizeof(text), "this needs %s: run it as root", missing);
		return text;
	case ENOMEM:
		return "out of memory (the machine's, or this control group's)";
	case EUCLEAN:
		return "an entry of its maps is damaged";
	case ENOSPC:
		return "no space left in the map or file system";
	default:
		return strerror(err);
	}
}

/* --- Capabilities --------------------------------------------------------------------------- */

/* In the order of a message. CAP_SYS_ADMIN includes the first two, as in the kernel. */
static const struct {
	const char *name;
	unsigned int number;
	bool is_of_admin;
} caps[] = {
	{"CAP_BPF", 39, true},
	{"CAP_PERFMON", 38, true},
	{"CAP_NET_ADMIN", CAP_NET_ADMIN, false},
};

const char *caps_missing(void)
{
	static char text[64];
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	unsigned long long effective;
	size_t length = 0;
	bool admin;

	if (syscall(SYS_capget, &header, data))
		return NULL;
	effective = (unsigned long long)data[1].effective << 32 | data[0].effective;
	admin = effective & 1ULL << CAP_SYS_ADMIN;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
		if (!(effective & 1ULL << caps[i].number || (admin && caps[i].is_of_admin)))
			length += snprintf(text + length, sizeof(text) - length, "%s%s",
					   length ? ", " : "", caps[i].name);
	return length ? text : NULL;
}

int caps_require(void)
{
	const char *missing = caps_missing();

	return missing ? error_add(EPERM, "rights", NULL, "this needs %s: run it as root", missing)
		       : 0;
}
