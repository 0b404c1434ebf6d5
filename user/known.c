// SPDX-License-Identifier: GPL-2.0
#include "known.h"

#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>

#include "epoch.h"

/* So many entries a call. */
#define BATCH 4096

/* --- What an entry says --------------------------------------------------------------------- */

/*
 * The epochs' tags wrap: of two that are less than half of their range apart, the newer is the one ahead. A word that
 * nobody has touched for hours can be taken for the newer one: then those of the other are forgotten here, until the
 * next time that they are charged.
 */
static bool word_is_newer(uint32_t word, uint32_t other)
{
	return (int32_t)((word & KNOWN_TAG) - (other & KNOWN_TAG)) > 0;
}

/* Who is known to either; of different epochs a word can say only one. */
static uint32_t words_join(uint32_t a, uint32_t b)
{
	if (!(a & ~KNOWN_TAG) || !(b & ~KNOWN_TAG))
		return a & ~KNOWN_TAG ? a : b;
	if ((a ^ b) & KNOWN_TAG)
		return word_is_newer(a, b) ? a : b;
	return a | b;
}

struct sl_known known_fit(const struct sl_known *old, uint32_t old_count, uint32_t count,
			  uint32_t index)
{
	struct sl_known fit = {0};

	for (uint32_t i = index & (old_count - 1); i < old_count; i += count)
		for (int word = 0; word < 2; word++)
			fit.word[word] = words_join(fit.word[word], old[i].word[word]);
	return fit;
}

/* --- Copying -------------------------------------------------------------------------------- */

static uint32_t batch_size(uint32_t left)
{
	return left < BATCH ? left : BATCH;
}

/* An array's entries come in the order of their indexes. */
static int known_read(int fd, struct sl_known *entries, uint32_t count)
{
	uint32_t keys[BATCH], token, *last = NULL;

	for (uint32_t done = 0, batch; done < count; done += batch) {
		batch = batch_size(count - done);
		if (bpf_map_lookup_batch(fd, last, &token, keys, entries + done, &batch, NULL))
			return -errno;
		last = &token;
	}
	return 0;
}

static int known_write(int fd, uint32_t count, const struct sl_known *old, uint32_t old_count)
{
	struct sl_known entries[BATCH];
	uint32_t keys[BATCH];

	for (uint32_t done = 0, batch; done < count; done += batch) {
		batch = batch_size(count - done);
		for (uint32_t i = 0; i < batch; i++) {
			keys[i] = done + i;
			entries[i] = known_fit(old, old_count, count, keys[i]);
		}
		if (bpf_map_update_batch(fd, keys, entries, &batch, NULL))
			return -errno;
	}
	return 0;
}

enum status known_copy(const struct gate *from, const struct gate *to)
{
	uint32_t old_count = from->state->meeting.known_mask + 1;
	struct sl_known *old = calloc(old_count, sizeof(*old));
	int err = old ? known_read(from->map[MAP_KNOWN], old, old_count) : -ENOMEM;

	if (!err)
		err = known_write(to->map[MAP_KNOWN], to->state->meeting.known_mask + 1, old,
				  old_count);
	free(old);
	return err ? fail("cannot copy who is known to gate '%s': %s", from->name, why(err)) : OK;
}
