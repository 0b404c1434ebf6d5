// SPDX-License-Identifier: GPL-2.0
#include "base/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

#define MOUNTINFO "/proc/self/mountinfo"

static bool is_on_the_way(const char *point, const char *path)
{
	size_t length = strlen(point);

	return !strcmp(point, "/") ||
	       (!strncmp(point, path, length) && (!path[length] || path[length] == '/'));
}

/* "36 35 0:31 / /sys/fs/bpf rw,nosuid shared:11 - bpf bpf rw,mode=700" */
static bool line_parse(const char *line, dev_t *ret_device, struct mount *ret)
{
	unsigned int major, minor;
	const char *end = strchr(line, '\n'), *dash = strstr(line, " - ");

	if (!dash || (end && dash > end) ||
	    sscanf(line, "%*d %*d %u:%u %*s %255s", &major, &minor, ret->point) != 3 ||
	    sscanf(dash, " - %255s", ret->type) != 1)
		return false;
	*ret_device = makedev(major, minor);
	return true;
}

bool mount_hides_in(const char *text, const char *path, dev_t device, struct mount *ret)
{
	bool is_mounted = false, is_last = false;
	struct mount mount;
	dev_t found;

	/* a mount is listed after those that it covers */
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!line_parse(line, &found, &mount) || !is_on_the_way(mount.point, path))
			continue;
		is_last = found == device;
		is_mounted |= is_last;
		*ret = mount;
	}
	return is_mounted && !is_last;
}

bool mount_hides(const char *path, dev_t device, struct mount *ret)
{
	_cleanup_fclose_ FILE *file = fopen(MOUNTINFO, "re");
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	return file && getdelim(&text, &size, '\0', file) > 0 &&
	       mount_hides_in(text, path, device, ret);
}
