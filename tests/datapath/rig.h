/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A gate of unpinned maps, and its programs run by BPF_PROG_TEST_RUN. `programs` are of the test
 * build, whose clock the rig sets; rig_ship() loads the programs that ship on the same maps. Loading
 * takes most of a second, so a test binary has one rig, which each test empties.
 */
#ifndef SLUICE_RIG_H
#define SLUICE_RIG_H

#include <pthread.h>
#include <linux/bpf.h>

#include "attach/attachment.h"
#include "senders.h"
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
	struct sl_params params; /* of the empty gate; a test may change the gate's */
	struct programs programs;
	volatile __u64 *clock_ticks;
	volatile __u64 *clock_jiffies;
	uint64_t phase;			/* ticks since the jiffy began */
	uint64_t behind;		/* how far the clock was set back; jiffies are not */
	struct sl_cell passed, dropped; /* sent packets by verdict: rig_check_counted() */
	unsigned int cpus;		/* online */
	unsigned int cpu[RIG_CPUS_MAX]; /* their numbers */
};

/* For TESTS(): makes and removes the rig. If BPF is not permitted, tests are skipped. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* Returns the rig, empty, at one hour of uptime, on the first CPU; or skips the test. */
struct rig *rig_begin(void **state);

/* Makes another rig, with maps of these sizes; 0: as the rig of the test binary. */
struct rig *rig_make(const struct gate_sizes *sizes);
void rig_free(struct rig *rig);

/* Removes all rules, sources and counters. */
void rig_empty(struct rig *rig);
/* Zeroes an array, on all CPUs. */
void rig_zero(const struct rig *rig, enum gate_map map);

/* Loads the programs of these hooks again, with the gate's maps as they are now. */
void rig_load(struct rig *rig, unsigned int hooks);

/* Skips the test if fewer CPUs are online. */
void rig_need_cpus(const struct rig *rig, unsigned int cpus);
void rig_run_on(const struct rig *rig, unsigned int index);

/* --- The injected clock ---------------------------------------------------------------------- */

/* Sets the clock, before any packet. */
void rig_clock_start(struct rig *rig, uint64_t ticks);
void rig_clock_forward(struct rig *rig, uint64_t ticks);
void rig_clock_back(struct rig *rig, uint64_t ticks);
/* To the last tick of this jiffy. */
void rig_clock_to_edge(struct rig *rig);
uint64_t rig_now(const struct rig *rig);

/* --- Rules ----------------------------------------------------------------------------------- */

/* Gives a prefix one limit, by its rate and burst. */
void rig_set(struct rig *rig, const char *prefix, const char *rate, const char *burst);
void rig_del(struct rig *rig, const char *prefix);

/* Gives the policy of a prefix a budget; rate NULL: none. */
void rig_budget(struct rig *rig, const char *prefix, const char *rate, const char *burst);

/* A limit in the words of `set`: "name dns rate 50pps burst 200 match udp port 53 per 24". */
struct limit rig_limit_of(const char *prefix, const char *words);

/* Sets the limits of a prefix, up to NULL. Its runtime entry stays. */
void rig_limits(struct rig *rig, const char *prefix, ...);

/* The same, for a policy that inherits. */
void rig_heir(struct rig *rig, const char *prefix, ...);

/* Sets the runtime entry of a prefix. Its limits stay. */
void rig_list(struct rig *rig, const char *prefix, enum sl_access list, uint32_t until);

/* Returns the expiry of an entry that lasts this long by the injected clock, rounded up. */
uint32_t rig_until(const struct rig *rig, uint64_t ticks);

/* Returns the time of an expiry. */
uint64_t until_ticks(uint32_t until);

/* Several rules in one change: a zeroed ruleset, any number of rules_add_...(), rig_change(). */
void rules_add_limits(struct ruleset *set, const char *prefix, ...);
void rules_add_heir(struct ruleset *set, const char *prefix, ...);
void rules_add_list(struct ruleset *set, const char *prefix, enum sl_access list, uint32_t until);

/* Adds a list at an index; and a prefix on the lists of these bits. */
void rules_make_list(struct ruleset *set, int place, enum sl_access list, uint32_t until);
void rules_add_listed(struct ruleset *set, const char *prefix, uint64_t lists);

/* Applies the change, and frees the rules. */
int rig_change(struct rig *rig, struct ruleset *set);

/*
 * Applies the change in another process, and kills the process when it enters or leaves its
 * `stop`th system call. Returns false if it ended before. Frees the rules.
 */
bool rig_change_cut_off(struct rig *rig, struct ruleset set, int stop);

/* Returns what is in force for an address: its policy, its first limit, or a limit by name. */
const struct sl_policy *rig_policy(const struct rig *rig, const char *address);
const struct sl_limit *rig_limit(const struct rig *rig, const char *address);
const struct sl_limit *rig_limit_named(const struct rig *rig, const char *address,
				       const char *name);

/* Returns what `check` reports for a packet that the device sends. */
struct limit_state rig_limit_state(const struct rig *rig, const struct sl_limit *limit,
				   const char *address, uint32_t size);

/* Checks that no change left anything over, and counts the rules. */
void rig_check_tidy(const struct rig *rig, unsigned int rules);

/* --- Frames ---------------------------------------------------------------------------------- */

#define FRAME_LEAST 60 /* of Ethernet, without the checksum */
#define FRAME_MAX   2048

struct frame {
	uint32_t size;
	uint8_t bytes[FRAME_MAX];
};

