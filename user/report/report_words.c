// SPDX-License-Identifier: GPL-2.0
/* The words of commands `check` and `sources`: their types, and the packet that they describe. */
#include <net/ethernet.h>
#include <netinet/in.h>
#include <sys/param.h>

#include "attach/attachment.h"
#include "base/error.h"
#include "base/text.h"
#include "report/report.h"
#include "rules/limit.h"
#include "rules/matches.h"
#include "state/source.h"

/* --- Sources -------------------------------------------------------------------------------- */

static const char *const orders[] = {"busiest", "passed", "dropped", "bytes", "level"};

const struct value_type value_order =
	VALUE_CHOICE("busiest|passed|dropped|bytes|level", orders, ORDER_BUSIEST);
const struct value_type value_top = VALUE_NUMBER(1, 1000000000, NULL);
const struct value_type value_skip = VALUE_NUMBER(0, 1000000000, NULL);

/* --- A packet ------------------------------------------------------------------------------- */

/* `proto icmp` means ICMP or ICMPv6, depending on the source's family */
#define ICMP_OF_FAMILY 257

#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_ACK 0x10
#define VLAN_TAG_LEN 4

enum { FRAGMENT_FIRST = 1, FRAGMENT_LATER };

/* Parses a number, and stores the number plus 1, because 0 means that no number was given. */
static int plus_one_parse(const struct value_type *type, const char *what, const char *text,
			  void *ret)
{
	static const unsigned int protos[] = {IPPROTO_TCP, IPPROTO_UDP, ICMP_OF_FAMILY};
	int word = type->words ? word_find(type->words, type->word_count, text) : -1;
	unsigned int number = 0;
	int err = 0;

	if (word >= 0)
		number = protos[word];
	else
		err = number_parse(type, what, text, &number);
	if (!err)
		*(unsigned int *)ret = number + 1;
	return err;
}

static int set_flags_parse(const struct value_type *type, const char *what, const char *text,
			   void *ret)
{
	uint8_t mask, flags;

	if (flags_read(text, &mask, &flags) || mask != flags)
		return value_refuse(type, "bad-flags", what, text, "not a list of TCP flags");
	*(unsigned int *)ret = flags + 1;
	return 0;
}

static int icmp_type_parse(const struct value_type *type, const char *what, const char *text,
			   void *ret)
{
	uint16_t types[SL_FAMILIES];
	unsigned int *number = ret;

	if (icmp_type_read(text, types))
		return value_refuse(type, "bad-icmp-type", what, text, "not a type of ICMP");
	for (int family = 0; family < SL_FAMILIES; family++)
		number[family] = types[family] + 1;
	return 0;
}

static const char *const proto_words[] = {"tcp", "udp", "icmp"};
static const char *const fragment_words[] = {"first", "later"};

const struct value_type value_proto = {
	.name = "tcp|udp|icmp|N",
	.parse = plus_one_parse,
	.expected = "write tcp, udp, icmp or a number",
	.words = proto_words,
	.word_count = ARRAY_SIZE(proto_words),
	.most = UINT8_MAX,
};
const struct value_type value_port = {.name = "N", .parse = plus_one_parse, .most = UINT16_MAX};
const struct value_type value_fragment =
	VALUE_CHOICE("first|later", fragment_words, FRAGMENT_FIRST);
const struct value_type value_vlan = VALUE_NUMBER(1, 4094, NULL);
const struct value_type value_flags = {
	.name = "FLAGS", .parse = set_flags_parse, .expected = "write those that are set: syn,ack"};
const struct value_type value_icmp_type = {
	.name = "TYPE", .parse = icmp_type_parse, .expected = "write a number, or echo-request"};
const struct value_type value_length = VALUE_NUMBER(1, UINT16_MAX, NULL);
const struct value_type value_dscp = VALUE_NUMBER(0, 63, NULL);
const struct value_type value_frame = {
	.name = "BYTES", .parse = number_parse, .least = 14, .most = 1 << 20};

