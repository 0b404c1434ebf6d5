/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A gate of unpinned maps, and its programs run by BPF_PROG_TEST_RUN. `programs` are the test
 * build's, whose clock the rig sets; rig_ship() loads the programs as they ship on the same maps.
 * There is one rig a test binary, since loading takes most of a second; each test begins by
 * emptying it.
 */
#ifndef SLUICE_RIG_H
#define SLUICE_RIG_H

#include <pthread.h>
#include <linux/bpf.h>

#include "attach/attachment.h"
#include "crowd.h"
#include "gate/gate.h"
#include "gate/maps.h"
#include "gate/rules.h"
#include "prefix_of.h"
#include "rules/ruleset.h"
#include "state/source.h"
#include "test.h"

#define RIG_CPUS_MAX 64

struct rig {
	struct gate gate;
	struct sl_params
		params; /* the gate's: a test may change that one until the rig is emptied */
	struct programs programs;
	volatile __u64 *clock_ticks;
	volatile __u64 *clock_jiffies;
	uint64_t phase;			/* ticks since the jiffy began */
	uint64_t behind;		/* how far the clock has gone back: jiffies never do */
	struct sl_cell passed, dropped; /* what was sent, by verdict: the counters must agree */
	unsigned int cpus;		/* online */
	unsigned int cpu[RIG_CPUS_MAX]; /* their numbers */
};

/* For cmocka_run_group_tests: makes and removes the rig. Not permitted: makes none. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* The rig, with no rule and no source in it, at uptime one hour, on the first CPU. None: skips. */
struct rig *rig_begin(void **state);

/* Makes a rig, beside the test binary's own, with maps of such sizes; 0: the own one's. */
struct rig *rig_make(const struct gate_sizes *sizes);
void rig_free(struct rig *rig);

/* Forgets all rules, sources and counters. */
void rig_empty(struct rig *rig);
/* Zeroes a map that is an array, of all CPUs if it is per CPU. */
void rig_zero(const struct rig *rig, enum gate_map map);

/* Loads the test build's programs of those hooks anew, with the gate's maps as they are now. */
void rig_load(struct rig *rig, unsigned int hooks);

/* The number of online CPUs is less than `cpus`: skips the test. */
void rig_need_cpus(const struct rig *rig, unsigned int cpus);
void rig_run_on(const struct rig *rig, unsigned int index);

/* --- The injected clock --- */

/* A new epoch: only for sources that were not heard before. */
void rig_clock_start(struct rig *rig, uint64_t ticks);
void rig_clock_forward(struct rig *rig, uint64_t ticks);
void rig_clock_back(struct rig *rig, uint64_t ticks);
/* To the last moment of this jiffy: any step ahead is in the next. */
void rig_clock_to_edge(struct rig *rig);
uint64_t rig_now(const struct rig *rig);

/* --- Rules --- */

/* A rule of one limit, by its rate and burst. */
void rig_set(struct rig *rig, const char *prefix, const char *rate, const char *burst);
void rig_del(struct rig *rig, const char *prefix);

/* Gives the policy of a prefix a budget for its newcomers; no rate: none. */
void rig_budget(struct rig *rig, const char *prefix, const char *rate, const char *burst);

/* A limit in the words of `set`: "name dns rate 50pps burst 200 match udp port 53 per 24". */
struct limit rig_limit_of(const char *prefix, const char *words);

/* Makes these the limits of a prefix, the last one followed by NULL; its list entry stays. */
void rig_limits(struct rig *rig, const char *prefix, ...);

/* The same of a policy that also has the limits of the next shorter one. */
void rig_heir(struct rig *rig, const char *prefix, ...);

/* Makes this the list entry of a prefix; its limits stay. */
void rig_list(struct rig *rig, const char *prefix, enum sl_access list, uint32_t until);

/* The end of a list entry that lasts so many ticks from now by the injected clock, rounded up. */
uint32_t rig_until(const struct rig *rig, uint64_t ticks);

/* The moment at which such an entry ends. */
uint64_t until_ticks(uint32_t until);

