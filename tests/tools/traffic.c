// SPDX-License-Identifier: GPL-2.0
/*
 * traffic: sends UDP frames of 64 bytes from several sources, each at its own rate, over a veth
 * pair of the demo or of a test.
 *
 * It refuses the initial network namespace, so that it cannot flood a real network. It ends after
 * at most ten minutes. Each second, and at the end, it prints one line of JSON:
 *
 *   {"t": 2.000, "sent": {"192.0.2.1": 200}, "span": {"192.0.2.1": 1.990}}
 *
 * `t` is the time since the start in seconds. `sent` is the number of frames that the kernel
 * accepted. `span` is the time in seconds from just before the first frame until just after the
 * last frame of the source. The source's limit allows burst + rate x `span`.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_MAX  600
#define RATE_MAX     10000000
#define FRAME_LEN    64
#define NSEC_PER_SEC 1000000000ULL

/* Frames per system call. A large batch delays other sources. A small batch costs CPU time. */
#define BATCH 32

#define NAP_NS 50000 /* sleep in ns if no frame is due; shorter sleeps are not exact */

enum { EXIT_USAGE = 2 };

struct source {
	const char *name; /* address as given by the caller */
	int family;
	union {
		struct in_addr v4;
		struct in6_addr v6;
	} addr;
	uint64_t rate; /* frames per second; 0: as fast as possible */
	uint64_t sent;
	uint64_t first_ns; /* clock reading just before the first frame was sent */
	uint64_t last_ns;  /* clock reading just after the last frame was sent */
	uint8_t frame[FRAME_LEN];
};

struct target {
	struct in_addr v4;
	struct in6_addr v6;
	uint16_t port;
};

struct run {
	int sock;
	uint64_t duration_ns;
	size_t source_count;
	struct source *sources;
};

static const char usage_text[] =
	"usage: traffic -n NETNS [-d IPV4] [-D IPV6] [-p PORT] DEV MAC SECONDS SOURCE=RATE...\n"
	"options stand before DEV:\n"
	"  -n NETNS     work in this named network namespace (never in the initial one)\n"
	"  -d IPV4      destination of IPv4 frames (198.51.100.1)\n"
	"  -D IPV6      destination of IPv6 frames (2001:db8:ffff::1)\n"
	"  -p PORT      destination port (9, discard)\n"
	"  -h, --help   print this usage\n"
	"  DEV MAC      send through this device to this Ethernet address\n"
	"  SECONDS      stop after this time, 1 to 600\n"
	"  SOURCE=RATE  an IPv4 or IPv6 address, and frames per second or `max`\n";

__attribute__((noreturn, format(printf, 2, 3))) static void die(int status, const char *format, ...)
{
	va_list args;

	fputs("traffic: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

static uint64_t number_parse(const char *text, const char *what, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !value || value > max)
		die(EXIT_USAGE, "%s must be a whole number from 1 to %" PRIu64 ", not '%s'", what,
		    max, text);
	return value;
}

static void mac_parse(const char *text, uint8_t mac[static ETH_ALEN])
{
	char rest;

	if (sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &mac[0], &mac[1], &mac[2],
		   &mac[3], &mac[4], &mac[5], &rest) != ETH_ALEN)
		die(EXIT_USAGE, "'%s' is not an Ethernet address", text);
}

/* Parses SOURCE=RATE. Overwrites the '=' in the text with NUL. */
static void source_parse(char *text, struct source *source)
{
	char *equals = strchr(text, '=');

	if (!equals)
		die(EXIT_USAGE, "'%s' is not SOURCE=RATE", text);
	*equals = '\0';
	source->name = text;
	if (inet_pton(AF_INET, text, &source->addr) == 1)
		source->family = AF_INET;
	else if (inet_pton(AF_INET6, text, &source->addr) == 1)
		source->family = AF_INET6;
	else
		die(EXIT_USAGE, "'%s' is not an IPv4 or IPv6 address", text);
	if (strcmp(equals + 1, "max") != 0)
		source->rate = number_parse(equals + 1, "a rate", RATE_MAX);
}

/* Adds `len` bytes to an Internet checksum (RFC 1071). `len` must be even. */
static uint32_t sum_add(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)byte[i] << 8 | byte[i + 1];
	return sum;
}

