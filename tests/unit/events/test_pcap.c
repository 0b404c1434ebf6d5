// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/events/pcap.h, which limits the number of packets per second, and restores VLAN tags.
 * test_events.py reads the files.
 */
#include <arpa/inet.h>
#include <sys/stat.h>

#include "base/error.h"
#include "events/pcap.h"
#include "test.h"

static char path[] = "/tmp/sluice-pcap-XXXXXX";
static uint8_t frame[PCAP_FRAME];
static struct events_pcap pcap = {.fd = -1};

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = i;
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	events_pcap_close(&pcap);
	return unlink(path);
}

static struct pcap_packet packet_at(uint64_t time_ns)
{
	return (struct pcap_packet){
		.time_ns = time_ns, .bytes = frame, .length = 60, .size = 1500, .comment = "why"};
}

static off_t file_size(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* Makes the file again, because an existing file is refused. */
static void pcap_begin(void)
{
	assert_int_equal(unlink(path), 0);
	assert_int_equal(events_pcap_open(path, 3, &pcap), 0);
}

TEST(test_a_second_has_a_bound)
{
	struct pcap_packet packet;
	off_t begin, block;

	pcap_begin();
	begin = file_size();
	packet = packet_at(7 * SEC_NS);
	assert_int_equal(events_pcap_write(&pcap, &packet), 0);
	block = file_size() - begin;
	for (int i = 1; i < 5; i++) {
		packet = packet_at(7 * SEC_NS + i);
		assert_int_equal(events_pcap_write(&pcap, &packet), 0);
	}
	assert_int_equal(file_size(), begin + 3 * block);
	packet = packet_at(8 * SEC_NS);
	assert_int_equal(events_pcap_write(&pcap, &packet), 0);
	assert_int_equal(file_size(), begin + 4 * block);
	/* records of two CPUs at the begin of a second */
	for (int i = 0; i < 6; i++) {
		packet = packet_at((7 + i % 2) * SEC_NS);
		assert_int_equal(events_pcap_write(&pcap, &packet), 0);
	}
	assert_int_equal(file_size(), begin + 6 * block);
	packet = packet_at(2 * SEC_NS); /* the clock was set back */
	assert_int_equal(events_pcap_write(&pcap, &packet), 0);
	assert_int_equal(file_size(), begin + 7 * block);
	packet.length = PCAP_FRAME; /* too long, as in a damaged record */
	assert_int_equal(events_pcap_write(&pcap, &packet), 0);
	assert_int_equal(file_size(), begin + 7 * block);
	events_pcap_close(&pcap);
}

TEST(test_a_removed_tag_is_part_of_the_frame)
{
	struct pcap_packet packet = packet_at(0);
	uint8_t block[200];
	uint32_t word[7];
	off_t before;
	FILE *file;

	pcap_begin();
	before = file_size();
	packet.vlan_proto = htons(0x8100);
	packet.vlan_tci = 0x2007;
	assert_int_equal(events_pcap_write(&pcap, &packet), 0);
	events_pcap_close(&pcap);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fseek(file, before, SEEK_SET), 0);
	assert_true(fread(block, 1, sizeof(block), file) > 28 + 64);
	fclose(file);
	memcpy(word, block, sizeof(word));
	assert_int_equal(word[5], 64);
	assert_int_equal(word[6], 1504);
	assert_memory_equal(block + 28, frame, 12);
	assert_memory_equal(block + 40, "\x81\x00\x20\x07", 4);
	assert_memory_equal(block + 44, frame + 12, 48);
}

TEST(test_an_existing_file_or_link_is_refused)
{
	char link[sizeof(path) + 5];

	snprintf(link, sizeof(link), "%s.link", path);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(events_pcap_open(link, 3, &pcap), -EEXIST);
	assert_int_equal(events_pcap_open(path, 3, &pcap), -EEXIST);
	error_drop(0);
	unlink(link);
}

TESTS(setup, teardown)
