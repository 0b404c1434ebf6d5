/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bpf/newcomer.h compiled for this machine, with a sketch and a filter as a gate has them by
 * default on two CPUs. Its maps are arrays of this process, of one CPU.
 */
#ifndef SLUICE_TEST_MEETING_H
#define SLUICE_TEST_MEETING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static void *map_entry(const void *map, uint32_t index);

#define bpf_map_lookup_elem(map, key)	    map_entry(map, *(const uint32_t *)(key))
#define bpf_map_update_elem(map, key, v, f) (-1L)
#define bpf_get_smp_processor_id()	    0U
#define typeof __typeof__
#define SL_TEST_CLOCK
#include "newcomer.h"

/* As a gate has them by default on two CPUs. */
#define LINES	8192
#define SLOTS	(LINES * SL_SKETCH_SLOTS)
#define SOURCES (1U << 18)
#define KNOWN	(SOURCES / 4)

static struct sl_sketch_line sketch_lines[LINES];
static struct sl_known known_entries[KNOWN];

static void *map_entry(const void *map, uint32_t index)
{
	if (map == &sketch)
		return index < LINES ? &sketch_lines[index] : NULL;
	if (map == &known)
		return index < KNOWN ? &known_entries[index] : NULL;
	return NULL;
}

static uint64_t random_state = 88172645463325252ULL;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 2685821657736338717ULL;
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

/* A source by number: addresses in a row, or of /64s in a row, are what universal hashes are worst at. */
static struct digest digest_ipv4(const struct sl_meeting *meeting, uint32_t number)
{
	struct packet packet = {.source.bits = SL_FAMILY_BITS + 32};

	memcpy(packet.source.addr, &number, sizeof(number));
	return digest_of(&packet, meeting);
}

#endif
