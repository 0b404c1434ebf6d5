// SPDX-License-Identifier: GPL-2.0
#include "lanes.h"

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <linux/if_link.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/netns.h"
#include "behind.h"
#include "vary.h"

#define GENERATE_OBJECT "build/bench/generate.bpf.o"
#define SENDERS		"sluice-bench-a"
#define RECEIVERS	"sluice-bench-b"
#define BATCH		64 /* frames that the kernel sends at once, like a driver */
#define PACKETS_MAX	1000000000

struct lane {
	pthread_t thread;
	unsigned int index;
	struct bpf_object *object;
	struct lane_state *state;
	struct frame frame;
	const char *program; /* a program of generate.bpf.c */
	uint32_t packets;    /* maximum number of packets in a test run */
	uint64_t random;     /* generator state from the last run; 0: none */
	int err;
	bool ended;
};

static struct lane lanes[LANES_MAX];
static unsigned int lanes_count;
static struct bpf_object *receivers;

/* --- Making --------------------------------------------------------------------------------- */

static int lane_load(struct lane *lane)
{
	int err, bss;

	lane->object = bpf_object__open_file(GENERATE_OBJECT, NULL);
	err = lane->object ? bpf_object__load(lane->object) : -errno;
	if (err)
		return error_add(EIO, "bench", NULL, "cannot load %s: %s", GENERATE_OBJECT,
				 why(err));
	bss = bpf_map__fd(bpf_object__find_map_by_name(lane->object, ".bss"));
	lane->state = mmap(NULL, sizeof(*lane->state), PROT_READ | PROT_WRITE, MAP_SHARED, bss, 0);
	if (lane->state != MAP_FAILED)
		return 0;
	lane->state = NULL;
	return error_add(EIO, "bench", NULL, "cannot map the variables of %s: %s", GENERATE_OBJECT,
			 why(errno));
}

int lanes_make(unsigned int wanted)
{
	int status = netns_enter(RECEIVERS);

	if (!status) {
		receivers = bench_load();
		status = receivers ? 0 : -EIO;
	}
	for (; !status && lanes_count < wanted; lanes_count++) {
		lanes[lanes_count].index = lanes_count;
		status = lane_load(&lanes[lanes_count]);
	}
	return status;
}

void lanes_free(void)
{
	for (unsigned int i = 0; i < lanes_count; i++) {
		if (lanes[i].state)
			munmap(lanes[i].state, sizeof(*lanes[i].state));
		bpf_object__close(lanes[i].object);
	}
	bpf_object__close(receivers);
}

/* --- Receiving ------------------------------------------------------------------------------- */

int lanes_attach(const char *program)
{
	int prog = program ? bench_program(receivers, program) : -1;
	int err = 0;

	for (unsigned int i = 0; !err && i < lanes_count; i++) {
		char device[IF_NAMESIZE];

		snprintf(device, sizeof(device), LANE_DEVICE "%u", i);
		err = bpf_xdp_attach(if_nametoindex(device), prog, XDP_FLAGS_DRV_MODE, NULL);
	}
	return err ? error_add(EIO, "bench", NULL, "cannot put %s on " LANE_DEVICE "0: %s",
			       program ? program : "no program", why(err))
		   : 0;
}

uint64_t lanes_take_dropped(void)
{
	int fd = bpf_object__find_map_fd_by_name(receivers, "dropped"), cpus;
	__u32 first = 0;
	uint64_t *values, sum = 0;

	cpus = libbpf_num_possible_cpus();
	values = calloc(cpus, sizeof(*values));
	if (!values || bpf_map_lookup_elem(fd, &first, values))
		cpus = 0;
	for (int i = 0; i < cpus; i++) {
		sum += values[i];
		values[i] = 0;
	}
	if (cpus)
		bpf_map_update_elem(fd, &first, values, BPF_EXIST);
	free(values);
	return sum;
}

/* --- Sending --------------------------------------------------------------------------------- */

