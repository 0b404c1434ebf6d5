// SPDX-License-Identifier: GPL-2.0
#include "gate/mark.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gate/gate_dir.h"

const char *gate_path(const char *name, char path[PINS_PATH])
{
	snprintf(path, PINS_PATH, BPFFS "/" PINS_ROOT "/%s", name);
	return path;
}

const char *gate_links_path(const char *name, char path[PINS_PATH])
{
	snprintf(path, PINS_PATH, BPFFS "/" PINS_ROOT "/%s/" GATE_LINKS, name);
	return path;
}

/* Reads what the files tell. */
static void files_look(const char *name, struct gate_mark *mark)
{
	char path[PINS_PATH];
	struct stat st;

	mark->gate = 0;
	mark->lost = 0;
	for (int map = 0; map < GATE_MAPS; map++) {
		snprintf(path, sizeof(path), BPFFS "/" PINS_ROOT "/%s/%s", name,
			 gate_map_names[map]);
		if (lstat(path, &st))
			mark->lost++;
		else if (map == MAP_GATE)
			mark->gate = st.st_ino;
	}
	mark->is_there = mark->lost < GATE_MAPS;
	snprintf(path, sizeof(path), BPFFS "/" PINS_ROOT "/%s/" GATE_NEXT, name);
	mark->has_next = !lstat(path, &st);
}

static void state_look(struct gate_mark *mark)
{
	if (!mark->state)
		return;
	mark->generation = __atomic_load_n(&mark->state->generation, __ATOMIC_ACQUIRE);
	mark->on_trial = __atomic_load_n(&mark->state->trial_until, __ATOMIC_ACQUIRE);
	mark->trial = mark->state->trial;
}

/* The file system to which the path of a gate leads; 0: there is no such file. */
static dev_t device_of(const char *name)
{
	char path[PINS_PATH];
	struct stat st;

	return lstat(gate_path(name, path), &st) ? 0 : st.st_dev;
}

void gate_mark_take(struct gate *gate, struct gate_mark *mark)
{
	gate_mark_free(mark);
	mark->state = gate->state;
	gate->state = NULL;
	for (int map = 0; map < GATE_MAPS; map++) {
		mark->map[map] = gate->map[map];
		gate->map[map] = -1;
	}
	files_look(gate->name, mark);
	mark->bpffs = device_of(gate->name);
	state_look(mark);
}

bool gate_mark_is_of(const struct gate_mark *mark, const struct gate *gate)
{
	/* every remake shares this map */
	return mark->state && mark->state->map_ids[MAP_SECRET] == gate->state->map_ids[MAP_SECRET];
}

bool gate_mark_is_hidden(const char *name, const struct gate_mark *mark, struct mount *ret)
{
	char path[PINS_PATH];

	return mark->state && device_of(name) != mark->bpffs &&
	       mount_hides(gate_path(name, path), mark->bpffs, ret);
}

unsigned int gate_mark_look(const char *name, struct gate_mark *mark)
{
	struct gate_mark before = *mark;
	unsigned int news = 0;

	files_look(name, mark);
	state_look(mark);
	if (mark->is_there != before.is_there || mark->gate != before.gate)
		news |= NEWS_GATE;
	if (mark->generation != before.generation)
		news |= NEWS_RULES;
	if (mark->on_trial != before.on_trial || mark->trial != before.trial)
		news |= NEWS_TRIAL;
	return news;
}

/* Refuses to add to pins of another gate. */
static int pins_check(const struct gate *gate, const struct gate_mark *mark)
{
	int fd = pin_open(&gate->dir, gate_map_names[MAP_GATE]);
	bool is_other = fd >= 0 && gate_map_id(fd) != gate_map_id(mark->map[MAP_GATE]);

	if (fd >= 0)
		close(fd);
	return is_other ? failure("gate '%s' has lost pins, and is another gate", gate->name) : OK;
}

int gate_repin(const char *name, struct gate_mark *mark)
{
	struct gate gate = GATE_CLOSED;
	int status = gate_begin(&gate, name);

	if (!status)
		status = gate_dir_lock(&gate, false);
	if (!status)
		status = pins_check(&gate, mark);
	if (!status)
		status = pins_make(&gate.dir, GATE_LINKS, false);
	for (int map = GATE_MAPS - 1; !status && map >= 0; map--) {
		const char *pin = gate_map_names[map];
		int err = pin_exists(&gate.dir, pin) ? 0 : pin_make(&gate.dir, pin, mark->map[map]);

		if (err)
			status = pin_failed("pin", &gate.dir, pin, err);
	}
	gate_close(&gate);
	files_look(name, mark);
	return status;
}

void gate_mark_free(struct gate_mark *mark)
{
	if (mark->state)
		munmap(mark->state, sizeof(*mark->state));
	for (int map = 0; map < GATE_MAPS; map++)
		if (mark->map[map] >= 0)
			close(mark->map[map]);
	*mark = GATE_UNMARKED;
}