/* A UDP packet to 198.51.100.7 or 2001:db8::, in a frame of `size` bytes. */
struct frame frame_from(const char *source, uint32_t size);
/* From 10.x.x.x, by number. */
struct frame frame_of(uint32_t number);
/* Writes a UDP packet over the first bytes of a larger buffer. */
void frame_write(uint8_t *bytes, uint32_t size, const char *source);
struct frame frame_of_proto(const char *source, uint8_t proto);
/* Changes of a frame of frame_from(). */
void frame_set_destination(struct frame *frame, const char *destination);
void frame_set_proto(struct frame *frame, uint8_t proto);
void frame_set_port(struct frame *frame, uint16_t port);

/* --- Running --------------------------------------------------------------------------------- */

/* Runs a program on a frame. Returns whether it passed. */
bool rig_run(struct rig *rig, enum hook hook, const void *bytes, uint32_t size);
/* Sends the frame `count` times. Returns how many passed. */
uint64_t rig_send(struct rig *rig, enum hook hook, const struct frame *frame, uint64_t count);
/* The same, with UDP packets in frames of FRAME_LEAST, through any hook. */
uint64_t rig_send_from(struct rig *rig, const char *source, uint64_t count);

/* More packets than any burst of a test. */
#define ENOUGH 50

/* Returns how many of ENOUGH packets pass: at 1/h, the burst of the policy that decides. */
uint64_t rig_burst_of(struct rig *rig, const char *source);
/* As rig_send(), in one system call, through another TC program that calls a program of the rig. */
uint64_t rig_send_batch_through(struct rig *rig, int prog, const struct frame *frame,
				uint64_t count);

/*
 * Through TC, a packet that the kernel merged from `packets` of one byte each; or with these fields of
 * the skb, which receives the departure time. wire: what the rig counts.
 */
bool rig_run_merged(struct rig *rig, const char *source, uint32_t packets);
bool rig_run_skb(struct rig *rig, enum hook hook, const void *bytes, uint32_t size,
		 struct __sk_buff *skb, const struct sl_cell *wire);

/* The same through another program, XDP or TC, that calls a program of the rig. */
bool rig_run_through(struct rig *rig, int prog, enum hook hook, const void *bytes, uint32_t size,
		     const struct sl_cell *wire);

bool rig_run_skb_through(struct rig *rig, int prog, enum hook hook, const void *bytes,
			 uint32_t size, struct __sk_buff *skb, const struct sl_cell *wire);

/* --- Senders --------------------------------------------------------------------------------- */

/* Packets from changing addresses of a net: senders.h. */
struct march {
	struct senders *senders; /* of the program: a test may set `to`, `times` and `next` */
	bool ipv4;
	int prog;
	struct frame frame;
};

/* To a TC program of the rig. place: below SENDERS_MAX, different for each march. */
struct march march_from(unsigned int place, const char *net, int prog);
/* Sends the next `count` packets. Returns how many passed. */
uint64_t rig_march(struct rig *rig, const struct march *march, uint64_t count);

/* --- Newcomers ------------------------------------------------------------------------------- */

/* Sets or ends a flood, for the current interval and the next. */
void rig_flood(struct rig *rig, bool on);
/* If false, locks all sets of the table: no new key gets an entry until the rig is emptied. */
void rig_admit(struct rig *rig, bool admit);
/* Ticks of an interval. */
uint64_t rig_interval(const struct rig *rig);
/* Sum over all CPUs. */
uint64_t rig_events(const struct rig *rig, enum sl_event event);
/* Insertions that failed. */
uint64_t rig_refusals(const struct rig *rig);

/* Reads the state of an address under a limit. Returns false if it has none. */
bool rig_state(const struct rig *rig, const struct sl_prefix *address, const struct sl_limit *limit,
	       struct sl_state *ret);
/* Evicts a state, as an insertion does. */
void rig_forget_state(const struct rig *rig, const struct sl_prefix *address,
		      const struct sl_limit *limit);
/* Numbers of states, and of sources with a bucket on any CPU. */
uint32_t rig_states(const struct rig *rig);
uint32_t rig_states_of(const struct rig *rig, enum sl_family family);
uint32_t rig_buckets(const struct rig *rig);
uint32_t rig_buckets_of(const struct rig *rig, enum sl_family family);
bool rig_has_bucket(const struct rig *rig, const struct sl_prefix *address);
void rig_forget_bucket(struct rig *rig, const struct sl_prefix *address);

/* --- Counters -------------------------------------------------------------------------------- */

/* Packets of all policies with this reason. */
uint64_t rig_reason(const struct rig *rig, enum sl_reason reason);
/* Sum over all policies, also of deleted rules. */
struct sl_counters rig_counters(const struct rig *rig);
/* Of the policy, access or missing rule that decides about an address. */
struct sl_counters rig_counters_of(const struct rig *rig, const char *address);
/* Checks that each sent packet is counted once, by its verdict, with its bytes. */
void rig_check_counted(const struct rig *rig);
uint32_t rig_entries(const struct rig *rig, enum gate_map map);

/* --- The programs as they ship --------------------------------------------------------------- */

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
	uint64_t count;	   /* ends after this many packets, */
	uint64_t until_ns; /* and not before this time of the monotonic clock; */
	const bool *stop;  /* or if not NULL, when this is set */
	bool first;	   /* at a real-time priority, if permitted */
	/* results */
	uint64_t sent;
	uint64_t begin, end; /* ticks, by the monotonic clock, of the first and the last run */
	int err;
};

uint64_t clock_ns(void);
void flood_start(struct flood *flood);
/* Asserts that all runs succeeded. */
void flood_join(struct flood *flood);

#endif
