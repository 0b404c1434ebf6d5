// SPDX-License-Identifier: GPL-2.0
#include "bpffs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "netns.h"

#include "pins.h"

#define BPFFS_MAGIC 0xcafe4a11

/* 0: none, or it cannot be told. */
static int parent_of(int pid)
{
	char path[32], line[128];
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && !parent && fgets(line, sizeof(line), file))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	if (file)
		fclose(file);
	return parent;
}

static uint64_t mounts_of(int pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/*
 * `ip netns exec` makes a mount namespace that ends with the command, and with it would end the
 * pins and the filter. The tell: an ancestor lives in another one. Returns its pid; 0: none does.
 */
static int mounts_outside(void)
{
	uint64_t own = mounts_of(getpid());

	for (int pid = getppid(); pid > 0; pid = parent_of(pid)) {
		uint64_t theirs = mounts_of(pid);

		if (theirs && theirs != own)
			return pid;
	}
	return 0;
}

static bool bpffs_is_mounted(void)
{
	struct statfs fs;

	return !statfs(BPFFS, &fs) && (unsigned long)fs.f_type == BPFFS_MAGIC;
}

enum status bpffs_refuse_private(void)
{
	char option[NETNS_OPTION];
	int outside;

	if (bpffs_is_mounted())
		return OK;
	outside = mounts_outside();
	if (!outside)
		return OK;
	netns_option(netns_home(), netns_of_process(outside), option);
	if (*option)
		return fail("no bpffs in this mount namespace, and pins made in it would vanish "
			    "with it: write 'sluice %s...' outside of 'ip netns exec'",
			    option);
	return fail("no bpffs in this mount namespace, and pins made in it would vanish with it: "
		    "write 'nsenter -t %d -m sluice ...', or mount bpffs before it is made",
		    outside);
}

enum status bpffs_mount(void)
{
	enum status status = bpffs_refuse_private();

	if (status || bpffs_is_mounted())
		return status;
	if (mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return fail("cannot mount bpffs at " BPFFS ": %s",
			    errno == EPERM ? "this needs CAP_SYS_ADMIN: run it as root"
					   : why(errno));
	return OK;
}
