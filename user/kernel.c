// SPDX-License-Identifier: GPL-2.0
#include "kernel.h"

#include <stdio.h>
#include <sys/utsname.h>

#define OLDEST_MAJOR 6
#define OLDEST_MINOR 1

enum status kernel_check(const char *release)
{
	int major = 0, minor = 0;

	if (sscanf(release, "%d.%d", &major, &minor) == 2 &&
	    (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR)))
		return OK;
	return fail("this is Linux %s: sluice needs %d.%d or newer", release, OLDEST_MAJOR,
		    OLDEST_MINOR);
}

enum status kernel_require(void)
{
	struct utsname name;

	uname(&name);
	return kernel_check(name.release);
}
