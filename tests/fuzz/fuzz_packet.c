// SPDX-License-Identifier: GPL-2.0
/*
 * Compares bpf/packet.h with an oracle, which is a second parser written after the RFCs. The frame
 * and its linear part are in buffers of exactly their sizes, so that AddressSanitizer reports reads
 * past their ends.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "packet_model.h"

/* Results of the oracle, which is the test's own parser. It sets the fields in this order. */
struct finding {
	enum sl_reason reason;
	size_t ip; /* offset of the IP header */
	uint16_t vlan;
	uint32_t family;
	uint8_t addr[16];
	uint8_t destination[16];
	uint8_t first_proto;
	size_t payload; /* end of the fixed IP header; IPv4 options follow */
	size_t limit;	/* end of the packet by IP's length field, but not after the frame's end */
	enum packet_transport transport;
	size_t end;	 /* end of the last complete header in the frame */
	uint16_t length; /* length from the IP header on, by IP's length field */
	uint8_t dscp;
	uint8_t last_proto;
	bool proto_known; /* whether `last_proto` is the transport protocol */
	bool fragment;
	struct sl_facts facts;
};

static uint16_t read16(const uint8_t *data, size_t at)
{
	return (uint16_t)(data[at] * 256 + data[at + 1]);
}

static bool oracle_is_snap(const uint8_t *llc)
{
	return llc[0] == 0xaa && llc[1] == 0xaa && llc[2] == 3 && !llc[3] && !llc[4] &&
	       (llc[5] == 0 || llc[5] == 0xf8);
}

/*
 * Returns the offset of the EtherType after all VLAN tags. If the frame has no EtherType, sets
 * `reason`.
 */
static size_t oracle_ethertype(const uint8_t *data, size_t size, struct finding *finding)
{
	size_t at = 12;
	int tags = 0, snaps = 0;

	finding->reason = SL_PASS_SHORT;
	while (at + 2 <= size) {
		uint16_t type = read16(data, at);

		if (type < 0x600 && !snaps) {
			if (at + 10 > size)
				return at;
			if (oracle_is_snap(data + at + 2)) {
				snaps++;
				at += 8;
				continue;
			}
		}
		if (type != 0x8100 && type != 0x88a8) {
			finding->reason = PARSED;
			return at;
		}
		if (++tags == 9) {
			finding->reason = SL_DROP_VLAN_DEPTH;
			return at;
		}
		at += 4;
		if (!finding->vlan && at + 2 <= size)
			finding->vlan = read16(data, at - 2) % 0x1000;
	}
	return at;
}

/* Sets the end of the packet from IP's length field. A length of 0 means an unknown end. */
static void oracle_length(struct finding *finding, size_t begin, uint16_t length)
{
	if (length && begin + length < finding->limit)
		finding->limit = begin + length;
}

static uint16_t oracle_rest(size_t size)
{
	return size > 65535 ? 65535 : size;
}

static void oracle_ipv4(struct finding *finding, const uint8_t *data, size_t size, size_t ip)
{
	size_t length;

	if (size - ip < 20) {
		finding->reason = SL_DROP_UNREADABLE;
		return;
	}
	length = (size_t)(data[ip] % 16) * 4;
	if (data[ip] / 16 != 4 || length < 20) {
		finding->reason = SL_PASS_BAD_HEADER;
		return;
	}
	finding->family = 4;
	finding->dscp = data[ip + 1] / 4;
	finding->length = read16(data, ip + 2) ?: oracle_rest(size - ip);
	oracle_length(finding, ip, read16(data, ip + 2));
	for (int i = 0; i < 4; i++) {
		finding->addr[i] = data[ip + 12 + i];
		finding->destination[i] = data[ip + 16 + i];
	}
	finding->first_proto = finding->last_proto = data[ip + 9];
	finding->proto_known = true;
	finding->payload = ip + 20;
	/* the more-fragments flag or an offset above 0 marks a fragment */
	finding->fragment = read16(data, ip + 6) % 0x4000;
	if (read16(data, ip + 6) % 0x2000) {
		finding->transport = TRANSPORT_HIDDEN;
		finding->end = ip + length;
	} else if (finding->limit < ip + length) {
		finding->transport = TRANSPORT_SHORT;
	} else {
		finding->transport = TRANSPORT_OK;
		finding->end = ip + length;
	}
}

/* Returns the size of an extension header, or 0 if `type` is not an extension header. */
static size_t oracle_extension(const uint8_t *data, size_t at, uint8_t type)
{
	switch (type) {
	case 0:
	case 43:
	case 60:
		return 8 + 8 * (size_t)data[at + 1];
	case 44:
		return 8;
	case 51:
		return 8 + 4 * (size_t)data[at + 1];
	}
	return 0;
}

