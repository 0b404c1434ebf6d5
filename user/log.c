// SPDX-License-Identifier: GPL-2.0
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/libbpf.h>

#include "caps.h"

static const char *place_now;

const char *log_place(const char *place)
{
	const char *before = place_now;

	place_now = place;
	return before;
}

/* One line, whatever was typed: a message may quote any bytes. */
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

enum status fail(const char *format, ...)
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
