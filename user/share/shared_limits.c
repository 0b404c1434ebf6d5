// SPDX-License-Identifier: GPL-2.0
#include "share/shared_limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "gate/rulemap.h"
#include "gate/rules.h"
#include "rules/prefix.h"

/* 64-bit FNV-1a. No attacker chooses the limits, so a cryptographic hash is not needed. */
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
	uint64_t hash = shared_hash(prefix_format(&policy->prefix, prefix));

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

/* Adds a policy's shared limits, except inherited limits. Returns false if there is no memory. */
static bool policy_add(struct shared_limits *limits, const struct sl_policy *policy, int family)
{
	for (int i = 0; i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];
		unsigned int slot = limit->slot % SL_LIMITS_MAX;

		if (!limit->shared || policy->origin[slot])
			continue;
		if (!array_grow(limits->list, limits->count, limits->room))
			return false;
		limits->list[limits->count++] = (struct shared_limit){
			.limit = *limit,
			.family = family,
			.shares_blocks = policy->spec[slot].shared == SL_SHARED_BLOCK,
			.since = policy->changed[slot],
			.meaning = meaning_of(policy, slot, limit),
		};
		/* use a sum, because the order of limits may differ between nodes */
		limits->meaning += limits->list[limits->count - 1].meaning;
		limits->burst_most = credit_max(limits->burst_most, limit->burst);
	}
	return true;
}

/* Returns the number of a limit in entries of map `states` (`sl_entry.limit`). */
static uint32_t number_of(const struct shared_limit *limit)
{
	return limit->limit.id << 3 | limit->limit.kind << 1 | (limit->family == SL_IPV4);
}

static int number_compare(const void *number, const void *limit)
{
	uint32_t x = *(const uint32_t *)number, y = number_of(limit);

	return (x > y) - (x < y);
}

static int by_number(const void *a, const void *b)
{
	uint32_t number = number_of(a);

	return number_compare(&number, b);
}

int shared_limits_read(const struct gate *gate, struct shared_limits *ret)
{
	_cleanup_(shared_limits_free) struct shared_limits limits = {.generation =
									     gate_generation(gate)};
	_cleanup_free_ const struct sl_policy **policies = NULL;
	unsigned int count;
	int err = rules_policies(gate, &policies, &count);

	if (err)
		return err;
	for (unsigned int i = 0; i < count; i++)
		for (int family = 0; family < SL_FAMILIES; family++)
			if (!policy_add(&limits, policies[i], family))
				return gate_error(gate, ENOMEM, "no-memory",
						  "cannot read its rules: %s", why(ENOMEM));
	if (limits.count)
		qsort(limits.list, limits.count, sizeof(*limits.list), by_number);
	*ret = limits;
	limits.list = NULL;
	return 0;
}

void shared_limits_free(struct shared_limits *limits)
{
	free(limits->list);
	*limits = SHARED_LIMITS_NONE;
}

const struct shared_limit *shared_limit_of(const struct shared_limits *limits, uint32_t limit)
{
	if (!limits->count)
		return NULL;
	return bsearch(&limit, limits->list, limits->count, sizeof(*limits->list), number_compare);
}

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
