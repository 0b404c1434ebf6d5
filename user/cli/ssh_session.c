// SPDX-License-Identifier: GPL-2.0
#include "cli/ssh_session.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "attach/attachment.h"
#include "attach/netdevs.h"
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
 * Whether the gate filters packets to an address of the device: it filters the device or one below
 * it, such as the port of a bridge. Packets to an address of lo can come through any device.
 */
static bool filters(const struct gate *gate, const struct owner *owner)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	struct netdevs links;
	bool found = false;

	if (!owner->ifindex || attachments_read(gate, all, &count) || netdevs_read(&links))
		return false;
	for (unsigned int i = 0; i < count && !found; i++)
		found = all[i].netns == netns_current() && all[i].program_id &&
			all[i].hook != HOOK_EGRESS &&
			(owner->is_loopback || all[i].ifindex == owner->ifindex ||
			 netdevs_are_stacked(&links, owner->ifindex, all[i].ifindex));
	netdevs_free(&links);
	return found;
}

/* The address without the prefix by which some servers map IPv4 addresses to IPv6. */
static const char *unmapped(const char *address)
{
	static const char mapped[] = "::ffff:";
	bool is_mapped = !strncasecmp(address, mapped, strlen(mapped)) && strchr(address, '.');

	return is_mapped ? address + strlen(mapped) : address;
}

/* False: there is no session, or its packets do not come through the gate as far as is known. */
static bool session_find(const struct gate *gate, struct session *ret)
{
	const char *connection = getenv("SSH_CONNECTION");
	char client[INET6_ADDRSTRLEN], server[INET6_ADDRSTRLEN];
	struct owner owner;

	if (!connection ||
	    sscanf(connection, "%45s %*u %45s %u", client, server, &ret->port) != 3 ||
	    strchr(client, '%') || address_parse(client, &ret->source))
		return false;
	snprintf(ret->text, sizeof(ret->text), "%s", unmapped(client));
	owner = owner_of(unmapped(server));
	return !owner_of(ret->text).ifindex && filters(gate, &owner);
}

int ssh_check_denies(const struct gate *gate, const struct ruleset *denies, const char *name)
{
	const char *option = gate_option(gate->name);
	struct session session;
	struct judgement now;
	bool allowed;

	if (!session_find(gate, &session) || rules_judge(gate, &session.source, &now) ||
	    now.access == SL_ACCESS_DENY)
		return OK;
	allowed = name && now.access == SL_ACCESS_ALLOW;
	for (unsigned int i = 0; i < denies->count; i++) {
		const struct sl_prefix *prefix = &denies->rules[i].prefix;
		bool comes_first = now.found && now.prefix.bits > prefix->bits;

		if (!prefix_covers(prefix, &session.source) || comes_first ||
		    (allowed && (!now.lists || now.prefix.bits == prefix->bits)))
			continue;
		return failure("%s: this ssh session comes from there and would be denied; allow "
			       "it with 'sluice %sallow %s', try the change with '--confirm 60s', "
			       "or say 'force'",
			       session.text, option, session.text);
	}
	return OK;
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

	if (!session_find(gate, &session) || rules_judge(gate, &session.source, &now) ||
	    now.access || !now.found || !prefix_equal(&now.prefix, &rule->prefix))
		return;
	packet.port = session.port;
	for (unsigned int i = 0; i < rule->limits; i++) {
		const struct limit *limit = &rule->limit[i];
		const struct sl_limit_spec *spec = &limit->spec;
		bool by_bytes = spec->rate_unit == SL_RATE_BITS;

		if (spec->kind == SL_SHAPE || spec->key_dst || spec->action == SL_ACTION_OBSERVE ||
		    !match_packet(&limit->match, &packet) ||
		    rate_per_second(spec) >= (by_bytes ? RATE_LEAST_BITS : RATE_LEAST_PPS))
			continue;
		note("%s: limit '%s' is lower than an ssh session needs, such as this session from "
		     "%s; try such a change with '--confirm 60s'",
		     prefix_format(&rule->prefix, prefix), spec->name, session.text);
		return;
	}
}
