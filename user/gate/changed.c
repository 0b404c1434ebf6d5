// SPDX-License-Identifier: GPL-2.0
#include "gate/changed.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/owner.h"
#include "base/text.h"

#define RUN_DIR	    "/run/sluice"
#define CHANGE_PATH (sizeof(RUN_DIR "/.change") + GATE_NAME)

/* Largest accepted file, in bytes. JSON needs at most 6 bytes for each byte of the command line. */
#define CHANGE_BYTES 2048

static const char *change_path(const char *gate, char path[CHANGE_PATH])
{
	snprintf(path, CHANGE_PATH, RUN_DIR "/%s.change", gate);
	return path;
}

/* Returns whether RUN_DIR is a directory to which only its trusted owner may write. */
static bool run_dir_is_trusted(void)
{
	struct stat st;

	return !lstat(RUN_DIR, &st) && S_ISDIR(st.st_mode) && owner_alone_writes(&st);
}

/* Reads a file of /proc. Returns the length of its text, or 0 after an error. */
static size_t proc_read(const char *path, char *text, size_t room)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, room - 1);

	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? got : 0;
}

/* Formats the command line of this process. Omits the directory of the program. */
static void command_read(char command[CHANGE_COMMAND])
{
	char text[CHANGE_COMMAND], *slash;
	size_t length = proc_read("/proc/self/cmdline", text, sizeof(text));

	slash = strrchr(text, '/');
	snprintf(command, CHANGE_COMMAND, "%s", slash ? slash + 1 : text);
	for (size_t i = strlen(text) + 1; i < length; i += strlen(text + i) + 1) {
		size_t used = strlen(command);

		snprintf(command + used, CHANGE_COMMAND - used, " %s", text + i);
	}
	text_make_printable(command);
}

static uid_t user_read(void)
{
	char text[16];
	unsigned long user;

	if (!proc_read("/proc/self/loginuid", text, sizeof(text)))
		return getuid();
	user = strtoul(text, NULL, 10);
	return user == (uid_t)-1 ? getuid() : (uid_t)user;
}

void gate_change_record(const struct gate *gate, uint32_t generation)
{
	char path[CHANGE_PATH], command[CHANGE_COMMAND];
	unsigned int mark = error_count();
	_cleanup_free_ char *text = NULL;
	json_t *object;
	struct stat st;

	if (gate->dir.fd < 0 || fstat(gate->dir.fd, &st) || !run_dir_is_trusted())
		return;
	command_read(command);
	object = json_pack("{s:i, s:I, s:I, s:I, s:s}", "version", 1, "directory",
			   (json_int_t)st.st_ino, "generation", (json_int_t)generation, "uid",
			   (json_int_t)user_read(), "command", command);
	text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (text)
		file_replace(change_path(gate->name, path), text, strlen(text), 0640, st.st_gid);
	error_drop(mark);
}

void gate_change_read(const struct gate *gate, struct gate_change *ret)
{
	json_int_t directory, generation, user;
	unsigned int mark = error_count();
	json_t *object = NULL;
	struct file file = {0};
	char path[CHANGE_PATH];
	const char *command;
	bool exists = false;
	struct stat st;
	int version;

	*ret = (struct gate_change){0};
	if (fstat(gate->dir.fd, &st) || !run_dir_is_trusted())
		return;
	if (!file_read_own(change_path(gate->name, path), &file, &exists) && exists &&
	    file.size <= CHANGE_BYTES)
		object = json_loadb(file.text, file.size, JSON_REJECT_DUPLICATES, NULL);
	error_drop(mark);
	file_free(&file);
	if (!json_unpack(object, "{s:i, s:I, s:I, s:I, s:s !}", "version", &version, "directory",
			 &directory, "generation", &generation, "uid", &user, "command",
			 &command) &&
	    version == 1 && directory == (json_int_t)st.st_ino && generation > 0 &&
	    generation <= UINT32_MAX && user >= 0 && user < UINT32_MAX) {
		*ret = (struct gate_change){.generation = generation, .user = user};
		snprintf(ret->command, sizeof(ret->command), "%s", command);
		text_make_printable(ret->command);
	}
	json_decref(object);
}

void gate_change_forget(const char *gate)
{
	char path[CHANGE_PATH];

	if (run_dir_is_trusted())
		file_remove(change_path(gate, path));
}
