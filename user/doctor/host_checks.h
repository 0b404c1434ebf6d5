/* SPDX-License-Identifier: GPL-2.0 */
/* Doctor: the kernel, what it lets this process do, and bpffs. */
#ifndef SLUICE_HOST_CHECKS_H
#define SLUICE_HOST_CHECKS_H

#include <stdbool.h>

#include "doctor/finding.h"

#define RELEASE_TEXT 65

/* What is there where systemd runs. */
#define SYSTEMD_RUNS "/run/systemd/system"

struct host_facts {
	char release[RELEASE_TEXT];
	const char *caps_missing; /* NULL: none */
	int bpf_err;		  /* of a request to bpf(2); 0: it was done */
	const char *missing;	  /* the first feature that the kernel lacks; NULL: none */
	char lockdown[32];	  /* "none", "integrity", "confidentiality"; "": not told */
	char *bpffs;		  /* why pins cannot be made or found; NULL: they can */
	int jit;		  /* net.core.bpf_jit_enable; -1: it cannot be read */
};

/* host_free() ends it. */
struct host_facts host_read(void);
void host_free(struct host_facts *facts);

void host_check(const struct host_facts *facts, struct findings *findings);

#endif
