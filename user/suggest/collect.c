// SPDX-License-Identifier: GPL-2.0
#include "suggest/suggest.h"

#include <string.h>

#include "base/clock.h"
#include "identity.h"
#include "packet.h"
#include "rules/matches.h"
#include "suggest/parts.h"

const struct suggest_words suggest_words[SUGGEST_CLASSES] = {
	[SUGGEST_ALL] = {"all", "any"},
	[SUGGEST_SYN] = {"tcp-syn", "tcp-syn"},
	[SUGGEST_DNS] = {"udp-53", "udp port 53"},
	[SUGGEST_QUIC] = {"udp-443", "udp port 443"},
	[SUGGEST_ICMP] = {"icmp", "icmp"},
	[SUGGEST_UDP] = {"udp-other", "udp port 0-52,54-442,444-65535"},
};

bool suggest_read(const void *frame, uint32_t size, struct suggest_packet *ret)
{
	/* Copy the headers, because the captured frame may be unaligned. */
	struct reader reader = {.ctx = (void *)frame, .size = size, .kind = READ_XDP};
	struct packet packet = {0};

	if (packet_parse(&reader, 0, &packet) != PARSED)
		return false;
	packet_inspect(&reader, &packet);
	memcpy(ret->addr, packet.source.addr, sizeof(ret->addr));
	ret->ipv4 = packet_is_ipv4(&packet);
	ret->facts = packet.facts;
	return true;
}

int suggest_begin(struct suggest *suggest, const struct suggest_settings *settings)
{
	int err = 0;

	*suggest = (struct suggest){.settings = *settings};
	for (int i = 0; i < SUGGEST_CLASSES && !err; i++) {
		err = match_parse(suggest_words[i].match, &suggest->match[i]);
		for (int scope = 0; scope < SUGGEST_SCOPES && !err; scope++)
			err = population_begin(&suggest->population[i][scope], settings->most);
	}
	return err;
}

void suggest_free(struct suggest *suggest)
{
	for (int i = 0; i < SUGGEST_CLASSES; i++)
		for (int scope = 0; scope < SUGGEST_SCOPES; scope++)
			population_free(&suggest->population[i][scope]);
}

void suggest_mask(enum suggest_scope scope, bool ipv4, __u64 ret[2])
{
	unsigned int bits = ipv4 ? (scope == SUGGEST_NETWORKS ? 24 : 32)
				 : (scope == SUGGEST_NETWORKS ? 56 : 64);

	memset(ret, 0, 2 * sizeof(*ret));
	memset(ret, 0xff, bits / 8);
}

bool suggest_is_of(const struct suggest *suggest, enum suggest_class class,
		   const struct suggest_packet *packet)
{
	if (packet->facts.facts & SL_FACT_UNREAD) /* the class is not known */
		return class == SUGGEST_ALL;
	return match_packet(&suggest->match[class], &packet->facts, NULL);
}

uint64_t suggest_ticks(const struct suggest *suggest, const struct suggest_packet *packet)
{
	return (packet->ns - suggest->first_ns) * SL_TICKS_PER_NS;
}

void suggest_key(enum suggest_scope scope, const struct suggest_packet *packet, __u64 ret[2])
{
	__u64 mask[2];

	suggest_mask(scope, packet->ipv4, mask);
	if (packet->ipv4) {
		ret[0] = packet->addr[0] & mask[0];
		ret[1] = 0;
	} else {
		identity_key(packet->addr, mask, ret);
	}
}

static uint64_t shape_of(const struct suggest_packet *packet)
{
	return (uint64_t)packet->bytes << 16 | packet->facts.proto << 8 |
	       (packet->facts.facts & SL_FACT_SYN ? 1 : 0);
}

/*
 * Counts a shape. If other shapes use all SHAPES places, decreases each of their counts by one. So
 * a shape of more than 1/(SHAPES + 1) of all packets keeps a place. Its count is too low by at most
 * 1/(SHAPES + 1) of all packets.
 */
static void shape_add(struct shape_count shapes[SHAPES], uint64_t shape)
{
	struct shape_count *free = NULL;

	for (int i = 0; i < SHAPES; i++) {
		if (shapes[i].packets && shapes[i].shape == shape) {
			shapes[i].packets++;
			return;
		}
		if (!shapes[i].packets)
			free = &shapes[i];
	}
	if (free)
		*free = (struct shape_count){.shape = shape, .packets = 1};
	for (int i = 0; i < SHAPES && !free; i++)
		shapes[i].packets--;
}

int suggest_add(struct suggest *suggest, const struct suggest_packet *packet)
{
	const struct member *member;
	uint64_t now;
	int err = 0;

	if (!suggest->packets)
		suggest->first_ns = packet->ns;
	suggest->last_ns = packet->ns;
	suggest->packets += packet->packets;
	suggest->bytes += packet->bytes;
	suggest->unread += packet->facts.facts & SL_FACT_UNREAD ? packet->packets : 0;
	now = suggest_ticks(suggest, packet);
	for (int i = 0; i < SUGGEST_CLASSES; i++) {
		if (!suggest_is_of(suggest, i, packet))
			continue;
		shape_add(suggest->shape[i], shape_of(packet));
		for (int scope = 0; scope < SUGGEST_SCOPES && !err; scope++) {
			struct population *population = &suggest->population[i][scope];
			__u64 key[2];

			suggest_key(scope, packet, key);
			err = population_add(population, key, packet->ipv4, now, packet->packets,
					     &member);
			if (member && i == SUGGEST_ALL && scope == SUGGEST_SOURCES)
				newcomers_add(suggest, member, now, packet->packets);
		}
	}
	return err;
}
