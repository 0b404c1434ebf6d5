// SPDX-License-Identifier: GPL-2.0
/* Warns about side effects of a change, and checks rules against the caller's ssh session. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <strings.h>

#include "attach/netdevs.h"
#include "attach/attachment.h"
#include "base/file.h"
#include "cli/command.h"
#include "gate/policy.h"
#include "gate/rulemap.h"
#include "keep/lock_file.h"
#include "match.h"
#include "sharing/share_state.h"

/* --- Attachments ---------------------------------------------------------------------------- */

/*
 * Warns if an attachment counts merged packets (GRO, GSO) as one packet. Ignores missing devices.
 */
static void warn_merged(const struct attachment *a)
{
	_cleanup_netdevs_ struct netdevs devices = {0};
	_cleanup_netns_ int back = -1;
	const struct netdev *found;
	bool is_tap;

	if (netns_visit(a->netns, &back) || netdevs_read(&devices))
		return;
	found = netdevs_find_name(&devices, a->device);
	is_tap = found && netdev_is_tap(found);
	if (found && attachment_merges(a, is_tap))
		error_notice("merged", a->device,
			     "in mode %s%s, packets that GRO or GSO merged count as one; hook "
			     "ingress counts each of them",
			     mode_names[a->mode], is_tap ? " on a tap" : "");
}

int warn_attached(const struct gate *gate, const struct attachment *made, unsigned int count)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int all_count = 0;
	int err = count ? attachments_read(gate, all, &all_count) : 0;

	if (err)
		return err;
	for (const struct attachment *a = made; a < made + count; a++) {
		if (!strcmp(a->device, "lo"))
			error_notice("loopback", "lo",
				     "carries only packets that this machine sends to itself; to "
				     "limit other sources, attach a network device");
		for (unsigned int i = 0; i < all_count; i++)
			if (attachments_both_receive(&all[i], a))
				error_notice("charged-twice", a->device,
					     "attached to gate '%s' on hooks xdp and ingress, so "
					     "received packets are charged and counted twice",
					     gate->name);
		if (a->hook == HOOK_XDP)
			warn_merged(a);
	}
	return stacked_note(gate, made, count);
}

/* --- Changed rules -------------------------------------------------------------------------- */

/* Warns that a changed limit discards its states. */
static void warn_afresh(const char *prefix, const struct sl_limit_spec *old,
			const struct sl_limit_spec *new)
{
	bool same_key =
		!memcmp(old->per, new->per, sizeof(new->per)) && old->key_dst == new->key_dst;

	if (old->kind != new->kind)
		error_notice("counts-afresh", prefix,
			     "limit '%s' changed from %s to %s, so its counts start again",
			     new->name, kind_names[old->kind], kind_names[new->kind]);
	else
		error_notice("counts-afresh", prefix,
			     "limit '%s': its %s has changed, so its counts start again", new->name,
			     same_key && new->kind == SL_WINDOW ? "window" : "key");
}

/*
 * Returns whether the gate may see merged packets. It may if it is attached on hook ingress or
 * egress, or if it has no attachment yet.
 */
static bool may_be_merged(const struct gate *gate)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;

	if (attachments_read(gate, all, &count))
		return false;
	for (unsigned int i = 0; i < count; i++)
		if (all[i].hook != HOOK_XDP)
			return true;
	return !count;
}

void warn_rules(const struct gate *gate, const struct rule *before, const struct rule *after,
		unsigned int count)
{
	unsigned int oversizes = 0, idles = 0, observes = 0;
	char buffer[PREFIX_TEXT];

	for (const struct rule *rule = after; rule < after + count; rule++, before++) {
		const char *prefix = prefix_format(&rule->prefix, buffer);

		for (unsigned int i = 0; i < rule->limits; i++) {
			const struct limit *limit = &rule->limit[i];
			const struct limit *old = rule_find_limit(before, limit->spec.name);

			if (old && !limit_keeps_states(&old->spec, &limit->spec))
				warn_afresh(prefix, &old->spec, &limit->spec);
			if (old && old->spec.action != SL_ACTION_OBSERVE &&
			    limit->spec.action == SL_ACTION_OBSERVE && !observes++)
				error_notice("observes", prefix,
					     "limit '%s' dropped packets, and now only observes; "
					     "to keep both, use another name",
					     limit->spec.name);
			if (limit_is_below_merged(limit) && !(old && limit_is_below_merged(old)) &&
			    !oversizes++ && may_be_merged(gate))
				error_notice("oversize", prefix,
					     "limit '%s': on hooks ingress and egress, a packet "
					     "that GRO or GSO merged may be larger than the whole "
					     "window, and is then dropped as oversize; to prevent "
					     "that: 'ethtool -K DEV gro off tso off gso off'",
					     limit->spec.name);
		}
		if (rule_budget_is_idle(rule) && !idles++)
			error_notice("budget-idle", prefix,
				     "the newcomers' budget drops no packet, because all limits "
				     "only observe");
	}
}