static bool oracle_is_extension(uint8_t type)
{
	return type == 0 || type == 43 || type == 60 || type == 44 || type == 51;
}

static void oracle_chain(struct finding *finding, const uint8_t *data, size_t size)
{
	size_t at = finding->payload;
	uint8_t type = finding->first_proto;

	for (int headers = 0;; headers++) {
		uint16_t field = 0; /* 13 bits of offset, 2 reserved bits, and flag M */
		size_t length;

		finding->end = at;
		finding->last_proto = type;
		finding->proto_known = !oracle_is_extension(type);
		if (finding->proto_known) {
			finding->transport = TRANSPORT_OK;
			return;
		}
		if (headers == 8) {
			finding->transport = TRANSPORT_TOO_DEEP;
			return;
		}
		finding->transport = TRANSPORT_SHORT;
		if (size - at < 8)
			return;
		if (type == 44)
			field = read16(data, at + 2);
		finding->fragment |= field / 8 || field % 2;
		length = oracle_extension(data, at, type);
		if (size - at < length)
			return;
		type = data[at];
		at += length;
		if (field / 8) {
			finding->transport = TRANSPORT_HIDDEN;
			finding->end = at;
			finding->last_proto = type;
			/*
			 * unknown, because only the first fragment has the protocol that a receiver
			 * uses
			 */
			finding->proto_known = false;
			return;
		}
	}
}

static void oracle_ipv6(struct finding *finding, const uint8_t *data, size_t size, size_t ip)
{
	if (size - ip < 40) {
		finding->reason = SL_DROP_UNREADABLE;
		return;
	}
	if (data[ip] / 16 != 6) {
		finding->reason = SL_PASS_BAD_HEADER;
		return;
	}
	finding->family = 6;
	finding->dscp = (data[ip] % 16 * 16 + data[ip + 1] / 16) / 4;
	finding->length =
		oracle_rest(read16(data, ip + 4) ? 40U + read16(data, ip + 4) : size - ip);
	for (int i = 0; i < 16; i++) {
		finding->addr[i] = data[ip + 8 + i];
		finding->destination[i] = data[ip + 24 + i];
	}
	finding->first_proto = data[ip + 6];
	finding->payload = ip + 40;
	oracle_length(finding, ip + 40, read16(data, ip + 4));
	oracle_chain(finding, data, finding->limit);
}

/* Reads the ports and the TCP flags that are in the frame. */
static void oracle_transport(struct finding *finding, const uint8_t *data, size_t size)
{
	bool is_tcp = finding->last_proto == 6, is_udp = finding->last_proto == 17;
	size_t at = finding->end, left = size - at;
	bool is_icmp = finding->facts.facts & SL_FACT_ICMP;

	if ((is_tcp && left < 14) || (is_udp && left < 4) || (is_icmp && !left))
		finding->transport = TRANSPORT_SHORT;
	if (is_icmp && left) {
		finding->facts.facts |= SL_FACT_DETAIL;
		finding->facts.icmp_type = data[at];
	}
	if (is_tcp && left >= 14) {
		finding->facts.facts |= SL_FACT_DETAIL;
		finding->facts.tcp_flags = data[at + 13];
	}
	if ((is_tcp || is_udp) && left >= 4) {
		finding->facts.facts |= SL_FACT_PORT;
		finding->facts.sport = read16(data, at);
		finding->facts.port = read16(data, at + 2);
	}
	if (is_tcp && left >= 14 && data[at + 13] / 2 % 2 && !(data[at + 13] / 16 % 2))
		finding->facts.facts |= SL_FACT_SYN;
	if (is_tcp && left >= 14)
		finding->end += (size_t)(data[at + 12] / 16) * 4;
	if (is_udp)
		finding->end += 8;
}

/* Returns the facts that a packet has if its transport header cannot be read. */
static uint16_t oracle_unread(uint16_t facts)
{
	return (facts & SL_FACT_TCP ? SL_FACT_SYN | SL_FACT_TLS : 0) |
	       (facts & SL_FACT_UDP ? SL_FACT_QUIC | SL_FACT_DNS : 0);
}

/* Returns whether the known bytes of a payload equal the numbers of a pattern; -1 is any byte. */
static bool oracle_begins(const uint8_t *data, size_t size, const int pattern[6], const int mask[6])
{
	for (size_t i = 0; i < 6 && i < size; i++)
		if (pattern[i] >= 0 && (data[i] & mask[i]) != pattern[i])
			return false;
	return true;
}

