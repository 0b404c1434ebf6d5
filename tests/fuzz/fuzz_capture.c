// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/capture/capture.h with files of arbitrary bytes. Each packet that it reads must be
 * within its bounds and not earlier than the previous packet. The first two bytes of the input
 * select the packets to read, and whether the file begins with a valid header.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/capture.h"
#include "capture_bytes.h"

static const uint16_t links[] = {1, 113, 276, 101, 228, 229, 105, 0};

/* Begins a capture file. `kind` selects its format, link type and byte order. */
static void header_put(struct capture_bytes *file, uint8_t kind)
{
	uint16_t link = links[kind % 8];

	*file = (struct capture_bytes){.is_big = kind & 8};
	if (kind & 0x10 && kind & 0x20) {
		put_section(file);
		put_interface(file, link, 65535, kind >> 6, "eth0");
		put_interface(file, 1, 0, 9, "");
	} else if (kind & 0x10) {
		put_pcap(file, kind & 0x40 ? 0xa1b2c3d4 : 0xa1b23c4d, link);
	}
}

static void packet_check(const struct capture_packet *packet, const struct capture_packet *before)
{
	if (packet->number <= before->number || packet->ns < before->ns)
		abort();
	if (packet->size > packet->length || packet->length > 2 << 20)
		abort();
	if (packet->is_cut != (packet->size < packet->length) && packet->size)
		abort();
	for (uint32_t i = 0; i < packet->size; i++) {
		volatile uint8_t byte = packet->bytes[i]; /* the sanitizer checks this read */

		(void)byte;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct capture_bytes file;
	struct capture_choice choice = {0};
	struct capture_packet packet = {0}, before = {0};
	struct capture *capture = NULL;
	FILE *stream;

	if (size < 3 || size > BYTES_MAX / 2)
		return 0;
	choice.direction = data[0] % 3;
	choice.has_to = data[0] & 4;
	choice.interface = data[0] & 8 ? "1" : NULL;
	header_put(&file, data[1]);
	put_bytes(&file, data + 2, size - 2);
	stream = fmemopen(file.bytes, file.size, "r");
	if (capture_open_stream(stream, "input", &choice, &capture))
		return 0;
	while (capture_next(capture, &packet) == 1) {
		packet_check(&packet, &before);
		before = packet;
	}
	capture_close(&capture);
	return 0;
}
