// SPDX-License-Identifier: GPL-2.0
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sys/syscall.h>

static const char *place_now;

const char *log_place(const char *place)
{
	const char *before = place_now;

	place_now = place;
	return before;
}

/* Prints a message as one line: it may quote any bytes, so control characters become '?'. */
static void say(const char *format, va_list args)
{
	char *text;

	fflush(stdout);
	if (vasprintf(&text, format, args) < 0) {
		fputs("sluice: out of memory\n", stderr);
		return;
	}
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	fprintf(stderr, "sluice: %s%s%s\n", place_now ?: "", place_now ? ": " : "", text);
	free(text);
}

enum status failure(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return FAILED;
}

enum status misuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return MISUSED;
}

void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

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
			return "the kernel does not permit it (lockdown, or a security module?)";
		snprintf(text, sizeof(text), "this needs %s: run it as root", missing);
		return text;
	case ENOMEM:
		return "out of memory (the machine's, or this control group's)";
	case ENOSPC:
		return "no space left in the map or file system";
	default:
		return strerror(err);
	}
}

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	return vfprintf(stderr, format, args);
}

void log_libbpf(bool verbose)
{
	libbpf_set_print(verbose ? print_libbpf : NULL);
}

/* --- Capabilities --------------------------------------------------------------------------- */

#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* CAP_SYS_ADMIN includes CAP_BPF, as in the kernel. */
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

	return missing ? failure("this needs %s: run it as root", missing) : OK;
}