static uint16_t sum_finish(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/*
 * Writes the IP and UDP headers. The UDP checksum is 0 for IPv4, because UDP requires a checksum
 * only for IPv6.
 */
static void packet_write(uint8_t *packet, const struct source *source, const struct target *target)
{
	struct udphdr udp = {.source = htons(40000), .dest = htons(target->port)};
	struct iphdr ip4 = {
		.version = 4,
		.ihl = sizeof(ip4) / 4,
		.tot_len = htons(FRAME_LEN - ETH_HLEN),
		.frag_off = htons(IP_DF),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = source->addr.v4.s_addr,
		.daddr = target->v4.s_addr,
	};
	struct ip6_hdr ip6 = {
		.ip6_flow = htonl(6U << 28),
		.ip6_plen = htons(FRAME_LEN - ETH_HLEN - sizeof(ip6)),
		.ip6_nxt = IPPROTO_UDP,
		.ip6_hlim = 64,
		.ip6_src = source->addr.v6,
		.ip6_dst = target->v6,
	};
	bool ipv4 = source->family == AF_INET;
	size_t size = ipv4 ? sizeof(ip4) : sizeof(ip6);
	uint32_t sum;

	udp.len = htons(FRAME_LEN - ETH_HLEN - size);
	ip4.check = sum_finish(sum_add(0, &ip4, sizeof(ip4)));
	/* add the pseudo header of RFC 8200 */
	sum = sum_add(IPPROTO_UDP + ntohs(udp.len), &ip6.ip6_src, 2 * sizeof(ip6.ip6_src));
	if (!ipv4)
		udp.check = sum_finish(sum_add(sum, &udp, sizeof(udp))) ?: 0xffff;
	memcpy(packet, ipv4 ? (void *)&ip4 : (void *)&ip6, size);
	memcpy(packet + size, &udp, sizeof(udp));
}

/*
 * Enters a network namespace. Exits if it is the initial namespace or the namespace of process 1.
 * Only the initial namespace has the setting netdev_max_backlog.
 */
static void netns_enter(const char *name)
{
	struct stat own, first;
	char path[PATH_MAX];
	int fd;

	if (!name || strchr(name, '/'))
		die(EXIT_USAGE, "-n NETNS must be the name of a network namespace");
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) || fstat(fd, &own))
		die(EXIT_FAILURE, "network namespace '%s': %s", name, strerror(errno));
	close(fd);
	if (!access("/proc/sys/net/core/netdev_max_backlog", F_OK) ||
	    (!stat("/proc/1/ns/net", &first) && own.st_ino == first.st_ino))
		die(EXIT_FAILURE, "this is the initial network namespace, where frames would reach "
				  "a real network");
}

/* Opens a raw socket for sending, and reads the Ethernet address of the device. */
static int device_open(const char *device, uint8_t mac[static ETH_ALEN])
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET};
	socklen_t len = sizeof(address);
	int sock;

	address.sll_ifindex = (int)if_nametoindex(device);
	if (!address.sll_ifindex)
		die(EXIT_FAILURE, "device '%s': %s", device, strerror(errno));
	sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sock < 0)
		die(EXIT_FAILURE, "raw socket: %s", strerror(errno));
	if (bind(sock, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockname(sock, (struct sockaddr *)&address, &len))
		die(EXIT_FAILURE, "device '%s': %s", device, strerror(errno));
	memcpy(mac, address.sll_addr, ETH_ALEN);
	return sock;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/*
 * Sends the due frames of a source, but at most BATCH. The first frame is due at the start. Later
 * frames follow at equal intervals. If the result is true, more frames are due, and the caller must
 * not sleep.
 */
static bool source_send(struct source *source, const struct run *run, uint64_t elapsed_ns)
{
	uint64_t paced = elapsed_ns * source->rate / NSEC_PER_SEC + (elapsed_ns < run->duration_ns);
	uint64_t due = (source->rate ? paced : UINT64_MAX) - source->sent;
	struct iovec frame = {.iov_base = source->frame, .iov_len = FRAME_LEN};
	unsigned int batch = due < BATCH ? (unsigned int)due : BATCH;
	struct mmsghdr messages[BATCH];
	uint64_t before_ns;
	int accepted;

	if (!due)
		return false;
	for (unsigned int i = 0; i < batch; i++)
		messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &frame, .msg_iovlen = 1}};

	before_ns = now_ns();
	accepted = sendmmsg(run->sock, messages, batch, 0);
	if (accepted < 0) {
		/* the send queue is full, so the remaining frames are sent later */
		if (errno == ENOBUFS || errno == EAGAIN || errno == EINTR)
			return true;
		die(EXIT_FAILURE, "sending from %s: %s", source->name, strerror(errno));
	}
	if (!source->sent)
		source->first_ns = before_ns;
	source->last_ns = now_ns();
	source->sent += (unsigned int)accepted;
	return (uint64_t)accepted < due;
}

