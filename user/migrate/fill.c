// SPDX-License-Identifier: GPL-2.0
#include "migrate/fill.h"

#include <errno.h>
#include <sys/mman.h>

#include "ways.h"

static size_t sets_bytes(const struct sl_meeting *meeting)
{
	return ((size_t)meeting->set_mask + 1) * sizeof(struct sl_set);
}

static size_t lines_bytes(const struct sl_meeting *meeting)
{
	return ((size_t)meeting->set_mask + 1) * SL_WAYS * sizeof(struct sl_line);
}

int fill_open(const struct gate *gate, struct fill *ret)
{
	const struct sl_meeting *meeting = &gate->state->meeting;
	struct fill fill = {.meeting = meeting};

	fill.sets = mmap(NULL, sets_bytes(meeting), PROT_READ | PROT_WRITE, MAP_SHARED,
			 gate->map[MAP_SETS], 0);
	if (fill.sets == MAP_FAILED)
		return -errno;
	fill.lines = mmap(NULL, lines_bytes(meeting), PROT_READ | PROT_WRITE, MAP_SHARED,
			  gate->map[MAP_LEDGERS], 0);
	if (fill.lines == MAP_FAILED) {
		int err = -errno;

		munmap(fill.sets, sets_bytes(meeting));
		return err;
	}
	*ret = fill;
	return 0;
}

void fill_close(struct fill *fill)
{
	munmap(fill->sets, sets_bytes(fill->meeting));
	munmap(fill->lines, lines_bytes(fill->meeting));
}

/* Puts a line into a set, if it has a way that is free. tag: as it is there. */
static bool set_put(const struct fill *fill, uint32_t set, uint16_t tag, const struct sl_line *line)
{
	uint32_t way = way_free(&fill->sets[set], tag);

	if (way == SL_WAYS)
		return false;
	fill->lines[set * SL_WAYS + way] = *line;
	fill->sets[set].tag[way] = tag;
	return true;
}

/*
 * Moves one line from its home, which is full, to its other set, if one finds room there. A line
 * that is not in its home stays: its home is full.
 */
static void set_relieve(const struct fill *fill, uint32_t set)
{
	for (uint32_t way = 0; way < SL_WAYS; way++) {
		struct sl_line *line = &fill->lines[set * SL_WAYS + way];
		uint16_t *tag = &fill->sets[set].tag[way];
		uint32_t other = set_other(fill->meeting, set, *tag);

		if (*tag & TAG_AWAY || !set_put(fill, other, *tag | TAG_AWAY, line))
			continue;
		fill->sets[set].away += 2;
		*line = (struct sl_line){0};
		*tag = 0;
		return;
	}
}

bool fill_put(const struct fill *fill, const struct sl_line *line)
{
	const struct ledger_key key = {{line->addr[0], line->addr[1]}, line->limit};
	struct spot spot = spot_of(fill->meeting, ledger_digest(fill->meeting, &key));
	uint32_t other = set_other(fill->meeting, spot.home, spot.tag);

	if (way_free(&fill->sets[spot.home], 0) == SL_WAYS &&
	    way_free(&fill->sets[other], 0) == SL_WAYS)
		set_relieve(fill, spot.home);
	if (set_put(fill, spot.home, spot.tag, line))
		return true;
	if (!set_put(fill, other, spot.tag | TAG_AWAY, line))
		return false;
	fill->sets[spot.home].away += 2;
	return true;
}
