// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"
#include "report/report.h"

static int check_run(const struct context *context, const void *args)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct packet_args packet;

	return packet_build(args, &packet) ?: gate_open_to_look(&gate, context)
	       ?: report_check(&gate, &packet);
}

static const struct word check_words[] = {
	{"ADDRESS", OPERAND, &value_address, offsetof(struct check_args, source), NULL},
	{"proto", KEYWORD, &value_proto, offsetof(struct check_args, proto),
	 "the protocol: tcp, udp, icmp, or a number"},
	{"port", KEYWORD, &value_port, offsetof(struct check_args, port), "the destination port"},
	{"sport", KEYWORD, &value_port, offsetof(struct check_args, sport), "the source port"},
	{"syn", KEYWORD, NULL, offsetof(struct check_args, syn),
	 "a TCP packet with SYN and without ACK"},
	{"flags", KEYWORD, &value_flags, offsetof(struct check_args, flags),
	 "the TCP flags that are set: syn,ack"},
	{"icmp-type", KEYWORD, &value_icmp_type, offsetof(struct check_args, icmp),
	 "the type of an ICMP message: a number, or a name such as echo-request"},
	{"quic-initial", KEYWORD, NULL, offsetof(struct check_args, quic_initial),
	 "a QUIC packet that begins a connection"},
	{"tls-hello", KEYWORD, NULL, offsetof(struct check_args, tls_hello),
	 "a TCP packet that begins with a ClientHello of TLS"},
	{"dns-query", KEYWORD, NULL, offsetof(struct check_args, dns_query),
	 "a UDP packet with a DNS query"},
	{"unread", KEYWORD, NULL, offsetof(struct check_args, unread),
	 "a packet whose headers are too deep or truncated, so that its ports, flags and type are\n"
	 "unknown: it matches each limit that compares them"},
	{"fragment", KEYWORD, &value_fragment, offsetof(struct check_args, fragment),
	 "the first fragment, which has the ports, or a later fragment without ports"},
	{"vlan", KEYWORD, &value_vlan, offsetof(struct check_args, vlan),
	 "the VLAN id of the outermost tag whose id is not 0"},
	{"size", KEYWORD, &value_frame, offsetof(struct check_args, bytes),
	 "the size of the whole frame, for bit rates; 1514 by default"},
	{"length", KEYWORD, &value_length, offsetof(struct check_args, length),
	 "the bytes from the IP header on; by default the frame without its Ethernet header"},
	{"dscp", KEYWORD, &value_dscp, offsetof(struct check_args, dscp), "the DSCP, 0 by default"},
	{"to", KEYWORD, &value_address, offsetof(struct check_args, to),
	 "the destination, for limits with key dst or match to; implies hook egress"},
	{"hook", KEYWORD, &value_given_hook, offsetof(struct check_args, hook),
	 "the hook that judges the packet; only limits with key dst or shape depend on it"},
};

const struct command command_check = {
	.name = "check",
	.brief = "what would happen to a packet now",
	.details = "Charges no limit. The packet comes from ADDRESS, and has only the properties\n"
		   "that the words specify: without 'port' it has no port, without 'vlan' no tag.",
	.question = "which address?",
	COMMAND_WORDS(check_words, struct check_args),
	.run = check_run,
};
