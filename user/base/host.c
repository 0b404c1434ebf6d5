// SPDX-License-Identifier: GPL-2.0
#include "base/host.h"

#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#define OLDEST_MAJOR 6
#define OLDEST_MINOR 1

int kernel_check(const char *release)
{
	int major = 0, minor = 0;

	if (sscanf(release, "%d.%d", &major, &minor) == 2 &&
	    (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR)))
		return 0;
	return failure("this is Linux %s: sluice needs %d.%d or newer", release, OLDEST_MAJOR,
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

/* Reads one more than the highest number of a possible CPU. */
static int cpu_ids_read(unsigned int *ret)
{
	FILE *file = fopen(POSSIBLE_CPUS, "re");
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return failure("cannot read " POSSIBLE_CPUS ": %s: 'mount -t sysfs sys /sys' if "
			       "there is no sysfs",
			       why(errno));
	*ret = getline(&line, &size, file) > 0 ? cpu_list_end(line) : 0;
	free(line);
	fclose(file);
	return *ret ? 0 : failure("cannot tell the numbers of the CPUs from " POSSIBLE_CPUS);
}

int machine_get(struct machine *ret)
{
	struct timespec tick;
	unsigned int ids;
	int status = cpu_ids_read(&ids);
	int cpus;

	if (status)
		return status;
	cpus = libbpf_num_possible_cpus();
	if (cpus <= 0)
		return failure("cannot tell the number of CPUs: %s", why(cpus));
	/* the coarse clock advances once a jiffy */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec)
		return failure("cannot tell the length of the kernel's tick");
	*ret = (struct machine){.cpus = cpus, .jiffy_ns = tick.tv_nsec, .cpu_ids = ids};
	return 0;
}
