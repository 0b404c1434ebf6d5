// SPDX-License-Identifier: GPL-2.0
/*
 * bpf/packet.h against an oracle that reads the same frame by index, from the RFCs. The frame is
 * copied to a buffer of exactly its size: AddressSanitizer sees any read past its end.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "packet.h"

/* What is to be learnt of a frame; the order is that of learning it. */
struct finding {
	enum sl_reason reason;
	uint32_t family;
	uint8_t addr[16];
	uint8_t first_proto;
	size_t payload; /* where the fixed IP header ends */
	enum packet_transport transport;
	size_t end; /* where the search ended; only if it was not cut short */
	uint8_t last_proto;
	uint32_t transport_size;
};

static uint16_t read16(const uint8_t *data, size_t at)
{
	return (uint16_t)(data[at] * 256 + data[at + 1]);
}

/* Where the EtherType that is no tag's stands; sets `reason` if there is none. */
static size_t oracle_ethertype(const uint8_t *data, size_t size, enum sl_reason *reason)
{
	size_t at = 12;
	int tags = 0;

	*reason = SL_PASS_SHORT;
	while (at + 2 <= size) {
		uint16_t type = read16(data, at);

		if (type != 0x8100 && type != 0x88a8) {
			*reason = SL_PASS_WITHIN;
			return at;
		}
		if (++tags == 3) {
			*reason = SL_PASS_VLAN_DEPTH;
			return at;
		}
		at += 4;
	}
	return at;
}

static void oracle_ipv4(struct finding *finding, const uint8_t *data, size_t size, size_t ip)
{
	size_t length;

	if (size - ip < 20) {
		finding->reason = SL_PASS_SHORT;
		return;
	}
	length = (size_t)(data[ip] % 16) * 4;
	if (data[ip] / 16 != 4 || length < 20) {
		finding->reason = SL_PASS_BAD_HEADER;
		return;
	}
	finding->family = 4;
	for (int i = 0; i < 4; i++)
		finding->addr[i] = data[ip + 12 + i];
	finding->first_proto = finding->last_proto = data[ip + 9];
	finding->payload = ip + 20;
	if (read16(data, ip + 6) % 0x2000) {
		finding->transport = TRANSPORT_HIDDEN;
		finding->end = finding->payload;
	} else if (size - ip < length) {
		finding->transport = TRANSPORT_SHORT;
	} else {
		finding->transport = TRANSPORT_OK;
		finding->end = ip + length;
	}
}

/* How long the extension header of this type at this place is; 0: it is none. */
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

static void oracle_chain(struct finding *finding, const uint8_t *data, size_t size)
{
	size_t at = finding->payload;
	uint8_t type = finding->first_proto;

	for (int headers = 0;; headers++) {
		size_t length;
		bool hides;

		finding->end = at;
		finding->last_proto = type;
		if (type != 0 && type != 43 && type != 60 && type != 44 && type != 51) {
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
		length = oracle_extension(data, at, type);
		if (size - at < length)
			return;
		hides = type == 44 && read16(data, at + 2) >= 8; /* the low 3 bits are flags */
		type = data[at];
		at += length;
		if (hides) {
			finding->transport = TRANSPORT_HIDDEN;
			finding->end = at;
			finding->last_proto = type;
			return;
		}
	}
}

static void oracle_ipv6(struct finding *finding, const uint8_t *data, size_t size, size_t ip)
{
	if (size - ip < 40) {
		finding->reason = SL_PASS_SHORT;
		return;
	}
	if (data[ip] / 16 != 6) {
		finding->reason = SL_PASS_BAD_HEADER;
		return;
	}
	finding->family = 6;
	for (int i = 0; i < 16; i++)
		finding->addr[i] = data[ip + 8 + i];
	finding->first_proto = data[ip + 6];
	finding->payload = ip + 40;
	oracle_chain(finding, data, size);
}

static struct finding oracle(const uint8_t *data, size_t size)
{
	struct finding finding = {0};
	size_t at = oracle_ethertype(data, size, &finding.reason);

	if (finding.reason != SL_PASS_WITHIN)
		return finding;
	if (read16(data, at) == 0x0800)
		oracle_ipv4(&finding, data, size, at + 2);
	else if (read16(data, at) == 0x86dd)
		oracle_ipv6(&finding, data, size, at + 2);
	else
		finding.reason = SL_PASS_NOT_IP;
	if (finding.family && finding.transport == TRANSPORT_OK) {
		size_t left = size - finding.end;

		if (finding.last_proto == 6 && left >= 20)
			finding.transport_size = (uint32_t)(data[finding.end + 12] / 16) * 4;
		if (finding.last_proto == 17 && left >= 8)
			finding.transport_size = 8;
	}
	return finding;
}

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_transport(const struct finding *finding, struct cursor *cursor,
			    struct packet *packet, const uint8_t *start)
{
	enum packet_transport transport = packet_find_transport(cursor, packet);

	require(transport == finding->transport);
	require(cursor->pos <= cursor->end);
	if (transport == TRANSPORT_SHORT)
		return;
	require((size_t)((uint8_t *)cursor->pos - start) == finding->end);
	require(packet->proto == finding->last_proto);
	if (transport == TRANSPORT_OK)
		require(packet_transport_size(cursor, packet) == finding->transport_size);
}

static void check(const uint8_t *start, size_t size)
{
	struct cursor cursor = {(void *)start, (void *)(start + size)};
	struct packet packet = {0};
	struct finding finding = oracle(start, size);

	require(packet_parse(&cursor, &packet) == finding.reason);
	if (finding.reason != SL_PASS_WITHIN)
		return;
	require(packet.source.family == htonl(finding.family));
	require(packet.source.bits == (finding.family == 4 ? 32U + 32U : 32U + 128U));
	require(!memcmp(packet.source.addr, finding.addr, 16));
	require(packet.proto == finding.first_proto);
	require((size_t)((uint8_t *)cursor.pos - start) == finding.payload);
	check_transport(&finding, &cursor, &packet, start);
}

/*
 * Where a frame begins: IP headers lie on a multiple of four, the kernel's NET_IP_ALIGN. On the
 * machines that run this natively that does not matter, but to UBSan it does.
 */
#define FRAME_ALIGN 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *buffer = malloc(FRAME_ALIGN + size);

	require(buffer);
	if (size)
		memcpy(buffer + FRAME_ALIGN, data, size);
	check(buffer + FRAME_ALIGN, size);
	free(buffer);
	return 0;
}

/*
 * Half of the mutations begin at a plausible EtherType: run-fuzzer brings no seeds, and a search
 * from nothing takes long to find two magic numbers at once.
 */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static const uint8_t types[][2] = {{0x08, 0x00}, {0x86, 0xdd}, {0x81, 0x00}, {0x88, 0xa8}};
	static const uint8_t protos[] = {0, 43, 44, 51, 60, 6, 17, 58};
	size_t at = 12 + 4 * (seed >> 8 & 1);

	size = LLVMFuzzerMutate(data, size, max_size);
	if (seed & 1)
		return size;
	if (seed & 2 && size >= at + 3) {
		memcpy(data + at, types[seed >> 4 & 3], 2);
		data[at + 2] = types[seed >> 4 & 3][0] == 0x08 ? 0x45 + (seed >> 10 & 3) : 0x60;
	}
	if (seed & 4 && size > 54 + 8 * (seed >> 12 & 7)) {
		data[20] = protos[seed >> 16 & 7];
		data[54 + 8 * (seed >> 12 & 7)] = protos[seed >> 20 & 7];
	}
	return size;
}
