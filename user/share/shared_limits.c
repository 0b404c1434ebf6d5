// SPDX-License-Identifier: GPL-2.0
#include "share/shared_limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/rulemap.h"
#include "gate/rules.h"
#include "rules/prefix.h"

/* --- The limits of a gate ------------------------------------------------------------------- */

/* FNV-1a, 64 bits: names differ by it, and nobody gains by a collision. */
static uint64_t hash_add(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;

	while (size--)
		hash = (hash ^ *byte++) * 0x100000001b3;
	return hash;
}

uint64_t shared_hash(const char *text)
{
	return hash_add(0xcbf29ce484222325, text, strlen(text));
}

static uint64_t meaning_of(const struct sl_policy *policy, unsigned int slot,
			   const struct sl_limit *limit)
{
	const struct sl_limit_spec *spec = &policy->spec[slot];
	const struct sl_match *match = &policy->match[slot];
	char prefix[PREFIX_TEXT];
	const char *text = prefix_format(&policy->prefix, prefix);
	uint64_t hash = shared_hash(text);

	hash = hash_add(hash, spec->name, strnlen(spec->name, sizeof(spec->name)));
	hash = hash_add(hash, &spec->rate, sizeof(spec->rate));
	hash = hash_add(hash, &spec->rate_unit, sizeof(spec->rate_unit));
	hash = hash_add(hash, &spec->span_ns, sizeof(spec->span_ns));
	hash = hash_add(hash, &limit->burst, sizeof(limit->burst));
	hash = hash_add(hash, limit->mask, sizeof(limit->mask));
	hash = hash_add(hash, &spec->key_dst, sizeof(spec->key_dst));
	hash = hash_add(hash, match, sizeof(*match));
	return hash_add(hash, &spec->second, sizeof(spec->second));
}

/* Grows by doubling. */
static bool limit_add(struct shared_limits *limits, const struct shared_limit *limit)
{
	unsigned int count = limits->count;

	if (!(count & (count - 1))) {
		unsigned int room = count ? 2 * count : 1;
		void *grown = realloc(limits->list, room * sizeof(*limits->list));

		if (!grown)
			return false;
		limits->list = grown;
	}
	limits->list[limits->count++] = *limit;
	limits->meaning += limit->meaning; /* numbers, and so the order, are a node's own */
	if (limit->limit.burst > limits->burst_most)
		limits->burst_most = limit->limit.burst;
	return true;
}

/* Adds the limits of a policy that are its own: an inherited one is its parent's. */
static bool policy_add(struct shared_limits *limits, const struct sl_policy *policy)
{
	for (int family = 0; family < SL_FAMILIES; family++)
		for (int i = 0; i < policy->limits[family]; i++) {
			const struct sl_limit *limit = &policy->limit[family][i];
			struct shared_limit shared = {.limit = *limit, .family = family};
			unsigned int slot = limit->slot % SL_LIMITS_MAX;

			if (!limit->shared || policy->home[slot])
				continue;
			shared.since = policy->changed[slot];
			shared.meaning = meaning_of(policy, slot, limit);
			shared.shares_blocks = policy->spec[slot].shared == SL_SHARED_BLOCK;
			memcpy(shared.label, policy->spec[slot].name, SL_NAME);
			if (!limit_add(limits, &shared))
				return false;
		}
	return true;
}

/* As in sl_entry.limit. */
static uint32_t number_of(const struct shared_limit *limit)
{
	return limit->limit.id << 3 | limit->limit.kind << 1 | (limit->family == SL_IPV4);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = number_of(a), y = number_of(b);

	return x < y ? -1 : x > y;
}

int shared_limits_read(const struct gate *gate, struct shared_limits *ret)
{
	struct shared_limits limits = {.generation = rulemap_generation(gate)};
	const struct sl_policy **policies;
	unsigned int count;
	bool has_room = true;
	int status = rules_policies(gate, &policies, &count);

	if (status)
		return status;
	for (unsigned int i = 0; has_room && i < count; i++)
		has_room = policy_add(&limits, policies[i]);
	free(policies);
	if (!has_room) {
		shared_limits_free(&limits);
		return failure("cannot read the rules of gate '%s': %s", gate->name, why(ENOMEM));
	}
	if (limits.count)
		qsort(limits.list, limits.count, sizeof(*limits.list), by_number);
	*ret = limits;
	return OK;
}

void shared_limits_free(struct shared_limits *limits)
{
	free(limits->list);
	*limits = SHARED_LIMITS_NONE;
}

const struct shared_limit *shared_limit_of(const struct shared_limits *limits, uint32_t limit)
{
	unsigned int begin = 0, end = limits->count;

	while (begin < end) {
		unsigned int middle = begin + (end - begin) / 2;
		uint32_t number = number_of(&limits->list[middle]);

		if (number == limit)
			return &limits->list[middle];
		if (number < limit)
			begin = middle + 1;
		else
			end = middle;
	}
	return NULL;
}

/* --- Keys of the store ---------------------------------------------------------------------- */

void shared_key_format(const char *name, const struct shared_limit *limit,
		       const struct state_key *key, char text[STORE_KEY], char block[STORE_KEY])
{
	char address[INET6_ADDRSTRLEN];

	inet_ntop(limit->family == SL_IPV4 ? AF_INET : AF_INET6, key->addr, address,
		  sizeof(address));
	snprintf(text, STORE_KEY, "sluice:{%.*s:%016" PRIx64 ":%s}", GATE_NAME, name,
		 limit->meaning, address);
	*block = '\0';
	if (limit->shares_blocks)
		snprintf(block, STORE_KEY, "%.*s:block", STORE_KEY - (int)sizeof(":block"), text);
}

_Static_assert(sizeof("sluice:{::}:block") + GATE_NAME + 16 + INET6_ADDRSTRLEN <= STORE_KEY,
	       "the longest key has room");
