// SPDX-License-Identifier: GPL-2.0
#include "doctor/host_checks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/host.h"
#include "gate/pins.h"

/* --- Reading -------------------------------------------------------------------------------- */

/* The types of maps and programs of bpf/maps.h and bpf/sluice.bpf.c. */
static const struct {
	const char *name;
	bool is_program;
	int type;
} features[] = {
	{"programs of type XDP", true, BPF_PROG_TYPE_XDP},
	{"programs of TC", true, BPF_PROG_TYPE_SCHED_CLS},
	{"maps of type array", false, BPF_MAP_TYPE_ARRAY},
	{"maps of type per-CPU array", false, BPF_MAP_TYPE_PERCPU_ARRAY},
	{"maps of type hash", false, BPF_MAP_TYPE_HASH},
	{"maps of type LPM trie", false, BPF_MAP_TYPE_LPM_TRIE},
};

static const char *missing_find(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		if (!(features[i].is_program ? libbpf_probe_bpf_prog_type(features[i].type, NULL)
					     : libbpf_probe_bpf_map_type(features[i].type, NULL)))
			return features[i].name;
	return NULL;
}

/* Makes the least map, which goes at once: what refuses that refuses everything. */
static int bpf_ask(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sl_doctor", 4, 4, 1, NULL);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static bool line_read(const char *path, char *ret, size_t size)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(ret, size, file);

	if (file)
		fclose(file);
	return read;
}

/* "none [integrity] confidentiality": the one in brackets. */
static void lockdown_read(char *ret, size_t size)
{
	char line[128], *begin, *end;

	if (!line_read("/sys/kernel/security/lockdown", line, sizeof(line)))
		return;
	begin = strchr(line, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (end)
		snprintf(ret, size, "%.*s", (int)(end - begin - 1), begin + 1);
}

struct host_facts host_read(void)
{
	struct host_facts facts = {.caps_missing = caps_missing(), .jit = -1};
	struct pins root = PINS_CLOSED;
	struct utsname name;
	char line[16], **before;

	uname(&name);
	snprintf(facts.release, sizeof(facts.release), "%s", name.release);
	facts.bpf_err = facts.caps_missing ? 0 : bpf_ask();
	if (!facts.caps_missing && !facts.bpf_err)
		facts.missing = missing_find();
	lockdown_read(facts.lockdown, sizeof(facts.lockdown));
	before = messages_keep(&facts.bpffs);
	if (!facts.caps_missing && !bpffs_refuse_private())
		pins_open_root(false, &root);
	messages_keep(before);
	pins_close(&root);
	if (line_read("/proc/sys/net/core/bpf_jit_enable", line, sizeof(line)))
		facts.jit = atoi(line);
	return facts;
}

void host_free(struct host_facts *facts)
{
	free(facts->bpffs);
	facts->bpffs = NULL;
}

/* --- Judging -------------------------------------------------------------------------------- */

void host_check(const struct host_facts *facts, struct findings *findings)
{
	char *old = NULL, **before = messages_keep(&old);
	bool is_old = kernel_check(facts->release);
	bool locked = *facts->lockdown && strcmp(facts->lockdown, "none");

	messages_keep(before);
	if (is_old) {
		finding_add(findings, FIND_KERNEL_OLD, "kernel", "%s", old ?: facts->release);
		finding_advise(findings, "uname -r");
	}
	free(old);
	if (facts->bpf_err) {
		finding_add(
			findings, FIND_BPF_REFUSED, "kernel",
			"it refuses bpf(2) to this process: %s%s%s", strerror(-facts->bpf_err),
			locked ? "; lockdown is in mode "
			       : "; seccomp, as in a container, or a security module may forbid it",
			locked ? facts->lockdown : "");
		finding_advise(findings, locked ? "cat /sys/kernel/security/lockdown"
						: "grep Seccomp: /proc/self/status");
	}
	if (facts->missing) {
		finding_add(findings, FIND_FEATURE_MISSING, "kernel",
			    "it was built without %s, which every gate needs", facts->missing);
		finding_advise(findings, "bpftool feature probe kernel");
	}
	if (facts->bpffs) {
		finding_add(findings, FIND_BPFFS, BPFFS, "%s", facts->bpffs);
		finding_advise(findings, "ls -ld %s %s/%s", BPFFS, BPFFS, PINS_ROOT);
	}
	if (facts->caps_missing) {
		finding_add(findings, FIND_RIGHTS, "process",
			    "doctor lacks %s here, and cannot look at all that there is",
			    facts->caps_missing);
		finding_advise(findings, "sudo sluice doctor");
	}
	if (!facts->jit) {
		finding_add(findings, FIND_NO_JIT, "kernel",
			    "BPF programs are interpreted, which takes ten times as long");
		finding_advise(findings, "sysctl net.core.bpf_jit_enable=1");
	}
}