/* Several rules in one step: a ruleset of zeros, any number of rules_add_...(), rig_change(). */
void rules_add_limits(struct ruleset *set, const char *prefix, ...);
void rules_add_heir(struct ruleset *set, const char *prefix, ...);
void rules_add_list(struct ruleset *set, const char *prefix, enum sl_access list, uint32_t until);

/*
 * rules_make_list puts a list into a place of the set; rules_add_listed adds a prefix that is on
 * the lists of these bits.
 */
void rules_make_list(struct ruleset *set, int place, enum sl_access list, uint32_t until);
void rules_add_listed(struct ruleset *set, const char *prefix, uint64_t lists);

/* Makes the change, and frees the rules. */
int rig_change(struct rig *rig, struct ruleset *set);

/*
 * Makes the change in another process, and kills that with SIGKILL as it enters or leaves its
 * `stop`th system call. False: it came to its end before. Frees the rules.
 */
bool rig_change_cut_off(struct rig *rig, struct ruleset set, int stop);

/*
 * What is in force for an address: its policy, the limit that is asked first, or the limit of a
 * name.
 */
const struct sl_policy *rig_policy(const struct rig *rig, const char *address);
const struct sl_limit *rig_limit(const struct rig *rig, const char *address);
const struct sl_limit *rig_limit_named(const struct rig *rig, const char *address,
				       const char *name);

/* What a limit tells now of a packet of a source that the device sends. */
struct limit_state rig_limit_state(const struct rig *rig, const struct sl_limit *limit,
				   const char *address, uint32_t size);

/* Nothing is left over from any change, and there are so many rules. */
void rig_check_tidy(const struct rig *rig, unsigned int rules);

/* --- Frames --- */

#define FRAME_LEAST 60 /* of Ethernet, without the checksum */
#define FRAME_MAX   2048

struct frame {
	uint32_t size;
	uint8_t bytes[FRAME_MAX];
};

/* A UDP packet from an address, to 198.51.100.7 or 2001:db8::, in a frame of `size` bytes. */
struct frame frame_from(const char *source, uint32_t size);
/* From 10.x.x.x, by number. */
struct frame frame_of(uint32_t number);
/* Writes a UDP packet over the first bytes of a larger buffer. */
void frame_write(uint8_t *bytes, uint32_t size, const char *source);
/* An IP packet of this protocol, in a frame of FRAME_LEAST. */
struct frame frame_of_proto(const char *source, uint8_t proto);
/* Of what frame_from() made. */
void frame_set_destination(struct frame *frame, const char *destination);
void frame_set_proto(struct frame *frame, uint8_t proto);
void frame_set_port(struct frame *frame, uint16_t port);

/* --- Running --- */

/* One frame. Whether it passed; asserts that the kernel ran it. */
bool rig_run(struct rig *rig, enum hook hook, const void *bytes, uint32_t size);
/* The same frame `count` times; returns how many passed. */
uint64_t rig_send(struct rig *rig, enum hook hook, const struct frame *frame, uint64_t count);
/*
 * UDP packets from an address, in frames of FRAME_LEAST, through any hook; returns how many passed.
 */
uint64_t rig_send_from(struct rig *rig, const char *source, uint64_t count);

/* More packets than any burst of a test, but for that of no rule. */
#define ENOUGH 50

/* How many of ENOUGH packets pass: all, none, or at 1/h the burst of the policy that judges. */
uint64_t rig_burst_of(struct rig *rig, const char *source);
/*
 * As rig_send for large counts, in one system call, through another program of TC, which hands over to
 * one of the rig's; the counters say how many passed.
 */
uint64_t rig_send_batch_through(struct rig *rig, int prog, const struct frame *frame,
				uint64_t count);

/*
 * Through TC, a packet that the kernel has merged from `packets` of one byte each. What the kernel
 * says of an skb, and it has on the wire: `packets` and `bytes` are for the rig's count. The skb
 * receives the time that the programs leave in it.
 */
bool rig_run_merged(struct rig *rig, const char *source, uint32_t packets);
bool rig_run_skb(struct rig *rig, enum hook hook, const void *bytes, uint32_t size,
		 struct __sk_buff *skb, const struct sl_cell *wire);

