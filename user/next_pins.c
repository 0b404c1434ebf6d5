// SPDX-License-Identifier: GPL-2.0
#include "next_pins.h"

#include <errno.h>

#include "gate_dir.h"

static enum status next_make(const struct gate *gate, struct pins *ret)
{
	enum status status = pins_make(&gate->dir, GATE_NEXT);

	return status ?: pins_open(&gate->dir, GATE_NEXT, ret);
}

/* `gate` first and last: while it is there, the rest means nothing yet. */
enum status next_pin(const struct gate *gate, const struct gate *next, const bool fresh[GATE_MAPS])
{
	struct pins pins = PINS_CLOSED;
	enum status status = next_make(gate, &pins);

	for (int map = MAP_GATE; !status && map < GATE_MAPS; map++) {
		int err = 0;

		if (map == MAP_GATE || fresh[map])
			err = pin_make(&pins, gate_map_names[map], next->map[map]);
		if (err)
			status = pin_failed("pin", &pins, gate_map_names[map], err);
	}
	pins_close(&pins);
	return status;
}

enum status next_open(const struct gate *gate, struct pins *ret)
{
	return pins_open(&gate->dir, GATE_NEXT, ret);
}

enum status next_remove(const struct gate *gate)
{
	struct pins pins;
	enum status status = next_open(gate, &pins);

	for (int map = GATE_MAPS - 1; !status && map >= MAP_GATE; map--)
		pin_remove(&pins, gate_map_names[map]);
	pins_close(&pins);
	return status ?: pins_remove(&gate->dir, GATE_NEXT);
}

bool next_is_prepared(const struct pins *pins)
{
	return pin_exists(pins, gate_map_names[MAP_GATE]);
}

enum status next_rename(const struct gate *gate)
{
	struct pins pins;
	enum status status = next_open(gate, &pins);

	for (int map = MAP_GATE; !status && map < GATE_MAPS; map++) {
		const char *name = gate_map_names[map];
		int err = pin_rename(&pins, name, &gate->dir, name);

		if (err && err != -ENOENT)
			status = pin_failed("rename", &pins, name, err);
	}
	pins_close(&pins);
	return status ?: pins_remove(&gate->dir, GATE_NEXT);
}