/* Returns the facts of a payload. size: bytes of the payload that the frame has */
static uint16_t oracle_payload(const uint8_t *data, size_t size, bool is_tcp)
{
	static const int version[6] = {255, 0xf0, 255, 255, 255, 255},
			 type[6] = {0xfd, 255, 255, 255, 255, 255},
			 form[6] = {0xb0, 255, 255, 255, 255, 255},
			 code[6] = {255, 255, 0xf8, 255, 255, 255};
	static const int tls[6] = {22, 0, -1, -1, -1, 1}, empty[6] = {20, 3, -1, 0, 0, -1},
			 alert[6] = {21, 0, -1, 0, 2, 1}, quic1[6] = {0x80, 0, 0, 0, 1, -1},
			 quic2[6] = {0x90, 0x6b, 0x33, 0x43, 0xcf, -1},
			 dns[6] = {-1, -1, 0, -1, 0, 1};

	if (is_tcp)
		return oracle_begins(data, size, tls, version) ||
				       oracle_begins(data, size, alert, version) ||
				       oracle_begins(data, size, empty, type)
			       ? SL_FACT_TLS
			       : 0;
	return (oracle_begins(data, size, quic1, form) || oracle_begins(data, size, quic2, form)
			? SL_FACT_QUIC
			: 0) |
	       (oracle_begins(data, size, dns, code) ? SL_FACT_DNS : 0);
}

static void oracle_facts(struct finding *finding, const uint8_t *data, size_t size)
{
	struct sl_facts *facts = &finding->facts;

	facts->facts |= SL_FACT_ANY;
	facts->vlan = finding->vlan;
	facts->family = finding->family;
	facts->length = finding->length;
	facts->dscp = finding->dscp;
	if (finding->fragment)
		facts->facts |= SL_FACT_FRAGMENT;
	if (finding->proto_known) {
		facts->facts |= SL_FACT_PROTO;
		facts->proto = finding->last_proto;
		if (facts->proto == 6)
			facts->facts |= SL_FACT_TCP;
		if (facts->proto == 17)
			facts->facts |= SL_FACT_UDP;
		if (facts->proto == (finding->family == 4 ? 1 : 58))
			facts->facts |= SL_FACT_ICMP;
	}
	if (finding->transport == TRANSPORT_HIDDEN && finding->family == 6)
		facts->facts |= SL_FACT_HIDDEN;
	if (finding->transport == TRANSPORT_OK)
		oracle_transport(finding, data, size);
	if (finding->transport == TRANSPORT_SHORT || finding->transport == TRANSPORT_TOO_DEEP)
		facts->facts |= SL_FACT_UNREAD | oracle_unread(facts->facts);
}

static struct finding oracle(const uint8_t *data, size_t size)
{
	struct finding finding = {.limit = size};
	size_t at = oracle_ethertype(data, size, &finding);

	if (finding.reason != PARSED)
		return finding;
	finding.ip = at + 2;
	if (read16(data, at) == 0x0800)
		oracle_ipv4(&finding, data, size, at + 2);
	else if (read16(data, at) == 0x86dd)
		oracle_ipv6(&finding, data, size, at + 2);
	else
		finding.reason = SL_PASS_NOT_IP;
	if (finding.family)
		oracle_facts(&finding, data, finding.limit);
	return finding;
}

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_look(const struct finding *finding, const struct packet *packet,
		       enum packet_transport answer)
{
	require(answer == finding->transport);
	require(facts_are_sound(packet));
	require(answer_is_sound(packet, answer));
	require(!memcmp(&packet->facts, &finding->facts, sizeof(packet->facts)));
	require(!memcmp(packet->destination, finding->destination, sizeof(packet->destination)));
	if (answer != TRANSPORT_SHORT)
		require(packet->headers == finding->end);
}

/* Checks packet_inspect_payload() after packet_inspect() has read the headers. */
static void check_payload(const struct finding *finding, const struct packet *inspected,
			  const struct reader *part, const struct reader *whole,
			  const uint8_t *data, size_t size)
{
	size_t end = finding->ip + finding->length, limit = end < size ? end : size;
	bool is_tcp = finding->facts.facts & SL_FACT_TCP, is_read;
	uint16_t facts = finding->facts.facts, expected = facts & SL_FACT_PAYLOAD;
	struct packet packet = *inspected;

	is_read = packet_inspect_payload(part, &packet) || packet_inspect_payload(whole, &packet);
	if (facts & SL_FACT_PORT && !(facts & SL_FACT_UNREAD) && finding->end < end) {
		bool has_head = finding->end + 6 <= size || end <= size;

		require(is_read == has_head);
		expected =
			has_head ? oracle_payload(data + finding->end, limit - finding->end, is_tcp)
				 : oracle_unread(facts) & SL_FACT_PAYLOAD;
	} else if (facts & SL_FACT_PORT && !(facts & SL_FACT_UNREAD) && facts & SL_FACT_FRAGMENT) {
		expected = oracle_unread(facts) & SL_FACT_PAYLOAD;
	}
	require((packet.facts.facts & SL_FACT_PAYLOAD) == expected);
	require(!((packet.facts.facts ^ facts) & ~SL_FACT_PAYLOAD));
}