static void report(const struct run *run, uint64_t elapsed_ns)
{
	printf("{\"t\": %.3f, \"sent\": {", (double)elapsed_ns / NSEC_PER_SEC);
	for (size_t i = 0; i < run->source_count; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", run->sources[i].name,
		       run->sources[i].sent);
	printf("}, \"span\": {");
	for (size_t i = 0; i < run->source_count; i++) {
		const struct source *source = &run->sources[i];

		printf("%s\"%s\": %.6f", i ? ", " : "", source->name,
		       (double)(source->last_ns - source->first_ns) / NSEC_PER_SEC);
	}
	printf("}}\n");
	if (fflush(stdout))
		die(EXIT_FAILURE, "standard output: %s", strerror(errno));
}

static void traffic_send(const struct run *run)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t start_ns = now_ns(), next_report_ns = NSEC_PER_SEC;
	uint64_t elapsed_ns;

	do {
		bool busy = false;

		elapsed_ns = now_ns() - start_ns;
		if (elapsed_ns > run->duration_ns)
			elapsed_ns = run->duration_ns;
		for (size_t i = 0; i < run->source_count; i++)
			busy |= source_send(&run->sources[i], run, elapsed_ns);
		if (elapsed_ns >= next_report_ns && elapsed_ns < run->duration_ns) {
			report(run, elapsed_ns);
			next_report_ns += NSEC_PER_SEC;
		}
		if (!busy)
			nanosleep(&nap, NULL);
	} while (elapsed_ns < run->duration_ns);
	report(run, now_ns() - start_ns);
}

int main(int argc, char **argv)
{
	struct ether_header ether = {0};
	struct run run = {0};
	static const struct option long_options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	const char *netns = NULL;
	struct target target = {.port = 9};
	int option;

	inet_pton(AF_INET, "198.51.100.1", &target.v4);
	inet_pton(AF_INET6, "2001:db8:ffff::1", &target.v6);
	while ((option = getopt_long(argc, argv, "+n:d:D:p:h", long_options, NULL)) != -1) {
		switch (option) {
		case 'n':
			netns = optarg;
			break;
		case 'd':
			if (inet_pton(AF_INET, optarg, &target.v4) != 1)
				die(EXIT_USAGE, "'%s' is not an IPv4 address", optarg);
			break;
		case 'D':
			if (inet_pton(AF_INET6, optarg, &target.v6) != 1)
				die(EXIT_USAGE, "'%s' is not an IPv6 address", optarg);
			break;
		case 'p':
			target.port = number_parse(optarg, "PORT", UINT16_MAX);
			break;
		default:
			fputs(usage_text, option == 'h' ? stdout : stderr);
			return option == 'h' ? EXIT_SUCCESS : EXIT_USAGE;
		}
	}
	if (argc - optind < 4) {
		fputs(usage_text, stderr);
		return EXIT_USAGE;
	}

	mac_parse(argv[optind + 1], ether.ether_dhost);
	run.duration_ns = number_parse(argv[optind + 2], "SECONDS", SECONDS_MAX) * NSEC_PER_SEC;
	run.source_count = (size_t)(argc - optind - 3);
	run.sources = calloc(run.source_count, sizeof(*run.sources));
	if (!run.sources)
		die(EXIT_FAILURE, "out of memory");
	for (size_t i = 0; i < run.source_count; i++)
		source_parse(argv[optind + 3 + (int)i], &run.sources[i]);

	netns_enter(netns);
	run.sock = device_open(argv[optind], ether.ether_shost);

	for (size_t i = 0; i < run.source_count; i++) {
		struct source *source = &run.sources[i];

		ether.ether_type = htons(source->family == AF_INET ? ETHERTYPE_IP : ETHERTYPE_IPV6);
		memcpy(source->frame, &ether, sizeof(ether));
		packet_write(source->frame + sizeof(ether), source, &target);
	}
	traffic_send(&run);
	return EXIT_SUCCESS;
}
