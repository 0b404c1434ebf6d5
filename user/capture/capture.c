// SPDX-License-Identifier: GPL-2.0
#include "capture/capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <pcap/pcap.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "capture/stream.h"

/* Longest frame that a capture may contain, in bytes. GRO and TSO merge up to 512 KiB (BIG TCP). */
#define LENGTH_MAX (1U << 20)

/* Numbers of link types in capture files. libpcap does not define these names. */
#define LINK_ETHERNET	 1
#define LINK_RAW	 101
#define LINK_RAW_BSD	 12
#define LINK_RAW_OPENBSD 14
#define LINK_SLL	 113
#define LINK_IPV4	 228
#define LINK_IPV6	 229
#define LINK_SLL2	 276

#define SLL_OUTGOING 4

/* Link-layer headers of link types SLL and SLL2, in network byte order. */
struct sll {
	uint16_t type, hardware, address_size;
	uint8_t address[8];
	uint16_t protocol;
} __attribute__((packed));

struct sll2 {
	uint16_t protocol, reserved;
	uint32_t interface;
	uint16_t hardware;
	uint8_t type, address_size;
	uint8_t address[8];
} __attribute__((packed));

struct capture {
	char *name;
	const struct capture_choice *choice;
	FILE *in;
	struct stream stream;
	pcap_t *pcap;
	uint16_t link;		   /* pcap files */
	struct stream_packet from; /* pcapng: interface and block of the last packet */
	uint64_t number;
	uint64_t ns;	/* latest time of the selected packets so far, in ns since 1970 */
	uint8_t *frame; /* room for a frame that frame_make() builds */
	uint32_t frame_room;
	struct capture_totals totals;
};

/* --- Opening -------------------------------------------------------------------------------- */

void capture_close(struct capture **capture)
{
	struct capture *closed = *capture;

	*capture = NULL;
	if (!closed)
		return;
	if (closed->pcap)
		pcap_close(closed->pcap); /* closes `stream`, too */
	if (closed->in && closed->in != stdin)
		fclose(closed->in);
	free(closed->frame);
	free(closed->name);
	free(closed);
}

static uint64_t file_size(FILE *file)
{
	struct stat st;

	if (fileno(file) < 0 || fstat(fileno(file), &st) || !S_ISREG(st.st_mode))
		return 0;
	return st.st_size;
}

/* Returns whether this module can make Ethernet frames from packets of a link type. */
static bool link_is_known(uint16_t link)
{
	switch (link) {
	case LINK_ETHERNET:
	case LINK_SLL:
	case LINK_SLL2:
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
	case LINK_IPV6:
		return true;
	default:
		return false;
	}
}

static int link_refuse(const struct capture *capture, uint16_t link)
{
	const char *name = pcap_datalink_val_to_name(link);

	return error_misuse("capture-link", capture->name,
			    "packet %" PRIu64 ": link type %u (%s) is not supported; Ethernet, "
			    "SLL, SLL2, RAW, IPV4 and IPV6 are",
			    capture->number + 1, link, name ?: "unknown");
}

int capture_open_stream(FILE *in, const char *name, const struct capture_choice *choice,
			struct capture **ret)
{
	_cleanup_(capture_close) struct capture *capture = calloc(1, sizeof(*capture));
	char why_not[PCAP_ERRBUF_SIZE] = "";
	FILE *stream;

	if (capture)
		capture->name = strdup(name);
	if (!capture || !capture->name) {
		fclose(in);
		return error_add(ENOMEM, "no-memory", name, "out of memory");
	}
	capture->in = capture->stream.in = in;
	capture->choice = choice;
	capture->totals.file_size = file_size(in);
	stream = stream_open(&capture->stream);
	if (!stream)
		return error_add(ENOMEM, "no-memory", name, "out of memory");
	capture->pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO,
								 why_not);
	if (!capture->pcap) {
		fclose(stream);
		return error_misuse("capture-format", name,
				    "not a capture that libpcap can read: %s; it must be pcap or "
				    "pcapng, and not compressed",
				    why_not);
	}
	capture->link = pcap_datalink(capture->pcap);
	if (!capture->stream.is_pcapng && !link_is_known(capture->link))
		return link_refuse(capture, capture->link);
	*ret = steal_pointer(&capture);
	return 0;
}

int capture_open(const char *path, const struct capture_choice *choice, struct capture **ret)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *in = is_stdin ? stdin : fopen(path, "re");

	if (!in)
		return error_misuse("capture-open", path, "cannot open it: %s", strerror(errno));
	return capture_open_stream(in, is_stdin ? "standard input" : path, choice, ret);
}

/* --- Frames --------------------------------------------------------------------------------- */

