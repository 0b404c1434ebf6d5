/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bpf/newcomer.h compiled for the host, with a sketch and a filter as a gate has them by default on
 * two CPUs.
 */
#ifndef SLUICE_TEST_MEETING_H
#define SLUICE_TEST_MEETING_H

#include "test.h"
#include "bpf_host.h"
#include "random.h"

#include "newcomer.h"

#define LINES	8192
#define SLOTS	(LINES * SL_SKETCH_SLOTS)
#define SOURCES (1U << 18)
#define KNOWN	(SOURCES / 4)

static struct sl_sketch_line sketch_lines[LINES];
static struct sl_known known_entries[KNOWN];

static void *map_find(const void *map, const void *key)
{
	if (map == &sketch)
		return array_entry(sketch_lines, sizeof(*sketch_lines), LINES, key);
	if (map == &known)
		return array_entry(known_entries, sizeof(*known_entries), KNOWN, key);
	return NULL;
}

static uint64_t draw(void)
{
	static uint64_t state = RANDOM_BEGIN;

	return random_next(&state);
}

static struct sl_meeting meeting_random(void)
{
	struct sl_meeting meeting = {
		.window_shift = 4,
		.sketch_mask = LINES - 1,
		.known_mask = KNOWN - 1,
	};

	for (int i = 0; i < SL_SECRETS; i++)
		meeting.secret[i] = draw();
	memset(sketch_lines, 0, sizeof(sketch_lines));
	memset(known_entries, 0, sizeof(known_entries));
	return meeting;
}

/*
 * A source by number. Addresses in a row, or /64s in a row, are the worst case of universal hashes.
 */
static struct digest digest_ipv4(const struct sl_meeting *meeting, uint32_t number)
{
	struct packet packet = {.source.bits = SL_FAMILY_BITS + 32};

	memcpy(packet.source.addr, &number, sizeof(number));
	return digest_of(&packet, meeting);
}

#endif
