// SPDX-License-Identifier: GPL-2.0
/*
 * forge: sends UDP frames from random sources of a prefix, over a veth pair of a test. It sends PPS
 * frames per second. Without PPS, it sends as many as one CPU can. With RUN, it sends RUN IPv4
 * frames from each source.
 *
 * It works only in a named network namespace, so that it cannot flood a real network. It ends after
 * at most a minute, and prints one line of JSON:
 *
 *   {"sent": 61240320, "begin": 8112.250114, "end": 8122.250398}
 *
 * `sent` is the number of frames that were passed to the device. `begin` and `end` are times of
 * CLOCK_MONOTONIC in seconds.
 */
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/netns.h"
#include "frames.h"
#include "vary.h"
#include "rules/prefix.h"

/* needs vary.h */
#include "forge.skel.h"

#define SECONDS_MAX 60
#define FRAMES_MAX  1000000000 /* more frames than a test run can send */
#define PPS_MAX	    100000000
#define TURN_NS	    5000000 /* if PPS is given: interval in ns at which frames are sent */
#define BATCH	    64	    /* frames in a batch of a driver; a veth queue has room for 256 */

struct job {
	struct sources sources;
	const char *device;
	unsigned int seconds;
	unsigned int cpu;
	unsigned int pps; /* frames per second; 0: as fast as possible */
	unsigned int run; /* consecutive frames from each source; 0: each frame has a new source */
};

static int argument_parse(const char *text, unsigned int max, unsigned int *ret)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value > max)
		return error_misuse("bench", NULL, "'%s' is not a number up to %u", text, max);
	*ret = value;
	return 0;
}

static int job_parse(char **argv, struct job *job)
{
	if (sources_parse(argv[3], &job->sources) ||
	    argument_parse(argv[4], SECONDS_MAX, &job->seconds) ||
	    argument_parse(argv[5], CPU_SETSIZE - 1, &job->cpu) ||
	    (argv[6] && argument_parse(argv[6], PPS_MAX, &job->pps)) ||
	    (argv[6] && argv[7] && argument_parse(argv[7], FRAMES_MAX, &job->run)))
		return -EINVAL;
	job->device = argv[2];
	return netns_enter(argv[1]);
}

static double now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void nothing(int signal)
{
	(void)signal; /* the signal interrupts the test run, and has no other effect */
}

/*
 * Sends SIGALRM after `seconds`. The signal repeats, because a test run misses a signal that
 * arrives before it.
 */
static void alarm_set(unsigned int seconds)
{
	const struct sigaction action = {.sa_handler = nothing};
	const struct itimerval timer = {.it_value = {.tv_sec = seconds},
					.it_interval = {.tv_usec = 10000}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static int frames_send(const struct bpf_program *program, struct frame *frame, unsigned int count)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame->bytes,
		    .data_size_in = sizeof(frame->bytes), .repeat = count,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);
	int err = bpf_prog_test_run_opts(bpf_program__fd(program), &opts);

	return err == -EINTR ? 0 : err;
}

/* Sends the frames of an interval. If the device is too slow, drops the rest of these frames. */
static int job_turn(const struct job *job, const struct bpf_program *program, struct frame *frame)
{
	const struct timespec turn = {.tv_nsec = TURN_NS};
	unsigned int count = job->pps / (1000000000 / TURN_NS);
	int err = frames_send(program, frame, job->pps ? count : FRAMES_MAX);

	if (job->pps)
		nanosleep(&turn, NULL);
	return err;
}

static int job_run(const struct job *job, struct forge *forge)
{
	const struct bpf_program *program = job->run ? forge->progs.forge_runs
					    : prefix_is_ipv4(&job->sources.prefix)
						    ? forge->progs.bench_generate
						    : forge->progs.forge_ipv6;
	struct lane_state *lane = &forge->bss->lane;
	struct frame frame;
	cpu_set_t only;
	double begin;
	int err;

	CPU_ZERO(&only);
	CPU_SET(job->cpu, &only);
	forge->data->run_length = job->run;
	frame_write(&frame, &job->sources, 1);
	vary_write(&lane->vary, &job->sources, getpid());
	lane->ifindex = if_nametoindex(job->device);
	err = lane->ifindex && !sched_setaffinity(0, sizeof(only), &only) ? 0 : -errno;
	alarm_set(job->seconds);
	begin = now();
	while (!err && now() < begin + job->seconds)
		err = job_turn(job, program, &frame);
	if (err)
		return error_add(EIO, "bench", NULL, "cannot send from CPU %u out of '%s': %s",
				 job->cpu, job->device, why(err));
	printf("{\"sent\": %" PRIu64 ", \"begin\": %.6f, \"end\": %.6f}\n", (uint64_t)lane->sent,
	       begin, now());
	return fflush(stdout) ? -EIO : 0;
}

int main(int argc, char **argv)
{
	struct forge *forge;
	struct job job = {0};
	int status;

	if (argc < 6 || argc > 8)
		return error_misuse("bench", NULL,
				    "usage: forge NETNS DEV PREFIX SECONDS CPU [PPS [RUN]]");
	status = job_parse(argv, &job);
	if (status)
		return status;
	forge = forge__open_and_load();
	if (!forge)
		return error_add(EIO, "bench", NULL, "cannot load the BPF programs: %s",
				 why(errno));
	status = job_run(&job, forge);
	forge__destroy(forge);
	return status;
}
