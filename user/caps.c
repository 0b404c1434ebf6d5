// SPDX-License-Identifier: GPL-2.0
#include "caps.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <linux/capability.h>
#include <sys/syscall.h>

#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* CAP_SYS_ADMIN stands for both, as it does in the kernel. */
const char *caps_missing(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	unsigned long long effective;
	bool admin, bpf, net;

	if (syscall(SYS_capget, &header, data))
		return NULL;
	effective = (unsigned long long)data[1].effective << 32 | data[0].effective;
	admin = effective & 1ULL << CAP_SYS_ADMIN;
	bpf = admin || effective & 1ULL << CAP_BPF;
	net = effective & 1ULL << CAP_NET_ADMIN;
	if (!bpf && !net)
		return "CAP_BPF and CAP_NET_ADMIN";
	if (!bpf)
		return "CAP_BPF";
	return net ? NULL : "CAP_NET_ADMIN";
}

enum status caps_require(void)
{
	const char *missing = caps_missing();

	return missing ? fail("this needs %s: run it as root", missing) : OK;
}
