// SPDX-License-Identifier: GPL-2.0
#include "pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"
#include "gate_names.h"

/* How long to wait for another command that changes the gate. */
#define LOCK_WAIT_MS 3000
#define LOCK_POLL_MS 20

const char *pins_path(const char *gate, const char *below, char path[PINS_PATH])
{
	snprintf(path, PINS_PATH, PINS_ROOT "/%s%s%s", gate, *below ? "/" : "", below);
	return path;
}

static bool directory_is_empty(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	bool empty = true;

	while (dir && empty && (entry = readdir(dir)))
		empty = entry->d_name[0] == '.';
	if (dir)
		closedir(dir);
	return empty;
}

bool pins_exist(const char *gate)
{
	char path[PINS_PATH];

	return !access(pins_path(gate, gate_map_names[MAP_GATE], path), F_OK) ||
	       !directory_is_empty(pins_path(gate, PINS_LINKS, path));
}

/* --- The lock ------------------------------------------------------------------------------- */

/* Whether the directory that is open still has its name: detach may have removed it meanwhile. */
static bool lock_is_current(int fd, const char *path)
{
	struct stat open_dir, named;

	return !fstat(fd, &open_dir) && !stat(path, &named) && open_dir.st_ino == named.st_ino;
}

static enum status lock_wait(int fd, const char *gate)
{
	struct timespec pause = {.tv_nsec = LOCK_POLL_MS * 1000000L};

	for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited += LOCK_POLL_MS) {
		if (errno != EWOULDBLOCK)
			return fail("cannot lock gate '%s': %s", gate, why(errno));
		if (waited >= LOCK_WAIT_MS)
			return fail("gate '%s' is being changed by another sluice: try again",
				    gate);
		nanosleep(&pause, NULL);
	}
	return OK;
}

static enum status directory_make(const char *path)
{
	/* detach of another gate may just have removed the empty root */
	if (mkdir(PINS_ROOT, 0700) && errno != EEXIST)
		return fail("cannot make " PINS_ROOT ": %s", why(errno));
	if (mkdir(path, 0700) && errno != EEXIST && errno != ENOENT)
		return fail("cannot make %s: %s", path, why(errno));
	return OK;
}

enum status pins_lock(const char *gate, bool make, int *ret_fd)
{
	char path[PINS_PATH];
	enum status status;
	int fd;

	pins_path(gate, "", path);
	for (;;) {
		status = make ? directory_make(path) : OK;
		if (status)
			return status;
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT && make)
			continue;
		if (fd < 0 && errno == ENOENT)
			return no_such_gate(gate);
		if (fd < 0)
			return fail("cannot open %s: %s", path, why(errno));
		status = lock_wait(fd, gate);
		if (!status && lock_is_current(fd, path)) {
			*ret_fd = fd;
			return OK;
		}
		close(fd);
		if (status)
			return status;
	}
}

/* --- The end -------------------------------------------------------------------------------- */

/* Unlinks what is in the directory of that path, and in the directories in it. */
static enum status directory_clear(const char *path)
{
	char below[PINS_PATH + NAME_MAX + 1];
	struct dirent *entry;
	enum status status = OK;
	DIR *dir = opendir(path);

	if (!dir)
		return errno == ENOENT ? OK : fail("cannot read %s: %s", path, why(errno));
	while (!status && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (!unlink(below))
			continue;
		if (errno == EISDIR || errno == EPERM)
			status = directory_clear(below);
		if (!status && rmdir(below))
			status = fail("cannot remove %s: %s", below, why(errno));
	}
	closedir(dir);
	return status;
}

enum status pins_clear(const char *gate)
{
	char path[PINS_PATH];

	/* first `gate`, by which others know that it exists */
	unlink(pins_path(gate, gate_map_names[MAP_GATE], path));
	return directory_clear(pins_path(gate, "", path));
}

enum status pins_remove(const char *gate)
{
	enum status status = pins_clear(gate);
	char path[PINS_PATH];

	if (status)
		return status;
	if (rmdir(pins_path(gate, "", path)))
		return fail("cannot remove %s: %s", path, why(errno));
	rmdir(PINS_ROOT); /* unless another gate is there */
	return OK;
}

/* --- All gates ------------------------------------------------------------------------------ */

static int is_gate(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && pins_exist(entry->d_name);
}

enum status pins_for_each(enum status (*call)(const char *gate, void *data), void *data)
{
	struct dirent **entries = NULL;
	int count = scandir(PINS_ROOT, &entries, is_gate, alphasort);
	enum status status = OK;

	if (count < 0)
		return errno == ENOENT ? OK : fail("cannot read " PINS_ROOT ": %s", why(errno));
	for (int i = 0; i < count; i++) {
		if (!status)
			status = call(entries[i]->d_name, data);
		free(entries[i]);
	}
	free(entries);
	return status;
}
