// SPDX-License-Identifier: GPL-2.0
#include "gate/gate_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/file.h>

#include "base/netns.h"
#include "gate/pins.h"

/* The time to wait for another command that changes the gate. */
#define LOCK_WAIT_MS 3000
#define LOCK_POLL_MS 20

/* --- Opening -------------------------------------------------------------------------------- */

static int dir_open_in(const struct pins *root, struct gate *gate)
{
	int status = pins_open(root, gate->name, &gate->dir);

	/* a reader opens no links */
	return status || gate->dir.reads_only ? status
					      : pins_open(&gate->dir, GATE_LINKS, &gate->links);
}

int gate_dir_open(struct gate *gate)
{
	struct pins root;
	int status = pins_open_root(false, &root);

	if (!status)
		status = dir_open_in(&root, gate);
	pins_close(&root);
	return status;
}

static int is_link(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int gate_dir_holds_gate(const struct gate *gate, bool *ret)
{
	struct dirent **links;
	int count;
	int status = pins_list(&gate->links, is_link, &links, &count);

	*ret = count || pin_exists(&gate->dir, gate_map_names[MAP_GATE]);
	while (count)
		free(links[--count]);
	free(links);
	return status;
}

/* --- The lock ------------------------------------------------------------------------------- */

static int lock_wait(const struct gate *gate)
{
	struct timespec pause = {.tv_nsec = LOCK_POLL_MS * 1000000L};

	for (int waited = 0; flock(gate->dir.fd, LOCK_EX | LOCK_NB); waited += LOCK_POLL_MS) {
		if (errno != EWOULDBLOCK)
			return failure("cannot lock gate '%s': %s", gate->name, why(errno));
		if (waited >= LOCK_WAIT_MS)
			return failure("gate '%s' is being changed by another sluice: try again",
				       gate->name);
		nanosleep(&pause, NULL);
	}
	return OK;
}

/*
 * Locks a directory. OK and a closed gate->dir: it does not exist, or `detach` has just removed it.
 */
static int lock_try(struct gate *gate, const struct pins *root)
{
	int status = pins_open(root, gate->name, &gate->dir);

	if (status || gate->dir.fd < 0)
		return status;
	if (gate->dir.reads_only)
		return pins_refuse_change(&gate->dir);
	status = lock_wait(gate);
	if (!status && pins_is_named(&gate->dir, root, gate->name)) {
		pins_adopt(root, &gate->dir);
		return pins_open(&gate->dir, GATE_LINKS, &gate->links);
	}
	pins_close(&gate->dir);
	return status;
}

int gate_dir_lock(struct gate *gate, bool make)
{
	int status;

	do {
		struct pins root;

		/*
		 * `detach` of another gate may have just removed the empty root: then both are made
		 * again
		 */
		status = pins_open_root(make, &root);
		if (!status && make && root.fd >= 0)
			status = pins_make(&root, gate->name, true);
		if (!status)
			status = lock_try(gate, &root);
		pins_close(&root);
	} while (!status && make && gate->dir.fd < 0);
	return !status && gate->dir.fd < 0 ? no_such_gate(gate->name) : status;
}

bool gate_resize_is_interrupted(const struct gate *gate)
{
	bool exists = pin_exists(&gate->dir, GATE_NEXT "/gate");

	if (!exists || (flock(gate->dir.fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK))
		return false;
	exists = pin_exists(&gate->dir, GATE_NEXT "/gate");
	flock(gate->dir.fd, LOCK_UN);
	return exists;
}

/* --- Removing ------------------------------------------------------------------------------- */

int gate_dir_clear(struct gate *gate)
{
	int err = pin_remove(&gate->dir, gate_map_names[MAP_GATE]);

	/* first `gate`, which shows other commands that the gate exists */
	if (err && err != -ENOENT)
		return pin_failed("remove", &gate->dir, gate_map_names[MAP_GATE], err);
	pins_close(&gate->links);
	return pins_clear(&gate->dir);
}

int gate_dir_remove(struct gate *gate)
{
	struct pins root;
	int status = gate_dir_clear(gate);

	if (!status)
		status = pins_open_root(false, &root);
	if (status)
		return status;
	status = pins_remove(&root, gate->name);
	pins_close(&root);
	if (!status)
		pins_remove_root(); /* fails while there is another gate */
	return status;
}

/* --- Existing gates ------------------------------------------------------------------------- */

static int may_be_gate(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type != DT_REG;
}

static int directory_is_gate(const struct pins *root, const char *name, bool *ret_is_gate)
{
	struct gate gate = GATE_CLOSED;
	int status = OK;

	*ret_is_gate = false;
	if (!gate_name_is_valid(name)) /* -g cannot name it */
		return OK;
	snprintf(gate.name, sizeof(gate.name), "%s", name);
	status = dir_open_in(root, &gate);
	if (!status)
		status = gate_dir_holds_gate(&gate, ret_is_gate);
	gate_close(&gate);
	return status;
}

int gate_exists(const char *name, bool *ret)
{
	struct pins root;
	int status = pins_open_root(false, &root);

	if (!status)
		status = directory_is_gate(&root, name, ret);
	pins_close(&root);
	return status;
}

int gates_for_each_or(int (*call)(const char *gate, void *data),
			      void (*unread)(const char *gate), void *data)
{
	int status, bad = OK;
	struct dirent **names = NULL;
	struct pins root;
	int count = 0;

	status = pins_open_root(false, &root);
	if (!status)
		status = pins_list(&root, may_be_gate, &names, &count);
	for (int i = 0; i < count; i++) {
		bool is_gate = false;

		if (!status && directory_is_gate(&root, names[i]->d_name, &is_gate)) {
			if (unread)
				unread(names[i]->d_name);
			else
				bad = FAILED;
		}
		if (is_gate)
			status = call(names[i]->d_name, data);
		free(names[i]);
	}
	free(names);
	pins_close(&root);
	return status ?: bad;
}

int gates_for_each(int (*call)(const char *gate, void *data), void *data)
{
	return gates_for_each_or(call, NULL, data);
}

/* --- Names of gates ------------------------------------------------------------------------- */

struct names {
	const char *but; /* a gate to leave out, or NULL */
	unsigned int count;
	char first[GATE_NAME + 1];
	char text[GATES_TEXT];
};

static int name_add(const char *gate, void *data)
{
	struct names *names = data;
	size_t length = strlen(names->text);

	if (names->but && !strcmp(names->but, gate))
		return OK;
	if (!names->count)
		snprintf(names->first, sizeof(names->first), "%s", gate);
	if (names->count < GATES_SHOWN)
		snprintf(names->text + length, sizeof(names->text) - length, "%s'%s'",
			 length ? ", " : "", gate);
	else if (names->count == GATES_SHOWN)
		snprintf(names->text + length, sizeof(names->text) - length, " ...");
	names->count++;
	return OK;
}

int gates_only(const char *usual, char name[GATE_NAME + 1])
{
	struct names names = {0};
	bool exists = false;
	int status = gate_exists(usual, &exists);

	if (!status && !exists)
		status = gates_for_each(name_add, &names);
	if (!status)
		snprintf(name, GATE_NAME + 1, "%s", names.count == 1 ? names.first : "");
	return status;
}

int gates_beside(const char *gate, char first[GATE_NAME + 1], char text[GATES_TEXT])
{
	struct names names = {.but = gate};
	int status = gates_for_each(name_add, &names);

	memcpy(first, names.first, sizeof(names.first));
	memcpy(text, names.text, sizeof(names.text));
	return status;
}

int no_such_gate(const char *name)
{
	struct names names = {0};

	if (gates_for_each(name_add, &names))
		return FAILED;
	if (!names.count && bpffs_refuse_private())
		return FAILED;
	if (!names.count)
		return failure("there is no gate '%s': make it with 'sluice %s-g %s attach DEV'",
			       name, netns_typed(), name);
	return failure("there is no gate '%s', but %s: write 'sluice -g %s ...', or make '%s' with "
		       "'sluice %s-g %s attach DEV'",
		       name, names.text, names.first, name, netns_typed(), name);
}
