// SPDX-License-Identifier: GPL-2.0
#include "probe.h"

#include <netinet/in.h>
#include <string.h>

#include "attachment.h"
#include "command.h"
#include "limit.h"
#include "prefix.h"
#include "units.h"

#define FRAME_MIN 14
#define FRAME_MAX (1 << 20)
#define VLAN_MAX  4094

enum word {
	WORD_PROTO,
	WORD_SYN,
	WORD_PORT,
	WORD_UNREAD,
	WORD_FRAGMENT,
	WORD_VLAN,
	WORD_SIZE,
	WORD_TO,
	WORD_HOOK,
	WORDS,
};

static const char *const word_names[WORDS] = {
	[WORD_PROTO] = "proto",	      [WORD_SYN] = "syn",
	[WORD_PORT] = "port",	      [WORD_UNREAD] = "unread",
	[WORD_FRAGMENT] = "fragment", [WORD_VLAN] = "vlan",
	[WORD_SIZE] = "size",	      [WORD_TO] = "to",
	[WORD_HOOK] = "hook",
};

/* What was said, by keyword; NULL: nothing. */
struct words {
	const char *text[WORDS];
};

static enum word word_find(const char *name)
{
	int word = 0;

	while (word < WORDS && strcmp(word_names[word], name))
		word++;
	return word;
}

static enum status words_take(int argc, char **argv, struct words *words)
{
	for (int i = 2; i < argc; i++) {
		enum word word = word_find(argv[i]);

		if (word == WORDS)
			return unexpected_for(argv[0], argv[i], word_names, WORDS);
		if (words->text[word])
			return misuse("check: '%s' is given twice", argv[i]);
		/* alone of all, these have no value */
		words->text[word] = word == WORD_SYN || word == WORD_UNREAD
					    ? argv[i]
					    : keyword_value(argc, argv, &i);
		if (!words->text[word])
			return MISUSED;
	}
	return OK;
}

/* A number of at least `least` and at most `most`; false: it is none. */
static bool number_take(const char *text, unsigned int least, unsigned int most, unsigned int *ret)
{
	const char *end = number_read(text, most, ret);

	return end && !*end && *ret >= least && *ret <= most;
}

/* --- One word each -------------------------------------------------------------------------- */

/* Such a header does not end the chain of IPv6's headers: no packet's protocol is that. */
static bool proto_is_extension(const struct probe *probe, uint8_t proto)
{
	return prefix_is_ipv6(&probe->source) &&
	       (proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
		proto == IPPROTO_AH || proto == IPPROTO_DSTOPTS);
}

/* As the packet path's facts_of_proto. */
static void proto_set(struct probe *probe, uint8_t proto)
{
	uint8_t icmp = prefix_is_ipv4(&probe->source) ? IPPROTO_ICMP : IPPROTO_ICMPV6;

	probe->facts.proto = proto;
	probe->facts.facts |= SL_FACT_PROTO;
	if (proto == IPPROTO_TCP)
		probe->facts.facts |= SL_FACT_TCP;
	else if (proto == IPPROTO_UDP)
		probe->facts.facts |= SL_FACT_UDP;
	else if (proto == icmp)
		probe->facts.facts |= SL_FACT_ICMP;
}

static enum status proto_parse(const char *text, struct probe *probe)
{
	unsigned int proto;

	if (!strcmp(text, "tcp"))
		proto = IPPROTO_TCP;
	else if (!strcmp(text, "udp"))
		proto = IPPROTO_UDP;
	else if (!strcmp(text, "icmp"))
		proto = prefix_is_ipv4(&probe->source) ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	else if (!number_take(text, 0, UINT8_MAX, &proto))
		return misuse("check: proto '%s': write tcp, udp, icmp or a number, 0 to 255",
			      text);
	if (proto_is_extension(probe, proto))
		return misuse("check: proto '%s' is an extension header of IPv6: say the protocol "
			      "that is behind all of them",
			      text);
	proto_set(probe, proto);
	return OK;
}

static enum status syn_parse(struct probe *probe)
{
	if (!(probe->facts.facts & SL_FACT_PROTO))
		proto_set(probe, IPPROTO_TCP);
	if (!(probe->facts.facts & SL_FACT_TCP))
		return misuse("check: 'syn' is of 'proto tcp': no other protocol has it");
	probe->facts.facts |= SL_FACT_SYN;
	return OK;
}

