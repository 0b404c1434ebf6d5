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

#include "base/array.h"
#include "base/text.h"

static const char *place_now;

const char *log_place(const char *place)
{
	const char *before = place_now;

	place_now = place;
	return before;
}

/* --- Priorities of the journal -------------------------------------------------------------- */

/* As in sd-daemon.h and syslog(3). */
enum priority {
	PRIORITY_ERR = 3,
	PRIORITY_WARNING = 4,
	PRIORITY_NOTICE = 5,
	PRIORITY_INFO = 6,
};

bool journal_reads(const char *stream, const struct stat *st)
{
	unsigned long long device, inode;
	int length = 0;

	if (!stream || sscanf(stream, "%llu:%llu%n", &device, &inode, &length) != 2)
		return false;
	return !stream[length] && device == st->st_dev && inode == st->st_ino;
}

static bool stderr_is_journal(void)
{
	static int is = -1;
	struct stat st;

	if (is < 0)
		is = !fstat(STDERR_FILENO, &st) && journal_reads(getenv("JOURNAL_STREAM"), &st);
	return is;
}

/* --- Messages ------------------------------------------------------------------------------- */

static bool muted;

bool log_mute(bool mute)
{
	bool before = muted;

	muted = mute;
	return before;
}

static bool (*filter)(void *data, const char *message);
static void *filter_data;

void log_filter(bool (*wanted)(void *data, const char *message), void *data)
{
	filter = wanted;
	filter_data = data;
}

/* Prints a message as one line. Names in the text and in the place may contain any bytes. */
static void say(enum priority priority, const char *format, va_list args)
{
	char *text, lead[8] = "";

	fflush(stdout);
	if (vasprintf(&text, format, args) < 0) {
		fputs("sluice: out of memory\n", stderr);
		return;
	}
	text_make_printable(text);
	if (stderr_is_journal())
		snprintf(lead, sizeof(lead), "<%d>", priority);
	if (!filter || priority == PRIORITY_INFO || filter(filter_data, text))
		fprintf(stderr, "%ssluice: %s%s%s\n", lead, name_shown(place_now ?: ""),
			place_now ? ": " : "", text);
	free(text);
}

enum status failure(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(PRIORITY_ERR, format, args);
	va_end(args);
	return FAILED;
}

enum status misuse(const char *format, ...)
{
	va_list args;

	if (muted)
		return MISUSED;
	va_start(args, format);
	say(PRIORITY_ERR, format, args);
	va_end(args);
	return MISUSED;
}

void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(PRIORITY_NOTICE, format, args);
	va_end(args);
}

void warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(PRIORITY_WARNING, format, args);
	va_end(args);
}

void inform(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(PRIORITY_INFO, format, args);
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
			return "the kernel does not permit it (without CAP_SYS_ADMIN, in lockdown, "
			       "or by a security module?)";
		snprintf(text, sizeof(text), "this needs %s: run it as root", missing);
		return text;
	case ENOMEM:
		return "out of memory (the machine's, or this control group's)";
	case EUCLEAN:
		return "an entry of its maps is damaged";
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

/* In the order of a message. CAP_SYS_ADMIN includes the first two, as in the kernel. */
static const struct {
	const char *name;
	unsigned int number;
	bool is_of_admin;
} caps[] = {
	{"CAP_BPF", 39, true},
	{"CAP_PERFMON", 38, true},
	{"CAP_NET_ADMIN", CAP_NET_ADMIN, false},
};

const char *caps_missing(void)
{
	static char text[64];
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	unsigned long long effective;
	size_t length = 0;
	bool admin;

	if (syscall(SYS_capget, &header, data))
		return NULL;
	effective = (unsigned long long)data[1].effective << 32 | data[0].effective;
	admin = effective & 1ULL << CAP_SYS_ADMIN;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
		if (!(effective & 1ULL << caps[i].number || (admin && caps[i].is_of_admin)))
			length += snprintf(text + length, sizeof(text) - length, "%s%s",
					   length ? ", " : "", caps[i].name);
	return length ? text : NULL;
}

enum status caps_require(void)
{
	const char *missing = caps_missing();

	return missing ? failure("this needs %s: run it as root", missing) : OK;
}