const struct sl_policy *policy_of(const struct gate *gate, const struct sl_prefix *prefix)
{
	struct sl_rule rule;

	if (rulemap_get(gate, prefix, &rule) <= 0 || !rule.cur.version)
		return NULL;
	return policy_version(gate, rule.cur.version);
}

void warn_policy(const struct gate *gate, const struct rule *rule, bool inherits)
{
	const struct sl_policy *policy = policy_of(gate, &rule->prefix);
	const char *option = gate_option(gate->name);
	char buffer[PREFIX_TEXT], text[INHERITED_TEXT], rate[UNITS_TEXT];
	const char *prefix = prefix_format(&rule->prefix, buffer), *inherited = NULL;
	const struct sl_limit_spec budget = rule_advise_budget(rule);
	bool sends = rule_sees_destinations(rule), is_shared = false;
	const char *newcomer = sends ? "destination" : "source";

	if (policy && inherits)
		inherited = inherited_format(gate, policy, text);
	if (inherited)
		error_notice("inherits", prefix,
			     "inherits %s, because it is a new policy; to prevent that: 'sluice "
			     "%sset %s inherit no'",
			     inherited, option, prefix);
	if (!rule->prefix.bits && policy && policy_lacks_budget(policy) &&
	    gate_note_first(gate, GATE_NOTE_BUDGET))
		error_notice("no-budget", prefix,
			     "each new %s has a burst of its own, so a %s would pass; to limit new "
			     "%ss together: 'sluice %snewcomers %s rate %s'",
			     newcomer, sends ? "flood to many of them" : "spoofed flood", newcomer,
			     option, prefix, rate_format(&budget, rate));
	for (unsigned int i = 0; i < rule->limits; i++)
		is_shared |= rule->limit[i].spec.shared;
	if (is_shared && sharing_read(gate).sharer == SHARER_NONE &&
	    gate_note_first(gate, GATE_NOTE_SHARE))
		error_notice("not-shared", prefix,
			     "no process shares its limits yet, so they apply to this machine "
			     "alone; to share them: 'sluice %sshare STORE'",
			     option);
}

/* --- Shadowed limits ------------------------------------------------------------------------ */

/*
 * Warns that a policy does not inherit limits of a shorter prefix. shadow->reason: why it does not.
 */
static void warn_shadow(const struct gate *gate, const struct shadow *shadow, bool file)
{
	static const char *const of_name[SHADOW_REASONS] = {
		[SHADOW_REPLACED] = "for other packets",
		[SHADOW_OBSERVED] = "to observe",
		[SHADOW_KEYED] = "for destinations",
	};
	const char *option = gate_option(gate->name);
	char buffer[PREFIX_TEXT], why_text[192], hint[192] = "to keep both, use another name";
	const char *prefix = prefix_format(&shadow->prefix, buffer);

	if (shadow->reason == SHADOW_LIFTED) {
		snprintf(why_text, sizeof(why_text), "%s does not inherit", prefix);
		snprintf(hint, sizeof(hint),
			 file ? "to inherit them: 'inherit: true'"
			      : "to inherit them: 'sluice %sset %s inherit yes'",
			 option, prefix);
	} else if (shadow->reason == SHADOW_BUDGET) {
		snprintf(why_text, sizeof(why_text), "%s has its own", prefix);
		snprintf(hint, sizeof(hint),
			 file ? "to inherit it, remove 'newcomers'"
			      : "to inherit it: 'sluice %snewcomers %s none'",
			 option, prefix);
	} else {
		snprintf(why_text, sizeof(why_text), "%s has %s %s", prefix,
			 shadow->items_count > 1 ? "limits of these names" : "a limit of that name",
			 of_name[shadow->reason]);
	}
	error_notice("limit-shadowed", prefix, "lacks %s: %s; %s", shadow->items, why_text, hint);
}

void warn_shadowed(const struct gate *gate, const struct shadowed *shadowed, bool file)
{
	for (unsigned int i = 0; i < SHADOWS_MAX && shadowed->list[i].items_count; i++)
		warn_shadow(gate, &shadowed->list[i], file);
	if (shadowed->more)
		error_notice("limit-shadowed", NULL,
			     "policies do not inherit %u more limits of shorter prefixes",
			     shadowed->more);
}