/* Returns capture->frame with room for `size` bytes, or NULL if there is no memory. */
static uint8_t *frame_room(struct capture *capture, uint32_t size)
{
	if (size > capture->frame_room) {
		uint8_t *frame = realloc(capture->frame, size);

		if (!frame)
			return NULL;
		capture->frame = frame;
		capture->frame_room = size;
	}
	return capture->frame;
}

/*
 * Replaces the first `skip` bytes of a packet by an Ethernet header. The destination address is
 * zero. source: MAC address, or NULL. type: EtherType in network byte order. Returns false if there
 * is no memory.
 */
static bool frame_make(struct capture *capture, struct capture_packet *packet, uint32_t skip,
		       const uint8_t *source, uint16_t type)
{
	uint32_t size = packet->size - skip + ETH_HLEN;
	struct ether_header *header;
	uint8_t *frame = frame_room(capture, size);

	if (!frame)
		return false;
	header = (struct ether_header *)frame;
	memset(header, 0, sizeof(*header));
	if (source)
		memcpy(header->ether_shost, source, ETH_ALEN);
	header->ether_type = type;
	memcpy(frame + ETH_HLEN, packet->bytes + skip, packet->size - skip);
	packet->bytes = frame;
	packet->length = packet->length - skip + ETH_HLEN;
	packet->size = size;
	return true;
}

/* Makes an empty frame from a packet that was cut within its SLL header. */
static void frame_make_empty(struct capture_packet *packet)
{
	packet->size = 0;
	packet->is_cut = true;
}

/*
 * Makes an Ethernet frame from a packet of link type `link`. Returns false if there is no memory.
 */
static bool frame_convert(struct capture *capture, uint16_t link, struct capture_packet *packet)
{
	const struct sll *sll = (const void *)packet->bytes;
	const struct sll2 *sll2 = (const void *)packet->bytes;
	uint32_t skip = link == LINK_SLL ? sizeof(*sll) : link == LINK_SLL2 ? sizeof(*sll2) : 0;
	uint16_t type = htons(ETHERTYPE_IP);

	if (packet->size < skip) {
		frame_make_empty(packet);
		return true;
	}
	if (link == LINK_SLL) {
		packet->direction = ntohs(sll->type) == SLL_OUTGOING ? CAPTURE_OUT : CAPTURE_IN;
		return frame_make(capture, packet, skip,
				  ntohs(sll->address_size) == ETH_ALEN ? sll->address : NULL,
				  sll->protocol);
	}
	if (link == LINK_SLL2) {
		packet->direction = sll2->type == SLL_OUTGOING ? CAPTURE_OUT : CAPTURE_IN;
		packet->interface = ntohl(sll2->interface);
		return frame_make(capture, packet, skip,
				  sll2->address_size == ETH_ALEN ? sll2->address : NULL,
				  sll2->protocol);
	}
	if (link == LINK_IPV6 || (link != LINK_IPV4 && packet->size && packet->bytes[0] >> 4 == 6))
		type = htons(ETHERTYPE_IPV6);
	return frame_make(capture, packet, 0, NULL, type);
}

/*
 * Returns whether GRO or TSO has merged the packets of a frame: its IP packet is longer than the
 * MTU.
 */
static bool frame_is_merged(const struct capture_packet *packet, uint32_t mtu)
{
	uint32_t at = 2 * ETH_ALEN;

	for (; at + 2 <= packet->size; at += 4) {
		uint16_t type = packet->bytes[at] << 8 | packet->bytes[at + 1];

		if (type == ETHERTYPE_VLAN || type == 0x88a8)
			continue;
		if (type != ETHERTYPE_IP && type != ETHERTYPE_IPV6)
			return false;
		return packet->length > at + 2 + (mtu ?: CAPTURE_MTU);
	}
	return false;
}

/* --- Choosing ------------------------------------------------------------------------------- */

/* Counts a packet for its interface. Returns the interface's name, or "". */
static const char *interface_count(struct capture *capture, const struct capture_packet *packet)
{
	struct capture_totals *totals = &capture->totals;
	const struct stream *stream = &capture->stream;
	const char *name = "";
	unsigned int i = 0;

	if (stream->is_pcapng)
		name = stream->interface[capture->from.interface].name;
	while (i < totals->interfaces && totals->interface[i].number != packet->interface)
		i++;
	if (i == CAPTURE_INTERFACES)
		return name;
	if (i == totals->interfaces) {
		totals->interfaces++;
		totals->interface[i].number = packet->interface;
		memcpy(totals->interface[i].name, name, strlen(name) + 1);
	}
	totals->interface[i].packets++;
	return name;
}

static bool interface_is(const char *wanted, uint32_t number, const char *name)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%" PRIu32, number);
	return !strcmp(wanted, digits) || !strcmp(wanted, name);
}

