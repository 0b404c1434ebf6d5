// SPDX-License-Identifier: GPL-2.0
#include "base/host.h"

#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"

#define OLDEST_MAJOR 6
#define OLDEST_MINOR 1

int kernel_check(const char *release)
{
	int major = 0, minor = 0;

	if (sscanf(release, "%d.%d", &major, &minor) == 2 &&
	    (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR)))
		return 0;
	return error_add(EOPNOTSUPP, "kernel-old", NULL,
			 "this is Linux %s; sluice requires %d.%d or newer", release, OLDEST_MAJOR,
			 OLDEST_MINOR);
}

int kernel_require(void)
{
	struct utsname name;

	uname(&name);
	return kernel_check(name.release);
}

/* --- CPUs and the jiffy --------------------------------------------------------------------- */

unsigned int cpu_list_end(const char *list)
{
	const char *last = list;

	for (const char *c = list; *c; c++)
		if (*c == ',' || *c == '-')
			last = c + 1;
	return isdigit((unsigned char)*last) ? strtoul(last, NULL, 10) + 1 : 0;
}

#define POSSIBLE_CPUS "/sys/devices/system/cpu/possible"

int machine_get(struct machine *ret)
{
	_cleanup_fclose_ FILE *file = fopen(POSSIBLE_CPUS, "re");
	_cleanup_free_ char *line = NULL;
	int cpus = libbpf_num_possible_cpus();
	struct timespec tick;
	size_t size = 0;

	if (!file)
		return error_add(errno, "cpus", NULL,
				 "cannot read " POSSIBLE_CPUS ": %s; if sysfs is not mounted: "
				 "'mount -t sysfs sys /sys'",
				 why(errno));
	*ret = (struct machine){.cpus = cpus};
	if (getline(&line, &size, file) > 0)
		ret->cpu_ids = cpu_list_end(line);
	if (!ret->cpu_ids)
		return error_add(EIO, "cpus", NULL,
				 "cannot read the numbers of the CPUs from " POSSIBLE_CPUS);
	if (cpus <= 0)
		return error_add(cpus, "cpus", NULL, "cannot read the number of CPUs: %s",
				 why(cpus));
	/* the resolution of CLOCK_MONOTONIC_COARSE is a jiffy */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec)
		return error_add(EIO, "tick", NULL, "cannot read the length of the kernel's tick");
	ret->jiffy_ns = tick.tv_nsec;
	return 0;
}

/* --- Mounts --------------------------------------------------------------------------------- */

#define MOUNTINFO "/proc/self/mountinfo"

/* Returns whether a mount point is `path`, or a directory above it. */
static bool is_on_the_way(const char *point, const char *path)
{
	size_t length = strlen(point);

	return !strcmp(point, "/") ||
	       (!strncmp(point, path, length) && (!path[length] || path[length] == '/'));
}

/* Parses a line such as "36 35 0:31 / /sys/fs/bpf rw,nosuid shared:11 - bpf bpf rw,mode=700". */
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

	/* mounts are listed in order, so the last mount on the path hides earlier mounts */
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
