// SPDX-License-Identifier: GPL-2.0
#include "copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "credit.h"
#include "ledger_walk.h"

/* --- Reading -------------------------------------------------------------------------------- */

struct reading {
	struct copies *copies;
	const struct limit_index *limits;
};

static int copies_grow(struct copies *copies)
{
	unsigned int room = copies->room ? 2 * copies->room : 1024;
	struct copy *items = reallocarray(copies->items, room, sizeof(*items));

	if (!items)
		return -ENOMEM;
	copies->items = items;
	copies->room = room;
	return 0;
}

static int copies_add(void *data, enum sl_family family, const struct sl_carry_key *key,
		      const struct sl_ledger *ledger)
{
	struct reading *reading = data;
	struct copies *copies = reading->copies;

	(void)family;
	if (!limit_of_key(reading->limits, key))
		return 0;
	if (copies->count == copies->room && copies_grow(copies))
		return -ENOMEM;
	copies->items[copies->count++] = (struct copy){*key, *ledger};
	return 0;
}

int copies_read(struct copies *copies, int fd, const struct limit_index *limits)
{
	struct reading reading = {copies, limits};

	return ledgers_walk(fd, limits->family, copies_add, &reading);
}

/* --- Writing -------------------------------------------------------------------------------- */

static int drawn_compare(const void *a, const void *b)
{
	const struct copy *left = a, *right = b;
	int64_t span = credit_span(left->ledger.drawn, right->ledger.drawn);

	return span > 0 ? -1 : span < 0;
}

static int key_compare(const void *a, const void *b)
{
	const struct copy *left = a, *right = b;

	return memcmp(&left->key, &right->key, sizeof(left->key));
}

static int count_one(void *data, enum sl_family family, const struct sl_carry_key *key,
		     const struct sl_ledger *ledger)
{
	unsigned int *count = data;

	(void)family, (void)key, (void)ledger;
	++*count;
	return 0;
}

/* Those that were drawn from last come last: what a smaller map forgets is what was not heard for long. */
int copies_write(struct copies *copies, int fd, enum sl_family family, unsigned int *ret_lost)
{
	unsigned int fit = 0;
	int err = 0;

	if (!copies->count) {
		*ret_lost = 0;
		return 0;
	}
	qsort(copies->items, copies->count, sizeof(*copies->items), drawn_compare);
	for (unsigned int i = 0; !err && i < copies->count; i++)
		err = bpf_map_update_elem(fd, &copies->items[i].key, &copies->items[i].ledger,
					  BPF_NOEXIST);
	if (!err)
		err = ledgers_walk(fd, family, count_one, &fit);
	if (err)
		return err;
	qsort(copies->items, copies->count, sizeof(*copies->items), key_compare);
	*ret_lost = copies->count - fit;
	return 0;
}

/* --- Afterwards ----------------------------------------------------------------------------- */

const struct sl_ledger *copies_find(const struct copies *copies, const struct sl_carry_key *key)
{
	struct copy wanted = {.key = *key}, *found;

	if (!copies->count)
		return NULL;
	found = bsearch(&wanted, copies->items, copies->count, sizeof(wanted), key_compare);
	return found ? &found->ledger : NULL;
}

void copies_free(struct copies *copies)
{
	free(copies->items);
}
