// SPDX-License-Identifier: GPL-2.0
#include "base/host.h"

#include <bpf/libbpf.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#define OLDEST_MAJOR 6
#define OLDEST_MINOR 1

enum status kernel_check(const char *release)
{
	int major = 0, minor = 0;

	if (sscanf(release, "%d.%d", &major, &minor) == 2 &&
	    (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR)))
		return OK;
	return failure("this is Linux %s: sluice needs %d.%d or newer", release, OLDEST_MAJOR,
		       OLDEST_MINOR);
}

enum status kernel_require(void)
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

/* One more than the highest number of a possible CPU; 0: the file cannot be read. */
static unsigned int cpu_ids_read(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	unsigned int ids = 0;
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return 0;
	if (getline(&line, &size, file) > 0)
		ids = cpu_list_end(line);
	free(line);
	fclose(file);
	return ids;
}

enum status machine_get(struct machine *ret)
{
	struct timespec tick;
	int cpus = libbpf_num_possible_cpus();
	unsigned int ids = cpu_ids_read();

	if (cpus <= 0)
		return failure("cannot tell the number of CPUs: %s", why(cpus));
	if (!ids)
		return failure("cannot tell the numbers of the CPUs from "
			       "/sys/devices/system/cpu/possible");
	/* the coarse clock advances once a jiffy */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec)
		return failure("cannot tell the length of the kernel's tick");
	*ret = (struct machine){.cpus = cpus, .jiffy_ns = tick.tv_nsec, .cpu_ids = ids};
	return OK;
}