/* --- The process that keeps the gate -------------------------------------------------------- */

void kept_note(const char *gate, enum kept_change change, const char *file)
{
	static const char *const effects[] = {
		[KEPT_ATTACHMENTS] = "it attaches the devices of that file again; to prevent that, "
				     "end the process first",
		[KEPT_LIMITS] = "a reload or a restart applies that file, and so ends this change",
		[KEPT_FILE] = "a reload or a restart applies that file, and so ends this change; "
			      "the devices of that file are attached at once",
	};
	struct lock_holder keeper;
	char text[KEPT_TEXT];

	if (!keeper_find(gate, &keeper, text))
		return;
	if (file) {
		struct stamp applied = stamp_of(file), kept = stamp_of(keeper.path);

		if (stamp_same_file(&applied, &kept))
			return;
	}
	error_notice("kept", NULL, "gate '%s' is %s: %s", gate, text, effects[change]);
}

/* --- The operator's ssh session ------------------------------------------------------------- */

/*
 * Lowest rates for an interactive ssh session: a packet for each key stroke, and an ACK for every
 * second received packet.
 */
#define RATE_LEAST_PPS	10
#define RATE_LEAST_BITS 10000

/* Bytes of a packet of such a session from its TCP header on: an ACK, and a key stroke. */
#define LENGTH_ACK 32
#define LENGTH_KEY 68

/* The ssh session in which the caller runs this command, if its packets pass the gate. */
struct session {
	struct sl_prefix source;
	struct sl_prefix server;
	char text[INET6_ADDRSTRLEN]; /* address of the ssh client as text */
	unsigned int source_port;
	unsigned int server_port;
	struct judgement now; /* the rule that now applies to the client's address */
};

/* Returns the ifindex of the local device that has the address, or 0 if none has it. */
static unsigned int owner_of(const char *address, bool *ret_is_loopback)
{
	char host[NI_MAXHOST];
	struct ifaddrs *all;
	unsigned int owner = 0;

	if (getifaddrs(&all))
		return 0;
	for (const struct ifaddrs *a = all; a && !owner; a = a->ifa_next) {
		int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
		socklen_t length = family == AF_INET ? sizeof(struct sockaddr_in)
						     : sizeof(struct sockaddr_in6);

		if ((family != AF_INET && family != AF_INET6) ||
		    getnameinfo(a->ifa_addr, length, host, sizeof(host), NULL, 0, NI_NUMERICHOST) ||
		    strcmp(host, address))
			continue;
		owner = if_nametoindex(a->ifa_name);
		*ret_is_loopback = a->ifa_flags & IFF_LOOPBACK;
	}
	freeifaddrs(all);
	return owner;
}

/*
 * Returns whether packets to a local address pass the gate. Finds the device that has the address.
 * Returns true if the gate is attached to this device, or to a device below it, such as a port of a
 * bridge. For an address of lo, any device counts.
 */
static bool filters(const struct gate *gate, const char *address)
{
	_cleanup_(netdevs_free) struct netdevs links = {0};
	struct attachment all[ATTACHMENTS_MAX];
	bool is_loopback;
	unsigned int count, owner = owner_of(address, &is_loopback);

	if (!owner || attachments_read(gate, all, &count) || netdevs_read(&links))
		return false;
	for (const struct attachment *a = all; a < all + count; a++)
		if (a->netns == netns_current() && a->program_id && a->hook != HOOK_EGRESS &&
		    (is_loopback || a->ifindex == owner ||
		     netdevs_are_stacked(&links, owner, a->ifindex)))
			return true;
	return false;
}

/* Returns the IPv4 address in an IPv4-mapped IPv6 address (::ffff:a.b.c.d), or the text itself. */
static const char *unmapped(const char *address)
{
	static const char mapped[] = "::ffff:";
	bool is_mapped = !strncasecmp(address, mapped, strlen(mapped)) && strchr(address, '.');

	return is_mapped ? address + strlen(mapped) : address;
}

/*
 * Finds the ssh session of the caller. Returns false if there is none, or if its packets may not
 * pass the gate. Adds no error.
 */