/*
 * The same through another program, which hands over to one of the rig's: of its type, TC or XDP.
 */
bool rig_run_through(struct rig *rig, int prog, enum hook hook, const void *bytes, uint32_t size,
		     const struct sl_cell *wire);

bool rig_run_skb_through(struct rig *rig, int prog, enum hook hook, const void *bytes,
			 uint32_t size, struct __sk_buff *skb, const struct sl_cell *wire);

/* --- Crowds --- */

/* Packets from ever other addresses of a net, in a frame that a flood may send, too. */
struct march {
	struct crowd *crowd; /* what the program reads: a test may set `to`, `times` and `next` */
	bool ipv4;
	int prog;
	struct frame frame;
};

/* From a crowd of sources, to one of the rig's programs of TC. `place`: which of CROWDS it is. */
struct march march_from(unsigned int place, const char *net, int prog);
/* The next `count` packets of it; returns how many passed. */
uint64_t rig_march(struct rig *rig, const struct march *march, uint64_t count);

/* --- Newcomers --- */

/* Whether newcomers are a crowd, for the current window and the next. */
void rig_flood(struct rig *rig, bool crowd);
/*
 * Whether unknown sources are given memory: else each set of the table is locked, until the rig is
 * emptied.
 */
void rig_admit(struct rig *rig, bool admit);
/* Ticks of a window. */
uint64_t rig_window(const struct rig *rig);
/* Of all CPUs. */
uint64_t rig_events(const struct rig *rig, enum sl_event event);
/* States that were refused to newcomers. */
uint64_t rig_refusals(const struct rig *rig);

/* The state of an address under a limit; false: there is none. */
bool rig_state(const struct rig *rig, const struct sl_prefix *address, const struct sl_limit *limit,
	       struct sl_state *ret);
/* Forgets one, as an insertion does that takes its way. */
void rig_forget_state(const struct rig *rig, const struct sl_prefix *address,
		      const struct sl_limit *limit);
/* How many there are; of buckets, the sources that have one on any CPU. */
uint32_t rig_states(const struct rig *rig);
uint32_t rig_states_of(const struct rig *rig, enum sl_family family);
uint32_t rig_buckets(const struct rig *rig);
uint32_t rig_buckets_of(const struct rig *rig, enum sl_family family);
bool rig_has_bucket(const struct rig *rig, const struct sl_prefix *address);
void rig_forget_bucket(struct rig *rig, const struct sl_prefix *address);

/* --- Counters --- */

/* Packets of all policies with that reason. */
uint64_t rig_reason(const struct rig *rig, enum sl_reason reason);
/* All policies together, those of deleted rules too. */
struct sl_counters rig_counters(const struct rig *rig);
/* Of the policy or list that decides about an address; of what has no rule where none does. */
struct sl_counters rig_counters_of(const struct rig *rig, const char *address);
/* Each packet that was sent is counted once, under its verdict, with its bytes. */
void rig_check_counted(const struct rig *rig);
uint32_t rig_entries(const struct rig *rig, enum gate_map map);

/* --- The programs as they ship --- */

struct shipped {
	struct bpf_object *object;
	int prog[HOOKS];
};

struct shipped rig_ship(const struct rig *rig);
void shipped_free(struct shipped *shipped);

/* A thread that runs one frame at full speed on one CPU. */
struct flood {
	pthread_t thread;
	int prog;
	unsigned int cpu;
	const struct frame *frame;
	uint32_t chunk;	   /* packets a system call */
	uint64_t count;	   /* ends after so many packets, */
	uint64_t until_ns; /* and not before this moment of the monotonic clock; */
	const bool *stop;  /* or, where there is one, when this is set */
	bool first;	   /* before other processes of the machine, where that is permitted */
	/* and tells */
	uint64_t sent;
	uint64_t begin, end; /* ticks, by the monotonic clock, of the first and the last run */
	int err;
};

uint64_t clock_ns(void);
void flood_start(struct flood *flood);
/* Asserts that all its runs went well. */
void flood_join(struct flood *flood);

#endif
