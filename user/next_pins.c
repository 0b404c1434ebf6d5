// SPDX-License-Identifier: GPL-2.0
#include "next_pins.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>

const char *next_path(const char *gate, enum gate_map map, char path[PINS_PATH])
{
	char below[PINS_PATH];

	snprintf(below, sizeof(below), PINS_NEXT "/%s", gate_map_names[map]);
	return pins_path(gate, below, path);
}

/* `gate` first and last: while it is there, the rest means nothing yet. */
enum status next_pin(const struct gate *next, const bool fresh[GATE_MAPS])
{
	char path[PINS_PATH];

	if (mkdir(pins_path(next->name, PINS_NEXT, path), 0700))
		return fail("cannot make %s: %s", path, why(errno));
	for (int map = MAP_GATE; map < GATE_MAPS; map++)
		if ((map == MAP_GATE || fresh[map]) &&
		    bpf_obj_pin(next->map[map], next_path(next->name, map, path)))
			return fail("cannot pin %s: %s", path, why(errno));
	return OK;
}

void next_remove(const char *gate)
{
	char path[PINS_PATH];

	for (int map = GATE_MAPS - 1; map >= MAP_GATE; map--)
		unlink(next_path(gate, map, path));
	rmdir(pins_path(gate, PINS_NEXT, path));
}

bool next_exists(const char *gate)
{
	char path[PINS_PATH];

	return !access(pins_path(gate, PINS_NEXT, path), F_OK);
}

bool next_is_prepared(const char *gate)
{
	char path[PINS_PATH];

	return !access(next_path(gate, MAP_GATE, path), F_OK);
}

enum status next_rename(const char *gate)
{
	char from[PINS_PATH], to[PINS_PATH];

	for (int map = MAP_GATE; map < GATE_MAPS; map++)
		if (rename(next_path(gate, map, from), pins_path(gate, gate_map_names[map], to)) &&
		    errno != ENOENT)
			return fail("cannot rename %s: %s", from, why(errno));
	rmdir(pins_path(gate, PINS_NEXT, to));
	return OK;
}