static int lane_send(struct lane *lane)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = lane->frame.bytes,
		    .data_size_in = sizeof(lane->frame.bytes), .repeat = lane->packets,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);

	lane->state->ifindex = if_nametoindex(lane->index ? "out1" : "out0");
	return bpf_prog_test_run_opts(bench_program(lane->object, lane->program), &opts);
}

static void *lane_run(void *data)
{
	struct lane *lane = data;

	run_on(lane->index);
	run_hurry(RUN_PRIORITY);
	lane->err = netns_enter(SENDERS) ? -ENOENT : lane_send(lane);
	__atomic_store_n(&lane->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static int lane_start(struct lane *lane, const struct sources *sources)
{
	lane->state->sent = 0;
	lane->ended = false;
	frame_write(&lane->frame, sources, lane->index + 1);
	return -pthread_create(&lane->thread, NULL, lane_run, lane);
}

/* Starts to send from random sources. Continues the random sequence of the last run. */
static int lane_start_random(struct lane *lane, const struct sources *sources)
{
	struct vary *vary = &lane->state->vary;

	vary_write(vary, sources, lane->index + 1);
	if (lane->random)
		vary->state = lane->random;
	lane->program = "bench_generate";
	lane->packets = PACKETS_MAX;
	return lane_start(lane, sources);
}

/* Starts to send from each source in order. Lane `index` sends one of `count` equal parts. */
static int lane_start_walk(struct lane *lane, const struct sources *sources, unsigned int count)
{
	struct vary *vary = &lane->state->vary;

	lane->packets = sources_count(sources) / count;
	vary_write(vary, sources, 0);
	vary->state = lane->index * lane->packets;
	lane->program = "bench_generate_walk";
	return lane_start(lane, sources);
}

static uint64_t lanes_sent(unsigned int count)
{
	uint64_t sent = 0;

	for (unsigned int i = 0; i < count; i++)
		sent += lanes[i].state->sent;
	return sent;
}

static bool lanes_are_sending(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (!lanes[i].state->sent && !__atomic_load_n(&lanes[i].ended, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

/* Waits until all lanes send, and then for `ns`. Returns the lanes' rate in this time, in Mpps. */
static double lanes_watch(unsigned int count, uint64_t ns)
{
	uint64_t begin, sent;

	while (!lanes_are_sending(count))
		sleep_ns(1000000);
	begin = clock_ns();
	sent = lanes_sent(count);
	sleep_ns(ns);
	return (lanes_sent(count) - sent) * 1e3 / (clock_ns() - begin);
}

int lanes_send(unsigned int count, const char *sources, uint64_t ns, struct sent *ret)
{
	unsigned int started = 0;
	struct sources parsed;
	int err = 0;

	if (sources_parse(sources, &parsed))
		return -EIO;
	/* This thread needs a higher priority than the senders, to run while they send. */
	run_hurry(RUN_PRIORITY + 1);
	for (; !err && started < count; started += !err)
		err = lane_start_random(&lanes[started], &parsed);
	if (!err)
		ret->mpps = lanes_watch(count, ns);
	for (unsigned int i = 0; i < started; i++) {
		struct lane *lane = &lanes[i];

		/* The signal from run_end() stops the test run. The test run then returns EINTR. */
		run_end(lane->thread, &lane->ended);
		lane->random = lane->state->vary.state;
		if (lane->err != -EINTR)
			err = err ?: lane->err ?: -ETIME;
	}
	run_hurry(0);
	ret->packets = lanes_sent(count);
	return err ? error_add(EIO, "bench", NULL, "cannot send packets: %s", why(err)) : 0;
}

int lanes_walk(unsigned int count, const char *sources, uint64_t *ret_packets)
{
	unsigned int started = 0;
	struct sources parsed;
	int err = 0;

	if (sources_parse(sources, &parsed))
		return -EIO;
	for (; !err && started < count; started += !err)
		err = lane_start_walk(&lanes[started], &parsed, count);
	for (unsigned int i = 0; i < started; i++) {
		pthread_join(lanes[i].thread, NULL);
		err = err ?: lanes[i].err;
	}
	*ret_packets = lanes_sent(count);
	return err ? error_add(EIO, "bench", NULL, "cannot send packets: %s", why(err)) : 0;
}