/* Checks that the words fit the packet's protocol and family. */
static int words_check(const struct check_args *args, const struct sl_facts *facts)
{
	bool ipv4 = prefix_is_ipv4(&args->source);
	bool has_ports = facts->facts & (SL_FACT_TCP | SL_FACT_UDP);
	char text[PREFIX_TEXT];

	if (args->proto && !ipv4 && proto_is_extension(facts->proto))
		return error_misuse("bad-proto", "check",
				    "proto '%u' is an extension header of IPv6; write the protocol "
				    "after the last extension header",
				    facts->proto);
	if ((args->syn || args->flags || args->tls_hello) && !(facts->facts & SL_FACT_TCP))
		return error_misuse("not-tcp", "check",
				    "'syn', 'flags' and 'tls-hello' need TCP; write 'proto tcp'");
	if ((args->quic_initial || args->dns_query) && !(facts->facts & SL_FACT_UDP))
		return error_misuse("not-udp", "check",
				    "'quic-initial' and 'dns-query' need UDP; write 'proto udp'");
	if (args->port && !has_ports)
		return error_misuse("no-ports", "check",
				    "port '%u' needs a protocol; write 'proto tcp' or 'proto udp'",
				    args->port - 1);
	if (args->sport && !has_ports)
		return error_misuse("no-ports", "check",
				    "sport '%u' needs a protocol; write 'proto tcp' or 'proto udp'",
				    args->sport - 1);
	if (args->icmp[SL_IPV4] && !(facts->facts & SL_FACT_ICMP))
		return error_misuse("not-icmp", "check",
				    "'icmp-type' needs ICMP; write 'proto icmp icmp-type ...'");
	if (args->icmp[ipv4 ? SL_IPV4 : SL_IPV6] > UINT8_MAX + 1)
		return error_misuse("no-icmp-type", "check", "%s has no such 'icmp-type'",
				    ipv4 ? "ICMP" : "ICMPv6");
	if (args->to.bits && args->to.family != args->source.family)
		return error_misuse("other-family", "check",
				    "to '%s' has another family than the source, %s",
				    prefix_format(&args->to, text), ipv4 ? "IPv4" : "IPv6");
	return 0;
}

/* Sets the fields of the transport header that the words specify. */
static void transport_build(const struct check_args *args, struct sl_facts *facts)
{
	enum sl_family family = prefix_family(&args->source);
	uint8_t flags = (args->flags ? args->flags - 1 : 0) | (args->syn ? TCP_FLAG_SYN : 0);

	facts->facts |= (args->port || args->sport ? SL_FACT_PORT : 0) |
			(args->quic_initial ? SL_FACT_QUIC : 0) |
			(args->tls_hello ? SL_FACT_TLS : 0) | (args->dns_query ? SL_FACT_DNS : 0);
	facts->port = args->port ? args->port - 1 : 0;
	facts->sport = args->sport ? args->sport - 1 : 0;
	if (facts->facts & SL_FACT_TCP) {
		facts->facts |= SL_FACT_DETAIL;
		facts->tcp_flags = flags;
		if ((flags & (TCP_FLAG_SYN | TCP_FLAG_ACK)) == TCP_FLAG_SYN)
			facts->facts |= SL_FACT_SYN;
	} else if (args->icmp[family]) {
		facts->facts |= SL_FACT_DETAIL;
		facts->icmp_type = args->icmp[family] - 1;
	}
}

/* Removes what a fragment after the first lacks: ports, TCP flags, type of ICMP and payload. */
static void later_fragment_build(struct sl_facts *facts)
{
	facts->facts &=
		~(SL_FACT_PORT | SL_FACT_SYN | SL_FACT_DETAIL | SL_FACT_PAYLOAD | SL_FACT_UNREAD);
	facts->port = facts->sport = facts->tcp_flags = 0;
	if (facts->family == SL_FAMILY_IPV6) {
		facts->facts = (facts->facts & ~MATCH_PROTOCOLS) | SL_FACT_HIDDEN;
		facts->proto = 0;
	}
}

int packet_build(const struct check_args *args, struct packet_args *packet)
{
	bool ipv4 = prefix_is_ipv4(&args->source);
	struct sl_facts *facts = &packet->facts;
	unsigned int proto = args->proto
				     ?: args->syn || args->tls_hello	? IPPROTO_TCP + 1
				: args->quic_initial || args->dns_query ? IPPROTO_UDP + 1
									: 0;
	unsigned int link;
	int err;

	*packet = (struct packet_args){.facts.facts = SL_FACT_ANY, .bytes = FRAME_USUAL};
	packet->source = args->source;
	packet->destination = args->to;
	if (proto == ICMP_OF_FAMILY + 1)
		proto = (ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) + 1;
	if (proto) {
		facts->proto = proto - 1;
		facts->facts |= facts_of_proto(proto - 1, ipv4);
	}
	err = words_check(args, facts);
	if (err)
		return err;
	transport_build(args, facts);
	facts->family = ipv4 ? SL_FAMILY_IPV4 : SL_FAMILY_IPV6;
	facts->vlan = args->vlan;
	facts->dscp = args->dscp;
	packet->bytes = args->bytes ?: packet->bytes;
	link = ETHER_HDR_LEN + (args->vlan ? VLAN_TAG_LEN : 0);
	facts->length = args->length	       ? args->length
			: packet->bytes > link ? MIN(packet->bytes - link, UINT16_MAX)
					       : 0;
	if (args->unread)
		facts->facts = facts_unread(facts->facts & ~SL_FACT_DETAIL);
	if (args->fragment)
		facts->facts |= SL_FACT_FRAGMENT;
	if (args->fragment == FRAGMENT_LATER)
		later_fragment_build(facts);
	/* `to` implies hook egress, because limits with key dst apply only there */
	packet->egress = args->hook ? args->hook == HOOK_EGRESS + 1 : args->to.bits;
	return 0;
}