static void check_source(const struct finding *finding, const struct packet *packet)
{
	require(packet->source.family == htonl(finding->family));
	require(packet->source.bits == (finding->family == 4 ? 32U + 32U : 32U + 128U));
	require(!memcmp(packet->source.addr, finding->addr, 16));
	require(packet->facts.vlan == finding->vlan && !packet->inspected);
	require(packet->ip_offset == finding->ip);
}

static struct packet check(const uint8_t *start, size_t size, const uint8_t *linear,
			   size_t linear_size)
{
	const struct reader part = reader_linear(linear, linear_size, size);
	const struct reader whole = {
		.kind = READ_SKB, .ctx = (void *)start, .size = (uint32_t)size};
	struct finding finding = oracle(start, size);
	struct packet packet = {0};
	enum sl_reason reason = parse_both(&part, &whole, &packet);

	require(reason == finding.reason);
	if (reason != PARSED)
		return packet;
	check_source(&finding, &packet);
	check_look(&finding, &packet, inspect_both(&part, &whole, &packet));
	check_payload(&finding, &packet, &part, &whole, start, size);
	return packet;
}

/* Checks that the facts from the first part of a frame equal the facts from the whole frame. */
static void check_cut(const struct packet *whole, const struct packet *cut)
{
	uint16_t supposed = cut->facts.facts & SL_FACT_UNREAD
				    ? SL_FACT_UNREAD | SL_FACT_SYN | SL_FACT_PAYLOAD
				    : 0;

	if (!cut->inspected)
		return;
	require(whole->inspected && !memcmp(&cut->source, &whole->source, sizeof(cut->source)));
	require(!(cut->facts.facts & ~supposed & ~whole->facts.facts));
	if (cut->facts.facts & SL_FACT_PROTO)
		require(cut->facts.proto == whole->facts.proto);
	if (cut->facts.facts & SL_FACT_PORT)
		require(cut->facts.port == whole->facts.port &&
			cut->facts.sport == whole->facts.sport);
	if (cut->facts.facts & SL_FACT_DETAIL)
		require(cut->facts.tcp_flags == whole->facts.tcp_flags);
	require(cut->facts.dscp == whole->facts.dscp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *buffer = frame_copy(data, size), *whole = buffer + FRAME_ALIGN, *linear;
	struct packet packet = check(whole, size, whole, size), cut;
	size_t part;

	if (size) {
		/* the first byte selects the length of the linear part */
		part = size * data[0] / 256;
		linear = frame_copy(data, part);
		/* parse the frame in two parts, then parse the first part as a whole frame */
		check(whole, size, linear + FRAME_ALIGN, part);
		cut = check(linear + FRAME_ALIGN, part, linear + FRAME_ALIGN, part);
		check_cut(&packet, &cut);
		free(linear);
	}
	free(buffer);
	return 0;
}

/*
 * Writes valid EtherTypes and protocols into half of the mutated inputs. Random bytes rarely
 * contain two valid numbers.
 */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static const uint8_t types[][2] = {{0x08, 0x00}, {0x86, 0xdd}, {0x81, 0x00}, {0x88, 0xa8}};
	static const uint8_t protos[] = {0, 43, 44, 51, 60, 6, 17, 58};
	size_t at = 12 + 4 * (seed >> 8 & 15);

	size = LLVMFuzzerMutate(data, size, max_size);
	if (seed & 1)
		return size;
	if (seed & 2 && size >= at + 3) {
		memcpy(data + at, types[seed >> 4 & 3], 2);
		data[at + 2] = types[seed >> 4 & 3][0] == 0x08 ? 0x45 + (seed >> 12 & 3) : 0x60;
	}
	if (seed & 4 && size > 54 + 8 * (seed >> 12 & 7)) {
		data[20] = protos[seed >> 16 & 7];
		data[54 + 8 * (seed >> 12 & 7)] = protos[seed >> 20 & 7];
	}
	return size;
}
