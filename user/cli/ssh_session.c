// SPDX-License-Identifier: GPL-2.0
#include "cli/ssh_session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "attach/attachment.h"
#include "attach/netdevs.h"
#include "base/cleanup.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/rules.h"
#include "match.h"
#include "rules/prefix.h"
#include "rules/value.h"

/* An interactive session sends a packet for each key, and one for each two that it receives. */
#define RATE_LEAST_PPS	10
#define RATE_LEAST_BITS 10000

/* The ssh session whose packets pass the gate. */
struct session {
	struct sl_prefix source;
	char text[INET6_ADDRSTRLEN]; /* the source as text */
	unsigned int port;	     /* of the server */
};

/* The device that has an address. */
struct owner {
	unsigned int ifindex; /* 0: no device of this network namespace has the address */
	bool is_loopback;
};

static struct owner owner_of(const char *address)
{
	char host[NI_MAXHOST];
	struct ifaddrs *all;
	struct owner owner = {0};

	if (getifaddrs(&all))
		return owner;
	for (const struct ifaddrs *a = all; a && !owner.ifindex; a = a->ifa_next) {
		int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
		socklen_t length = family == AF_INET ? sizeof(struct sockaddr_in)
						     : sizeof(struct sockaddr_in6);

		if ((family == AF_INET || family == AF_INET6) &&
		    !getnameinfo(a->ifa_addr, length, host, sizeof(host), NULL, 0,
				 NI_NUMERICHOST) &&
		    !strcmp(host, address))
			owner = (struct owner){if_nametoindex(a->ifa_name),
					       a->ifa_flags & IFF_LOOPBACK};
	}
	freeifaddrs(all);
	return owner;
}

/*
 * Returns whether the gate filters packets to an address of the device: it filters the device or
 * one below it, such as the port of a bridge. Packets to an address of lo can come through any
 * device.
 */
static bool filters(const struct gate *gate, const struct owner *owner)
{
	struct attachment all[ATTACHMENTS_MAX];
	_cleanup_(netdevs_free) struct netdevs links = {0};
	unsigned int count;

	if (!owner->ifindex || attachments_read(gate, all, &count) || netdevs_read(&links))
		return false;
	for (unsigned int i = 0; i < count; i++)
		if (all[i].netns == netns_current() && all[i].program_id &&
		    all[i].hook != HOOK_EGRESS &&
		    (owner->is_loopback || all[i].ifindex == owner->ifindex ||
		     netdevs_are_stacked(&links, owner->ifindex, all[i].ifindex)))
			return true;
	return false;
}

/* Returns the address without the prefix by which some servers map IPv4 addresses to IPv6. */
static const char *unmapped(const char *address)
{
	static const char mapped[] = "::ffff:";
	bool is_mapped = !strncasecmp(address, mapped, strlen(mapped)) && strchr(address, '.');

	return is_mapped ? address + strlen(mapped) : address;
}

/*
 * Finds the session, and the rule that decides about it. Returns false if there is no session, or
 * if its packets do not come through the gate as far as is known. Errors are dropped.
 */
static bool session_find(const struct gate *gate, struct session *ret, struct judgement *ret_now)
{
	const char *connection = getenv("SSH_CONNECTION");
	char client[INET6_ADDRSTRLEN], server[INET6_ADDRSTRLEN];
	unsigned int mark = error_count();
	struct owner owner;
	bool is_found;

	if (!connection ||
	    sscanf(connection, "%45s %*u %45s %u", client, server, &ret->port) != 3 ||
	    strchr(client, '%'))
		return false;
	snprintf(ret->text, sizeof(ret->text), "%s", unmapped(client));
	owner = owner_of(unmapped(server));
	is_found = !address_parse(client, &ret->source) && !owner_of(ret->text).ifindex &&
		   filters(gate, &owner) && !rules_judge(gate, &ret->source, ret_now);
	error_drop(mark);
	return is_found;
}

int ssh_check_denies(const struct gate *gate, const struct ruleset *denies, const char *name)
{
	struct session session;
	struct judgement now;
	bool is_allowed;

	if (!session_find(gate, &session, &now) || now.access == SL_ACCESS_DENY)
		return 0;
	is_allowed = name && now.access == SL_ACCESS_ALLOW;
	for (unsigned int i = 0; i < denies->count; i++) {
		const struct sl_prefix *prefix = &denies->rules[i].prefix;
		bool comes_first = now.found && now.prefix.bits > prefix->bits;

		if (!prefix_covers(prefix, &session.source) || comes_first ||
		    (is_allowed && (!now.lists || now.prefix.bits == prefix->bits)))
			continue;
		return error_add(
			EPERM, "own-session", session.text,
			"this ssh session comes from there and would be denied; allow it "
			"with 'sluice %sallow %s', try the change with '--confirm 60s', or "
			"say 'force'",
			gate_option(gate->name), session.text);
	}
	return 0;
}

void ssh_warn_limits(const struct gate *gate, const struct rule *rule)
{
	struct session session;
	struct judgement now;
	struct sl_facts packet = {
		.facts = SL_FACT_ANY | SL_FACT_PROTO | SL_FACT_TCP | SL_FACT_PORT,
		.proto = PROTO_TCP,
	};
	char prefix[PREFIX_TEXT];

	if (!session_find(gate, &session, &now) || now.access || !now.found ||
	    !prefix_equal(&now.prefix, &rule->prefix))
		return;
	packet.port = session.port;
	for (unsigned int i = 0; i < rule->limits; i++) {
		const struct limit *limit = &rule->limit[i];
		const struct sl_limit_spec *spec = &limit->spec;
		double least = spec->rate_unit == SL_RATE_BITS ? RATE_LEAST_BITS : RATE_LEAST_PPS;

		if (spec->kind == SL_SHAPE || spec->key_dst || spec->action == SL_ACTION_OBSERVE ||
		    !match_packet(&limit->match, &packet) || rate_per_second(spec) >= least)
			continue;
		error_notice("own-session", prefix_format(&rule->prefix, prefix),
			     "limit '%s' is lower than an ssh session needs, such as this session "
			     "from %s; try such a change with '--confirm 60s'",
			     spec->name, session.text);
		return;
	}
}