static bool session_find(const struct gate *gate, struct session *ret)
{
	const char *connection = getenv("SSH_CONNECTION");
	char client[INET6_ADDRSTRLEN], server[INET6_ADDRSTRLEN];
	unsigned int mark = error_count();
	bool is_found, is_loopback;

	if (!connection ||
	    sscanf(connection, "%45s %u %45s %u", client, &ret->source_port, server,
		   &ret->server_port) != 4 ||
	    strchr(client, '%'))
		return false;
	snprintf(ret->text, sizeof(ret->text), "%s", unmapped(client));
	is_found = !address_parse(client, &ret->source) && !address_parse(server, &ret->server) &&
		   !owner_of(ret->text, &is_loopback) && filters(gate, unmapped(server)) &&
		   !rules_judge(gate, &ret->source, &ret->now);
	error_drop(mark);
	return is_found;
}

int ssh_check_denies(const struct gate *gate, const struct ruleset *denies, const char *name)
{
	struct session session;
	const struct judgement *now = &session.now;

	if (!session_find(gate, &session) || now->access == SL_ACCESS_DENY)
		return 0;
	for (unsigned int i = 0; i < denies->count; i++) {
		const struct sl_prefix *prefix = &denies->rules[i].prefix;
		bool is_longer = now->found && now->prefix.bits > prefix->bits;
		/*
		 * a runtime entry has precedence over a list; a list that allows has precedence
		 * over a list that denies
		 */
		bool is_allowed = name && now->access == SL_ACCESS_ALLOW &&
				  (!now->lists || now->prefix.bits == prefix->bits);

		if (!prefix_covers(prefix, &session.source) || is_longer || is_allowed)
			continue;
		return error_add(
			EPERM, "own-session", session.text,
			"this address has your ssh session, which would be denied; to try the "
			"change, write '--confirm 60s'; to deny it, write 'force'; to allow "
			"the session first: 'sluice %sallow %s'",
			gate_option(gate->name), session.text);
	}
	return 0;
}

/*
 * Returns whether a match selects packets of the session with these TCP flags, and with `bytes`
 * bytes from the TCP header on. Their DSCP and VLAN are unknown, so any DSCP and VLAN match.
 */
static bool session_is_matched(const struct session *session, const struct sl_match *match,
			       uint8_t flags, unsigned int bytes)
{
	bool ipv4 = prefix_is_ipv4(&session->source);
	const struct sl_facts packet = {
		.facts = SL_FACT_ANY | SL_FACT_PROTO | SL_FACT_TCP | SL_FACT_PORT | SL_FACT_DETAIL,
		.proto = PROTO_TCP,
		.family = ipv4 ? SL_FAMILY_IPV4 : SL_FAMILY_IPV6,
		.port = session->server_port,
		.sport = session->source_port,
		.length = bytes + (ipv4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr)),
		.tcp_flags = flags,
	};
	struct sl_match known = *match;

	known.vlan = 0;
	known.fields &= ~SL_FIELD_DSCP;
	return match_packet(&known, &packet, (const __be32 *)session->server.addr);
}

/* Returns whether a limit of a policy is too low for the session. */
static bool session_is_limited(const struct session *session, const struct sl_policy *policy,
			       const struct sl_limit *limit)
{
	const struct sl_limit_spec *spec = &policy->spec[limit->slot];
	const struct sl_match *match = &policy->match[limit->slot];
	double least = spec->rate_unit == SL_RATE_BITS ? RATE_LEAST_BITS : RATE_LEAST_PPS;

	return !match_is_egress(limit) && !limit->observe && rate_per_second(spec) < least &&
	       (session_is_matched(session, match, TH_ACK, LENGTH_ACK) ||
		session_is_matched(session, match, TH_PUSH | TH_ACK, LENGTH_KEY));
}

void ssh_warn(const struct gate *gate)
{
	enum sl_family family;
	const struct sl_policy *policy;
	struct session session;
	char text[PREFIX_TEXT];
	const char *prefix;

	if (!session_find(gate, &session) || !session.now.found)
		return;
	family = prefix_is_ipv4(&session.source) ? SL_IPV4 : SL_IPV6;
	prefix = prefix_format(&session.now.prefix, text);
	if (session.now.access == SL_ACCESS_DENY)
		error_notice("own-session", prefix,
			     "denies your ssh session from %s; to try such a change, write "
			     "'--confirm 60s'",
			     session.text);
	if (!session.now.version)
		return;
	policy = policy_version(gate, session.now.version);
	for (unsigned int i = 0; i < policy->limits[family]; i++) {
		const struct sl_limit *limit = &policy->limit[family][i];

		if (!session_is_limited(&session, policy, limit))
			continue;
		error_notice("own-session", prefix,
			     "limit '%s' is too low for your ssh session from %s; to try such a "
			     "change, write '--confirm 60s'",
			     policy->spec[limit->slot].name, session.text);
		return;
	}
}
