// SPDX-License-Identifier: GPL-2.0
/* The words of commands `check` and `sources`: their types, and the packet that they describe. */
#include <netinet/in.h>

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
const struct value_type value_frame = {
	.name = "BYTES", .parse = number_parse, .least = 14, .most = 1 << 20};

int packet_build(const struct check_args *args, struct packet_args *packet)
{
	bool ipv4 = prefix_is_ipv4(&args->source);
	struct sl_facts *facts = &packet->facts;
	unsigned int proto = args->proto ?: args->syn ? IPPROTO_TCP + 1 : 0;
	char text[PREFIX_TEXT];

	*packet = (struct packet_args){.facts.facts = SL_FACT_ANY, .bytes = FRAME_USUAL};
	packet->source = args->source;
	packet->destination = args->to;
	if (proto == ICMP_OF_FAMILY + 1)
		proto = (ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) + 1;
	if (proto && !ipv4 && proto_is_extension(proto - 1))
		return error_misuse("bad-proto", "check",
				    "proto '%u' is an extension header of IPv6; write the protocol "
				    "after the last extension header",
				    proto - 1);
	if (proto) {
		facts->proto = proto - 1;
		facts->facts |= facts_of_proto(proto - 1, ipv4);
	}
	if (args->syn && !(facts->facts & SL_FACT_TCP))
		return error_misuse("not-tcp", "check", "'syn' needs TCP; write 'proto tcp syn'");
	if (args->port && !(facts->facts & (SL_FACT_TCP | SL_FACT_UDP)))
		return error_misuse("no-ports", "check",
				    "port '%u' needs a protocol; write 'proto tcp' or 'proto udp'",
				    args->port - 1);
	if (args->to.bits && args->to.family != args->source.family)
		return error_misuse("other-family", "check",
				    "to '%s' has another family than the source, %s",
				    prefix_format(&args->to, text), ipv4 ? "IPv4" : "IPv6");
	facts->facts |= (args->syn ? SL_FACT_SYN : 0) | (args->port ? SL_FACT_PORT : 0);
	facts->port = args->port ? args->port - 1 : 0;
	facts->vlan = args->vlan;
	packet->bytes = args->bytes ?: packet->bytes;
	if (args->unread)
		facts->facts = facts_unread(facts->facts);
	if (args->fragment)
		facts->facts |= SL_FACT_FRAGMENT;
	if (args->fragment == FRAGMENT_LATER) { /* a later fragment has no port and no TCP flags */
		facts->facts &= ~(SL_FACT_PORT | SL_FACT_SYN | SL_FACT_UNREAD);
		facts->port = 0;
		if (!ipv4) {
			facts->facts = (facts->facts & ~MATCH_PROTOCOLS) | SL_FACT_HIDDEN;
			facts->proto = 0;
		}
	}
	/* `to` implies hook egress, because limits with key dst apply only there */
	packet->egress = args->hook ? args->hook == HOOK_EGRESS + 1 : args->to.bits;
	return 0;
}
