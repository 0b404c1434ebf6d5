// SPDX-License-Identifier: GPL-2.0
#include "cli/ssh_session.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/rules.h"
#include "match.h"
#include "rules/prefix.h"
#include "rules/units.h"

/* An interactive session sends a packet for each key, and one for each two that it receives. */
#define RATE_LEAST_PPS	10
#define RATE_LEAST_BITS 10000

/* The session, of which packets come through the gate. */
struct session {
	struct sl_prefix source;
	char text[INET6_ADDRSTRLEN]; /* the source as text */
	unsigned int port;	     /* of the server */
};

/* The index of the device of this network namespace that has the address; 0: none. */
static unsigned int device_of(const char *address)
{
	char host[NI_MAXHOST];
	struct ifaddrs *all;
	unsigned int ifindex = 0;

	if (getifaddrs(&all))
		return 0;
	for (const struct ifaddrs *a = all; a && !ifindex; a = a->ifa_next) {
		int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
		socklen_t length = family == AF_INET ? sizeof(struct sockaddr_in)
						     : sizeof(struct sockaddr_in6);

		if ((family == AF_INET || family == AF_INET6) &&
		    !getnameinfo(a->ifa_addr, length, host, sizeof(host), NULL, 0,
				 NI_NUMERICHOST) &&
		    !strcmp(host, address))
			ifindex = if_nametoindex(a->ifa_name);
	}
	freeifaddrs(all);
	return ifindex;
}

static bool filters(const struct gate *gate, unsigned int ifindex)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;

	if (!ifindex || attachments_read(gate, all, &count))
		return false;
	for (unsigned int i = 0; i < count; i++)
		if (all[i].ifindex == ifindex && all[i].netns == netns_current() &&
		    all[i].program_id && all[i].hook != HOOK_EGRESS)
			return true;
	return false;
}

/* False: there is no session, or its packets do not come through the gate as far as is known. */
static bool session_find(const struct gate *gate, struct session *ret)
{
	const char *connection = getenv("SSH_CONNECTION");
	char server[INET6_ADDRSTRLEN];

	if (!connection ||
	    sscanf(connection, "%45s %*u %45s %u", ret->text, server, &ret->port) != 3 ||
	    strchr(ret->text, '%') || !filters(gate, device_of(server)) ||
	    address_parse(ret->text, &ret->source))
		return false;
	return true;
}

enum status ssh_check_denies(const struct gate *gate, const struct ruleset *denies,
			     const char *name)
{
	const char *option = gate_option(gate->name);
	struct session session;
	struct judgement now;
	bool allowed;

	if (!session_find(gate, &session) || rules_judge(gate, &session.source, &now) ||
	    now.access == SL_LIST_DENY)
		return OK;
	allowed = name && now.access == SL_LIST_ALLOW;
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
		note("%s: limit '%s' is lower than an ssh session needs, such as this one from %s; "
		     "'--confirm 60s' undoes such a change unless it is confirmed",
		     prefix_format(&rule->prefix, prefix), spec->name, session.text);
		return;
	}
}
