// SPDX-License-Identifier: GPL-2.0
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"

static _Thread_local struct {
	struct sl_error *items;
	unsigned int count, room;
	bool has_lost; /* an error was lost, because there was no memory to store it */
} list;

static char out_of_memory[] = "out of memory";

static const struct sl_error lost = {.id = "no-memory", .text = out_of_memory};

/*
 * Formats text, hint and object of an item. Splits `format` at its first "; ". Does not split the
 * formatted text, because an argument may contain "; ". Returns false if there is no memory.
 */
static bool texts_make(struct sl_error *error, const char *object, const char *format, va_list args)
{
	const char *end = strstr(format, "; ");
	_cleanup_free_ char *first = end ? strndup(format, end - format) : NULL;
	int split = -1;
	va_list again;

	va_copy(again, args);
	if (first)
		split = vsnprintf(NULL, 0, first, again);
	va_end(again);
	if (vasprintf(&error->text, format, args) < 0) {
		error->text = NULL;
		return false;
	}
	if (split >= 0)
		error->text[split] = '\0';
	error->hint = strdup(split >= 0 ? error->text + split + 2 : "");
	error->object = strdup(object ?: "");
	if (!error->hint || !error->object)
		return false;
	text_make_printable(error->object);
	text_make_printable(error->text);
	text_make_printable(error->hint);
	return true;
}

static void error_free(struct sl_error *error)
{
	free(error->object);
	if (error->text != out_of_memory)
		free(error->text);
	free(error->hint);
}

/*
 * Appends an error to the list. If there is no memory for its text, appends "out of memory". If
 * there is no memory for a new item, sets has_lost.
 */
static void append(struct sl_error error, const char *object, const char *format, va_list args)
{
	if (!array_grow(list.items, list.count, list.room)) {
		list.has_lost = true;
		return;
	}
	if (!texts_make(&error, object, format, args)) {
		error_free(&error);
		error = lost;
	}
	list.items[list.count++] = error;
}

#define APPEND(...)                                                                                \
	do {                                                                                       \
		va_list args;                                                                      \
		va_start(args, format);                                                            \
		append((struct sl_error){__VA_ARGS__}, object, format, args);                      \
		va_end(args);                                                                      \
	} while (0)

int error_add(int err, const char *id, const char *object, const char *format, ...)
{
	APPEND(.id = id, .severity = SL_ERROR);
	return err ? -abs(err) : -EIO;
}

int error_misuse(const char *id, const char *object, const char *format, ...)
{
	APPEND(.id = id, .severity = SL_ERROR, .is_misuse = true);
	return -EINVAL;
}

void error_warn(const char *id, const char *object, const char *format, ...)
{
	APPEND(.id = id, .severity = SL_WARNING);
}

void error_notice(const char *id, const char *object, const char *format, ...)
{
	APPEND(.id = id, .severity = SL_NOTICE);
}

void error_inform(const char *id, const char *object, const char *format, ...)
{
	APPEND(.id = id, .severity = SL_INFO);
}

unsigned int error_count(void)
{
	return list.count;
}

const struct sl_error *error_get(unsigned int index)
{
	return &list.items[index];
}

const struct sl_error *error_last(unsigned int mark)
{
	for (unsigned int i = list.count; i > mark; i--)
		if (list.items[i - 1].severity == SL_ERROR)
			return &list.items[i - 1];
	return list.has_lost ? &lost : NULL;
}

void error_drop(unsigned int mark)
{
	while (list.count > mark)
		error_free(&list.items[--list.count]);
	list.has_lost = false;
	if (!list.count) {
		free(list.items);
		list.items = NULL;
		list.room = 0;
	}
}

void error_remove(unsigned int index)
{
	struct sl_error removed = list.items[index];

	memmove(&list.items[index], &list.items[index + 1],
		(list.count - index - 1) * sizeof(removed));
	list.items[list.count - 1] = removed;
	error_drop(list.count - 1);
}

void error_place(unsigned int mark, const char *place)
{
	for (unsigned int i = mark; i < list.count; i++) {
		struct sl_error *error = &list.items[i];
		char *object;

		if (!error->object || asprintf(&object, "%s%s%s", place, *error->object ? ": " : "",
					       error->object) < 0)
			continue;
		text_make_printable(object);
		free(error->object);
		error->object = object;
	}
}

char *error_format(const struct sl_error *error)
{
	const char *object = error->object ?: "", *hint = error->hint ?: "";
	char *text;

	if (asprintf(&text, "%s%s%s%s%s", object, *object ? ": " : "", error->text,
		     *hint ? "; " : "", hint) < 0)
		return NULL;
	return text;
}

/* --- Errno and capabilities ----------------------------------------------------------------- */

/* The capabilities that Sluice requires, in the order in which messages list them. */
static const struct {
	const char *name;
	unsigned int number;
	bool is_of_admin; /* this capability is included in CAP_SYS_ADMIN */
} caps[] = {
	{"CAP_BPF", 39, true},
	{"CAP_PERFMON", 38, true},
	{"CAP_NET_ADMIN", CAP_NET_ADMIN, false},
};

const char *caps_missing(void)
{
	static _Thread_local char text[64];
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

bool in_user_namespace(void)
{
	const ino_t initial = 0xEFFFFFFD; /* PROC_USER_INIT_INO of the kernel */
	struct stat st;

	return !stat("/proc/self/ns/user", &st) && st.st_ino != initial;
}

int host_users_require(void)
{
	return in_user_namespace()
		       ? error_add(EPERM, "user-namespace", NULL,
				   "this process is in a user namespace, whose capabilities bpf(2) "
				   "ignores; use a container without one, or filter on the host")
		       : 0;
}

/* Returns a text about missing capabilities, which is valid until the next call. */
static const char *caps_text(const char *missing)
{
	static _Thread_local char text[128];

	snprintf(text, sizeof(text), "this needs %s%s", missing,
		 geteuid() ? ": run it as root"
			   : ", which this container or service does not have");
	return text;
}

int caps_require(void)
{
	const char *missing = caps_missing();

	return missing ? error_add(EPERM, "rights", NULL, "%s", caps_text(missing))
		       : host_users_require();
}

const char *why(int err)
{
	const char *missing;

	err = abs(err);
	switch (err) {
	case EPERM:
	case EACCES:
		missing = caps_missing();
		if (missing)
			return caps_text(missing);
		if (in_user_namespace())
			return "the kernel does not permit it in a user namespace";
		if (err == EACCES)
			return "the kernel denies it (the mode of a file, the verifier, or a "
			       "security module such as AppArmor?)";
		return prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER
			       ? "forbidden by seccomp (allow bpf in the container or service), "
				 "lockdown or a security module"
			       : "the kernel does not permit it (without CAP_SYS_ADMIN, in "
				 "lockdown, or by a security module?)";
	case ENOMEM:
		return "out of memory (the machine's, or this control group's)";
	case EROFS:
		return "the file system is mounted read-only; mount it read-write";
	case EUCLEAN:
		return "an entry of its maps is damaged";
	case ENOSPC:
		return "no space left in the map or file system";
	default:
		return strerror(err);
	}
}

/* --- Printing ------------------------------------------------------------------------------- */

static void (*printer)(const struct sl_error *error);

void error_set_printer(void (*print)(const struct sl_error *error))
{
	printer = print;
}

void error_flush(void)
{
	for (unsigned int i = 0; printer && i < list.count; i++)
		printer(&list.items[i]);
	if (printer && list.has_lost)
		printer(&lost);
	error_drop(0);
}