/* Returns whether capture->choice selects this packet. */
static bool is_chosen(struct capture *capture, const struct capture_packet *packet)
{
	const struct capture_choice *choice = capture->choice;
	const char *name = interface_count(capture, packet);
	const uint8_t *destination = packet->bytes, *source = packet->bytes + ETH_ALEN;

	if (choice->interface && !interface_is(choice->interface, packet->interface, name))
		return false;
	if (choice->direction && packet->direction && choice->direction != packet->direction) {
		capture->totals.other_way++;
		return false;
	}
	if (!choice->has_to || packet->size < 2 * ETH_ALEN)
		return true;
	if (destination[0] & 1)
		return memcmp(source, choice->to, ETH_ALEN);
	return !memcmp(destination, choice->to, ETH_ALEN);
}

/* --- Reading -------------------------------------------------------------------------------- */

static int packet_refuse(const struct capture *capture, const char *reason)
{
	return error_add(EBADMSG, "capture-bad", capture->name, "packet %" PRIu64 ": %s",
			 capture->number + 1, reason);
}

/*
 * If the time of a packet is before the latest time of the selected packets so far, sets it to the
 * latest time.
 */
static void time_clamp(struct capture *capture, struct capture_packet *packet)
{
	if (packet->ns < capture->ns) {
		capture->totals.backward++;
		packet->ns = capture->ns;
	}
	capture->ns = packet->ns;
}

/*
 * Converts a packet of libpcap to *ret. Adds an error if the packet is bad. Returns 0 or a negative
 * errno.
 */
static int packet_make(struct capture *capture, const struct pcap_pkthdr *header,
		       const uint8_t *bytes, struct capture_packet *ret)
{
	struct stream *stream = &capture->stream;
	struct stream_packet *from = &capture->from;
	uint16_t link = capture->link;
	uint64_t seconds = header->ts.tv_sec;

	if (stream->is_pcapng &&
	    (!stream_take(stream, from) || from->interface >= stream->interfaces))
		return packet_refuse(capture, "it is of an interface that the file does not have");
	if (stream->is_pcapng)
		link = stream->interface[from->interface].link;
	if (!link_is_known(link))
		return link_refuse(capture, link);
	if (from->has_no_time)
		return packet_refuse(capture, "it is a simple packet block, which has no time");
	if (header->ts.tv_sec < 0 || seconds > INT64_MAX / NS_PER_SEC - 3600 ||
	    header->ts.tv_usec < 0)
		return packet_refuse(capture, "its time is out of range");
	if (header->len > LENGTH_MAX || header->caplen > LENGTH_MAX)
		return packet_refuse(capture, "it claims to be longer than 1 MiB");
	if (capture->choice->has_to && link != LINK_ETHERNET)
		return error_misuse("capture-no-mac", capture->name,
				    "its packets have no destination address of Ethernet; use "
				    "--in or --out instead of --to");
	*ret = (struct capture_packet){
		.number = capture->number + 1,
		.ns = seconds * NS_PER_SEC + header->ts.tv_usec,
		.length = header->len > header->caplen ? header->len : header->caplen,
		.size = header->caplen,
		.bytes = bytes,
		.interface = from->number,
		.is_cut = header->len > header->caplen,
	};
	if (link != LINK_ETHERNET && !frame_convert(capture, link, ret))
		return error_add(ENOMEM, "no-memory", capture->name, "out of memory");
	return 0;
}

int capture_next(struct capture *capture, struct capture_packet *ret)
{
	struct capture_totals *totals = &capture->totals;
	struct pcap_pkthdr *header;
	const uint8_t *bytes;
	int status, err;

	while ((status = pcap_next_ex(capture->pcap, &header, &bytes)) == 1) {
		totals->offset = capture->stream.offset;
		err = packet_make(capture, header, bytes, ret);
		if (err)
			return err;
		capture->number++;
		if (!is_chosen(capture, ret)) {
			totals->left_out++;
			continue;
		}
		time_clamp(capture, ret);
		ret->is_merged = frame_is_merged(ret, capture->choice->mtu);
		totals->packets++;
		totals->cut += ret->is_cut;
		totals->merged += ret->is_merged;
		return 1;
	}
	if (status == PCAP_ERROR_BREAK)
		return 0;
	return packet_refuse(capture, pcap_geterr(capture->pcap));
}

const struct capture_totals *capture_totals(const struct capture *capture)
{
	return &capture->totals;
}

int mac_parse(const char *text, uint8_t ret[6])
{
	int end = 0;

	if (sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &ret[0], &ret[1], &ret[2],
		   &ret[3], &ret[4], &ret[5], &end) == 6 &&
	    !text[end] && end == 17)
		return 0;
	return error_misuse("bad-mac", text,
			    "not a MAC address; one is 52:54:00:12:34:56, as 'ip link' prints it");
}