static enum status port_parse(const char *text, struct probe *probe)
{
	unsigned int port;

	if (!number_take(text, 0, UINT16_MAX, &port))
		return misuse("check: port '%s' is not a number, 0 to 65535", text);
	if (!(probe->facts.facts & (SL_FACT_TCP | SL_FACT_UDP)))
		return misuse("check: port '%s' of what? Ports are of 'proto tcp' and 'proto udp'",
			      text);
	probe->facts.facts |= SL_FACT_PORT;
	probe->facts.port = port;
	return OK;
}

/* As the packet path's packet_look: flags that cannot be read may be a SYN's. */
static enum status unread_parse(struct probe *probe)
{
	probe->facts.facts |= SL_FACT_UNREAD;
	if (probe->facts.facts & SL_FACT_TCP)
		probe->facts.facts |= SL_FACT_SYN;
	return OK;
}

/* A later fragment has no transport header: port and flags are in the first, and in IPv6 the protocol. */
static enum status fragment_parse(const char *text, struct probe *probe)
{
	bool later = !strcmp(text, "later");

	if (!later && strcmp(text, "first"))
		return misuse("check: fragment '%s': write first or later", text);
	probe->facts.facts |= SL_FACT_FRAGMENT;
	if (later) {
		probe->facts.facts &= ~(SL_FACT_PORT | SL_FACT_SYN | SL_FACT_UNREAD);
		probe->facts.port = 0;
	}
	if (later && !prefix_is_ipv4(&probe->source)) {
		probe->facts.facts &= ~MATCH_PROTOCOLS;
		probe->facts.facts |= SL_FACT_HIDDEN;
		probe->facts.proto = 0;
	}
	return OK;
}

static enum status vlan_parse(const char *text, struct probe *probe)
{
	unsigned int vlan;

	if (!number_take(text, 1, VLAN_MAX, &vlan))
		return misuse("check: vlan '%s' is not a number, 1 to %d", text, VLAN_MAX);
	probe->facts.vlan = vlan;
	return OK;
}

static enum status size_parse(const char *text, struct probe *probe)
{
	if (!number_take(text, FRAME_MIN, FRAME_MAX, &probe->bytes))
		return misuse("check: size '%s' is not a frame's: %d to %d bytes", text, FRAME_MIN,
			      FRAME_MAX);
	return OK;
}

/* What has a destination to ask about is sent. */
static enum status to_parse(const char *text, struct probe *probe)
{
	enum status status = address_parse(text, &probe->destination);

	if (status)
		return status;
	if (probe->destination.family != probe->source.family)
		return misuse("check: to '%s' is not of the source's family, %s", text,
			      prefix_is_ipv4(&probe->source) ? "IPv4" : "IPv6");
	probe->egress = true;
	return OK;
}

static enum status hook_take(const char *text, struct probe *probe)
{
	enum hook hook;

	if (!hook_parse(text, &hook))
		return MISUSED;
	probe->egress = hook == HOOK_EGRESS;
	return OK;
}

static enum status word_parse(enum word word, const char *text, struct probe *probe)
{
	switch (word) {
	case WORD_PROTO:
		return proto_parse(text, probe);
	case WORD_SYN:
		return syn_parse(probe);
	case WORD_PORT:
		return port_parse(text, probe);
	case WORD_UNREAD:
		return unread_parse(probe);
	case WORD_FRAGMENT:
		return fragment_parse(text, probe);
	case WORD_VLAN:
		return vlan_parse(text, probe);
	case WORD_SIZE:
		return size_parse(text, probe);
	case WORD_TO:
		return to_parse(text, probe);
	default:
		return hook_take(text, probe);
	}
}

/*
 * In the order of enum word, however they were said: a port needs to know its protocol, and so on.
 */
enum status probe_parse(int argc, char **argv, struct probe *ret)
{
	struct probe probe = {.facts.facts = SL_FACT_ANY, .bytes = FRAME_USUAL};
	struct words words = {0};
	enum status status;

	if (argc < 2)
		return misuse("check: which address? See 'sluice help check'");
	status = address_parse(argv[1], &probe.source);
	if (!status)
		status = words_take(argc, argv, &words);
	for (int word = 0; !status && word < WORDS; word++)
		if (words.text[word])
			status = word_parse(word, words.text[word], &probe);
	if (!status)
		*ret = probe;
	return status;
}
