// SPDX-License-Identifier: GPL-2.0
#include "events/pcap.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

/* Values of pcapng, from the draft: types of blocks, codes of options, and flags. */
enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 6,
	ORDER_MAGIC = 0x1a2b3c4d,
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	OPTION_APPLICATION = 4, /* option of a section header block */
	OPTION_FLAGS = 2,	/* option of an enhanced packet block */
	OPTION_RESOLUTION = 9,	/* option of an interface description block */
	LINK_ETHERNET = 1,
	FLAG_RECEIVED = 1,
	FLAG_SENT = 2,
	NANOSECONDS = 9,
	VLAN_BYTES = 4,
	ADDRESSES_BYTES = 12, /* destination and source address of an Ethernet header */
};

/* A pcapng block, in the byte order of this machine. */
struct pcap_block {
	uint32_t size; /* number of bytes in use */
	uint8_t bytes[PCAP_FRAME + PCAP_COMMENT + 128];
};

static void block_put(struct pcap_block *block, const void *bytes, uint32_t size)
{
	memcpy(block->bytes + block->size, bytes, size);
	block->size += size;
}

static void block_put32(struct pcap_block *block, uint32_t value)
{
	block_put(block, &value, sizeof(value));
}

/* Pads a block with zeros to a multiple of four bytes. */
static void block_pad(struct pcap_block *block)
{
	while (block->size % 4)
		block->bytes[block->size++] = 0;
}

static void block_option(struct pcap_block *block, uint16_t code, const void *value, uint16_t size)
{
	block_put(block, &code, sizeof(code));
	block_put(block, &size, sizeof(size));
	if (size)
		block_put(block, value, size);
	block_pad(block);
}

static void block_begin(struct pcap_block *block, uint32_t type)
{
	block->size = 0;
	block_put32(block, type);
	block_put32(block, 0); /* length of the block; block_end() sets it */
}

/* Completes a block, and writes it to the file. Returns 0 or a negative errno. */
static int block_write(struct pcap_block *block, int fd)
{
	uint32_t length;
	ssize_t written;

	block_option(block, OPTION_END, "", 0);
	length = block->size + sizeof(length);
	memcpy(block->bytes + 4, &length, sizeof(length));
	block_put32(block, length);
	written = write(fd, block->bytes, block->size);
	if (written < 0)
		return -errno;
	return (uint32_t)written == block->size ? 0 : -ENOSPC;
}

static int pcap_failed(const char *path, int err)
{
	return error_add(err, "pcap", path, "cannot write packets: %s", strerror(-err));
}

int events_pcap_open(const char *path, unsigned int most, struct events_pcap *ret)
{
	static const char application[] = "sluice " SL_VERSION;
	const uint8_t resolution = NANOSECONDS;
	const uint64_t unknown_length = ~0ULL;
	struct pcap_block block;
	int err;

	*ret = (struct events_pcap){
		.path = path,
		.most = most,
		.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
	};
	if (ret->fd < 0 && errno == EEXIST)
		return error_add(EEXIST, "pcap-exists", path,
				 "already exists; write the name of a new file");
	if (ret->fd < 0)
		return pcap_failed(path, -errno);
	block_begin(&block, BLOCK_SECTION);
	block_put32(&block, ORDER_MAGIC);
	block_put32(&block, 1); /* version 1.0: the lower half is the major version */
	block_put(&block, &unknown_length, sizeof(unknown_length));
	block_option(&block, OPTION_APPLICATION, application, sizeof(application) - 1);
	err = block_write(&block, ret->fd);
	if (err)
		return pcap_failed(path, err);
	block_begin(&block, BLOCK_INTERFACE);
	block_put32(&block, LINK_ETHERNET);
	block_put32(&block, 0); /* no limit on the length of packets */
	block_option(&block, OPTION_RESOLUTION, &resolution, sizeof(resolution));
	err = block_write(&block, ret->fd);
	return err ? pcap_failed(path, err) : 0;
}

void events_pcap_close(struct events_pcap *pcap)
{
	close_fd(&pcap->fd);
	*pcap = (struct events_pcap){.fd = -1};
}

/* Appends the recorded part of a frame. If the device has removed a VLAN tag, puts it back. */
static void frame_put(struct pcap_block *block, const struct pcap_packet *packet, bool is_tagged)
{
	uint16_t tci = htobe16(packet->vlan_tci);

	if (!is_tagged) {
		block_put(block, packet->bytes, packet->length);
		return;
	}
	block_put(block, packet->bytes, ADDRESSES_BYTES);
	block_put(block, &packet->vlan_proto, sizeof(packet->vlan_proto));
	block_put(block, &tci, sizeof(tci));
	block_put(block, packet->bytes + ADDRESSES_BYTES, packet->length - ADDRESSES_BYTES);
}

int events_pcap_write(struct events_pcap *pcap, const struct pcap_packet *packet)
{
	bool is_tagged = packet->vlan_proto && packet->length >= ADDRESSES_BYTES;
	uint64_t second = packet->time_ns / NS_PER_SEC;
	uint32_t tag = is_tagged ? VLAN_BYTES : 0, flags;
	struct pcap_block block;
	int err;

	/*
	 * Records of several CPUs are not in order, so a record of the previous second counts for
	 * the current second. If a record is older, the clock was set back, and a second begins.
	 */
	if (second > pcap->second || second + 1 < pcap->second) {
		pcap->second = second;
		pcap->written = 0;
	}
	if (pcap->written == pcap->most || packet->length > PCAP_FRAME - VLAN_BYTES)
		return 0;
	pcap->written++;
	block_begin(&block, BLOCK_PACKET);
	block_put32(&block, 0); /* index of the interface */
	block_put32(&block, packet->time_ns >> 32);
	block_put32(&block, packet->time_ns);
	block_put32(&block, packet->length + tag);
	block_put32(&block, packet->size + tag);
	frame_put(&block, packet, is_tagged);
	block_pad(&block);
	block_option(&block, OPTION_COMMENT, packet->comment,
		     strnlen(packet->comment, PCAP_COMMENT));
	flags = packet->is_sent ? FLAG_SENT : FLAG_RECEIVED;
	block_option(&block, OPTION_FLAGS, &flags, sizeof(flags));
	err = block_write(&block, pcap->fd);
	return err ? pcap_failed(pcap->path, err) : 0;
}
