/* SPDX-License-Identifier: GPL-2.0 */
/* Builds pcap and pcapng files in memory, in both byte orders. */
#ifndef SLUICE_TEST_CAPTURE_BYTES_H
#define SLUICE_TEST_CAPTURE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 65536

/* A capture file. `is_big`: numbers are big-endian. */
struct capture_bytes {
	uint8_t bytes[BYTES_MAX];
	size_t size;
	bool is_big;
};

static inline void put_bytes(struct capture_bytes *file, const void *bytes, size_t size)
{
	if (file->size + size > BYTES_MAX)
		abort();
	memcpy(file->bytes + file->size, bytes, size);
	file->size += size;
}

static inline void put_number(struct capture_bytes *file, uint64_t value, unsigned int width)
{
	for (unsigned int i = 0; i < width; i++) {
		uint8_t byte = value >> 8 * (file->is_big ? width - 1 - i : i);

		put_bytes(file, &byte, 1);
	}
}

/* Begins a pcap file. magic: 0xa1b2c3d4 for microseconds, 0xa1b23c4d for nanoseconds. */
static inline void put_pcap(struct capture_bytes *file, uint32_t magic, uint32_t link)
{
	put_number(file, magic, 4);
	put_number(file, 2, 2);
	put_number(file, 4, 2);
	put_number(file, 0, 8);
	put_number(file, 262144, 4);
	put_number(file, link, 4);
}

static inline void put_pcap_packet(struct capture_bytes *file, uint32_t seconds, uint32_t fraction,
				   const void *bytes, uint32_t size, uint32_t length)
{
	put_number(file, seconds, 4);
	put_number(file, fraction, 4);
	put_number(file, size, 4);
	put_number(file, length, 4);
	put_bytes(file, bytes, size);
}

static inline void put_section(struct capture_bytes *file)
{
	put_number(file, 0x0a0d0d0a, 4);
	put_number(file, 28, 4);
	put_number(file, 0x1a2b3c4d, 4);
	put_number(file, 1, 2);
	put_number(file, 0, 2);
	put_number(file, UINT64_MAX, 8);
	put_number(file, 28, 4);
}

/* Adds an interface block. A unit of timestamps is 10^-digits s. `name` has at most 8 bytes. */
static inline void put_interface(struct capture_bytes *file, uint16_t link, uint32_t snap,
				 unsigned int digits, const char *name)
{
	uint32_t padded = (strlen(name) + 3) & ~3U, size = 36 + padded;

	put_number(file, 1, 4);
	put_number(file, size, 4);
	put_number(file, link, 2);
	put_number(file, 0, 2);
	put_number(file, snap, 4);
	put_number(file, 2, 2);
	put_number(file, strlen(name), 2);
	put_bytes(file, name, strlen(name));
	put_bytes(file, "\0\0\0", padded - strlen(name));
	put_number(file, 9, 2);
	put_number(file, 1, 2);
	put_bytes(file, (uint8_t[]){digits, 0, 0, 0}, 4);
	put_number(file, 0, 4);
	put_number(file, size, 4);
}

static inline void put_packet(struct capture_bytes *file, uint32_t interface, uint64_t time,
			      const void *bytes, uint32_t size, uint32_t length)
{
	uint32_t padded = (size + 3) & ~3U;

	put_number(file, 6, 4);
	put_number(file, 32 + padded, 4);
	put_number(file, interface, 4);
	put_number(file, time >> 32, 4);
	put_number(file, (uint32_t)time, 4);
	put_number(file, size, 4);
	put_number(file, length, 4);
	put_bytes(file, bytes, size);
	put_bytes(file, "\0\0\0", padded - size);
	put_number(file, 32 + padded, 4);
}

#endif
