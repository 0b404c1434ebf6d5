/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Digests of many sources under a secret, and a sketch as large as that of one CPU: what
 * the tests of include/sketch.h measure.
 */
#ifndef SLUICE_TEST_MEETING_H
#define SLUICE_TEST_MEETING_H

#include "test.h"
#include "random.h"
#include "sketch.h"
#include "ways.h"

#define SETS  65536U
#define SLOTS (SL_SKETCH_LINES * SL_SKETCH_SLOTS)

static struct sl_sketch lines[SL_SKETCH_LINES];

static uint64_t draw(void)
{
	static uint64_t state = RANDOM_BEGIN;

	return random_next(&state);
}

/* A new secret, and a sketch that is empty. */
static struct sl_meeting meeting_random(void)
{
	struct sl_meeting meeting = {
		.window_shift = 4, .set_mask = SETS - 1, .sketch_mask = SL_SKETCH_LINES - 1};

	for (int i = 0; i < SL_SECRETS; i++)
		meeting.secret[i] = draw();
	memset(lines, 0, sizeof(lines));
	return meeting;
}

static uint32_t *slot_of(const struct sl_meeting *meeting, struct digest digest)
{
	return &lines[sketch_line(meeting, digest, 0)].slot[sketch_slot(digest)];
}

/*
 * A source by number. Addresses in a row, or /64s in a row, are the worst case of universal hashes.
 */
static struct digest digest_ipv4(const struct sl_meeting *meeting, uint32_t number)
{
	struct ledger_key key = {.addr = {number}, .limit = 1 << 3 | 1};

	return ledger_digest(meeting, &key);
}

static struct digest digest_ipv6(const struct sl_meeting *meeting, uint64_t number)
{
	struct ledger_key key = {.addr = {number}, .limit = 1 << 3};

	return ledger_digest(meeting, &key);
}

#endif
