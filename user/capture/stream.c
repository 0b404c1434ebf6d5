// SPDX-License-Identifier: GPL-2.0
#include "capture/stream.h"

#include <byteswap.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"

/* Types of pcapng blocks, and the link type that the stream gives all interfaces. */
#define BLOCK_SECTION	0x0A0D0D0AU
#define BLOCK_INTERFACE 1U
#define BLOCK_OLD	2U
#define BLOCK_SIMPLE	3U
#define BLOCK_PACKET	6U
#define MAGIC		0x1A2B3C4DU
#define OPTION_NAME	2
#define LINK_ETHERNET	1

#define BLOCK_HEAD     8  /* bytes of a block's type and length */
#define INTERFACE_HEAD 16 /* BLOCK_HEAD, link type, 2 reserved bytes, snap length */

static uint32_t word_at(const struct stream *stream, unsigned int at)
{
	uint32_t word;

	memcpy(&word, stream->stage + at, sizeof(word));
	return stream->is_swapped ? bswap_32(word) : word;
}

static uint16_t half_at(const struct stream *stream, unsigned int at)
{
	uint16_t half;

	memcpy(&half, stream->stage + at, sizeof(half));
	return stream->is_swapped ? bswap_16(half) : half;
}

/* Reads the current block into `stage`, up to byte `size`. Returns false at the file's end. */
static bool stage_read(struct stream *stream, uint32_t size)
{
	stream->staged +=
		fread(stream->stage + stream->staged, 1, size - stream->staged, stream->in);
	return stream->staged == size;
}

/* Copies the interface's name from the block in `stage`. Copies "" if the block has no name. */
static void name_find(const struct stream *stream, char ret[CAPTURE_NAME])
{
	unsigned int at = INTERFACE_HEAD;

	ret[0] = '\0';
	while (at + 4 <= stream->staged) {
		uint16_t option = half_at(stream, at), size = half_at(stream, at + 2);

		at += 4;
		if (!option || size > stream->staged - at)
			return;
		if (option == OPTION_NAME) {
			size_t length = size < CAPTURE_NAME ? size : CAPTURE_NAME - 1;

			memcpy(ret, stream->stage + at, length);
			ret[length] = '\0';
			return;
		}
		at += (size + 3U) & ~3U;
	}
}

/*
 * Stores the interface of the block in `stage`. libpcap requires that all interfaces have equal
 * link types and snap lengths, so replaces them in `stage`.
 */
static bool interface_add(struct stream *stream)
{
	struct stream_interface *interface;
	uint16_t link = stream->is_swapped ? bswap_16(LINK_ETHERNET) : LINK_ETHERNET;

	if (!array_grow(stream->interface, stream->interfaces, stream->room))
		return false;
	interface = &stream->interface[stream->interfaces++];
	interface->link = half_at(stream, BLOCK_HEAD);
	name_find(stream, interface->name);
	memcpy(stream->stage + BLOCK_HEAD, &link, sizeof(link));
	memset(stream->stage + BLOCK_HEAD + 4, 0, 4); /* no snap length: libpcap allows 256 KiB */
	return true;
}

static void packet_add(struct stream *stream, uint32_t number, bool has_no_time)
{
	uint64_t interface = (uint64_t)stream->section + number;

	stream->packet[stream->packets_end++ % STREAM_PACKETS] = (struct stream_packet){
		.number = number,
		.interface = interface < stream->interfaces ? interface : UINT32_MAX,
		.has_no_time = has_no_time,
	};
}

bool stream_take(struct stream *stream, struct stream_packet *ret)
{
	if (stream->packets_begin == stream->packets_end)
		return false;
	*ret = stream->packet[stream->packets_begin++ % STREAM_PACKETS];
	return true;
}

/* Returns how many bytes of a block to read into `stage`, at least its type and length. */
static uint64_t bytes_wanted(uint32_t type, uint64_t length)
{
	uint64_t wanted = BLOCK_HEAD;

	if (type == BLOCK_SECTION || type == BLOCK_PACKET || type == BLOCK_OLD)
		wanted = BLOCK_HEAD + 4;
	else if (type == BLOCK_INTERFACE)
		wanted = length <= STREAM_STAGED ? length : INTERFACE_HEAD;
	return wanted < length ? wanted : length;
}

/*
 * Reads the begin of the next block into `stage`. If the file ends or the block is malformed,
 * `stage` has fewer bytes, and libpcap reports the error. Returns false if there is no memory.
 */
static bool block_begin(struct stream *stream)
{
	uint64_t length;
	uint32_t type;

	stream->staged = stream->taken = 0;
	if (!stage_read(stream, BLOCK_HEAD))
		return true;
	memcpy(&type, stream->stage, sizeof(type));
	if (!stream->is_begun)
		stream->is_pcapng = type == BLOCK_SECTION;
	stream->is_begun = true;
	if (!stream->is_pcapng)
		return true;
	if (type == BLOCK_SECTION) {
		if (!stage_read(stream, BLOCK_HEAD + 4))
			return true;
		stream->is_swapped = false;
		stream->is_swapped = word_at(stream, BLOCK_HEAD) == bswap_32(MAGIC);
		stream->section = stream->interfaces;
	}
	type = word_at(stream, 0);
	length = word_at(stream, 4);
	if (!stage_read(stream, bytes_wanted(type, length > BLOCK_HEAD ? length : BLOCK_HEAD)))
		return true;
	stream->left = length > stream->staged ? length - stream->staged : 0;
	if (type == BLOCK_SIMPLE)
		packet_add(stream, 0, true);
	else if (type == BLOCK_PACKET && stream->staged == BLOCK_HEAD + 4)
		packet_add(stream, word_at(stream, BLOCK_HEAD), false);
	else if (type == BLOCK_OLD && stream->staged == BLOCK_HEAD + 4)
		packet_add(stream, half_at(stream, BLOCK_HEAD), false);
	else if (type == BLOCK_INTERFACE && stream->staged >= INTERFACE_HEAD)
		return interface_add(stream);
	return true;
}

static ssize_t stream_read(void *cookie, char *buffer, size_t size)
{
	struct stream *stream = cookie;
	size_t count;

	if (stream->taken == stream->staged && !stream->left &&
	    (stream->is_pcapng || !stream->is_begun) && !block_begin(stream)) {
		errno = ENOMEM;
		return -1;
	}
	if (stream->taken < stream->staged) {
		count = stream->staged - stream->taken;
		count = size < count ? size : count;
		memcpy(buffer, stream->stage + stream->taken, count);
		stream->taken += count;
	} else {
		if (stream->is_pcapng && size > stream->left)
			size = stream->left;
		count = fread(buffer, 1, size, stream->in);
		stream->left -= stream->is_pcapng ? count : 0;
	}
	if (!count && ferror(stream->in))
		return -1;
	stream->offset += count;
	return count;
}

static int stream_close(void *cookie)
{
	struct stream *stream = cookie;

	free(stream->interface);
	stream->interface = NULL;
	return 0;
}

FILE *stream_open(struct stream *stream)
{
	FILE *file = fopencookie(
		stream, "r", (cookie_io_functions_t){.read = stream_read, .close = stream_close});

	if (file)
		setvbuf(file, stream->ahead, _IOFBF, sizeof(stream->ahead));
	return file;
}
