/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rig is a gate of unpinned maps for tests by BPF_PROG_TEST_RUN. `programs` are a test build with
 * a clock that the rig sets. rig_ship() loads the shipped programs on the same maps. A test binary
 * has one rig, because loading takes most of a second. The rig is emptied before each test.
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
	/* rig_empty() restores these params, because a test may change the params of the gate */
	struct sl_params params;
	struct programs programs;
	volatile __u64 *clock_ticks;
	volatile __u64 *clock_jiffies;
	/*
	 * To simulate slow lookups, each lookup of a bucket moves the clock forward by this number
	 * of ticks.
	 */
	volatile __u64 *lookup_ticks;
	uint64_t phase;	 /* ticks from the start of the current jiffy to now */
	uint64_t behind; /* ticks by which the clock was set back; jiffies are never set back */
	/* packets and bytes sent so far, by verdict, for rig_check_counted() */
	struct sl_cell passed, dropped;
	unsigned int cpus;		/* number of CPUs that are online */
	unsigned int cpu[RIG_CPUS_MAX]; /* kernel's number of each CPU that is online */
};

/* Arguments of TESTS() that make and remove the rig. Tests are skipped if BPF is not permitted. */
int rig_setup(void **state);
/* Loads only the program of hook xdp, which saves the verifier's time for the other programs. */
int rig_setup_xdp(void **state);
int rig_teardown(void **state);

/* Returns the emptied rig, with the first CPU and an uptime of one hour, or skips the test. */
struct rig *rig_begin(void **state);

/* Makes another rig with the programs of some hooks. sizes: the sizes of its maps; 0: the size in the first rig. */
struct rig *rig_make(const struct gate_sizes *sizes, unsigned int hooks);
void rig_free(struct rig *rig);

/* Removes all rules, sources and counters. */
void rig_empty(struct rig *rig);
/* Sets all values of an array map to zero, on all CPUs. */
void rig_zero(const struct rig *rig, enum gate_map map);

/* Loads the programs of these hooks (a mask) again, with the current maps of the gate. */
void rig_load(struct rig *rig, unsigned int hooks);

/* Skips the test if less than `cpus` CPUs are online. */
void rig_need_cpus(const struct rig *rig, unsigned int cpus);
void rig_run_on(const struct rig *rig, unsigned int index);

/* --- The injected clock ---------------------------------------------------------------------- */

/* Sets the injected clock. A test must call this before it sends the first packet. */
void rig_clock_start(struct rig *rig, uint64_t ticks);
void rig_clock_forward(struct rig *rig, uint64_t ticks);
void rig_clock_back(struct rig *rig, uint64_t ticks);
/* Moves the clock forward to the last tick of the current jiffy. */
void rig_clock_to_edge(struct rig *rig);
uint64_t rig_now(const struct rig *rig);

/* --- Rules ----------------------------------------------------------------------------------- */

/* Gives a prefix a single limit, with this rate and burst. */
void rig_set(struct rig *rig, const char *prefix, const char *rate, const char *burst);
void rig_del(struct rig *rig, const char *prefix);

/* Gives the policy of a prefix a budget, or removes its budget if `rate` is NULL. */
void rig_budget(struct rig *rig, const char *prefix, const char *rate, const char *burst);

/* Returns a limit from `sluice set` arguments, such as "name dns rate 50pps match udp port 53". */
struct limit rig_limit_of(const char *prefix, const char *words);

/*
 * Sets the limits of a prefix. The arguments are strings for `sluice set`, terminated by NULL.
 * Keeps the runtime entry of the prefix.
 */
void rig_limits(struct rig *rig, const char *prefix, ...);

/* Like rig_limits(), but the policy also inherits limits of shorter prefixes. */
void rig_heir(struct rig *rig, const char *prefix, ...);

/* Sets the runtime entry of a prefix. The prefix's limits stay. */
void rig_list(struct rig *rig, const char *prefix, enum sl_access list, uint32_t until);

/* Returns the earliest expiry, as `until` of a list entry, that is at least `ticks` from now. */
uint32_t rig_until(const struct rig *rig, uint64_t ticks);

/* Returns the time in ticks at which an entry expires. until: the entry's `until`. */
uint64_t until_ticks(uint32_t until);

/* Add a rule to `set`, which the caller initializes with zeros. rig_change() applies the set. */
void rules_add_limits(struct ruleset *set, const char *prefix, ...);
void rules_add_heir(struct ruleset *set, const char *prefix, ...);
void rules_add_list(struct ruleset *set, const char *prefix, enum sl_access list, uint32_t until);

/* Add a list with number `place`, or add `prefix` to each list whose bit in `lists` is set. */
void rules_make_list(struct ruleset *set, int place, enum sl_access list, uint32_t until);
void rules_add_listed(struct ruleset *set, const char *prefix, uint64_t lists);

/* Applies the rules in `set` to the gate. Frees `set`. */
int rig_change(struct rig *rig, struct ruleset *set);

/*
 * Applies the change in another process, and kills that process at stop number `stop`, before or
 * after a system call. Returns false if the process exits earlier. Frees `set`.
 */
bool rig_change_cut_off(struct rig *rig, struct ruleset set, int stop);

/* Return the policy of an address, the first limit of that policy, or the limit of that name. */
const struct sl_policy *rig_policy(const struct rig *rig, const char *address);
const struct sl_limit *rig_limit(const struct rig *rig, const char *address);
const struct sl_limit *rig_limit_named(const struct rig *rig, const char *address,
				       const char *name);

/* Returns the state of a limit that `sluice check` prints for a packet of this address and size. */
struct limit_state rig_limit_state(const struct rig *rig, const struct sl_limit *limit,
				   const char *address, uint32_t size);

/* Checks that the gate has this number of rules, and that each map entry belongs to a rule. */
void rig_check_tidy(const struct rig *rig, unsigned int rules);

/* --- Frames ---------------------------------------------------------------------------------- */

#define FRAME_LEAST 60 /* length of the shortest Ethernet frame in bytes, without the checksum */
#define FRAME_MAX   2048

struct frame {
	uint32_t size;
	uint8_t bytes[FRAME_MAX];
};

/* Returns a UDP packet to 198.51.100.7 or 2001:db8::, in a frame of `size` bytes. */
struct frame frame_from(const char *source, uint32_t size);
/* Returns a UDP packet from an address in 10.0.0.0/8, selected by a number. */
struct frame frame_of(uint32_t number);
/* Writes a UDP packet of `size` bytes to the start of a buffer. */
void frame_write(uint8_t *bytes, uint32_t size, const char *source);
struct frame frame_of_proto(const char *source, uint8_t proto);
/* Change a field of a frame that frame_from() has made. */
void frame_set_destination(struct frame *frame, const char *destination);
void frame_set_proto(struct frame *frame, uint8_t proto);
void frame_set_port(struct frame *frame, uint16_t port);

/* --- Running --------------------------------------------------------------------------------- */

/* Runs the program of a hook on a frame. Returns whether the frame passed. */
bool rig_run(struct rig *rig, enum hook hook, const void *bytes, uint32_t size);
/* Sends the frame `count` times. Returns how many passed. */
uint64_t rig_send(struct rig *rig, enum hook hook, const struct frame *frame, uint64_t count);
/* Sends UDP packets in frames of FRAME_LEAST, on different hooks. Returns how many passed. */
uint64_t rig_send_from(struct rig *rig, const char *source, uint64_t count);

/* To measure a burst, tests send this number of packets. It is larger than each burst in tests. */
#define ENOUGH 50

/* Sends ENOUGH packets and returns how many pass. At a rate of 1/h, this is the burst. */
uint64_t rig_burst_of(struct rig *rig, const char *source);
/* Sends `count` frames in one system call to TC program `prog`, which calls the rig's program. */
uint64_t rig_send_batch_through(struct rig *rig, int prog, const struct frame *frame,
				uint64_t count);

/*
 * Send a merged packet through a TC hook. rig_run_merged() merges `packets` packets with one byte
 * of payload each. rig_run_skb() stores the departure time in `skb`. `wire` is the expected count
 * of packets and bytes.
 */
bool rig_run_merged(struct rig *rig, const char *source, uint32_t packets);
bool rig_run_skb(struct rig *rig, enum hook hook, const void *bytes, uint32_t size,
		 struct __sk_buff *skb, const struct sl_cell *wire);

/* Like rig_run_skb(), but runs XDP or TC program `prog`, which calls a program of the rig. */
bool rig_run_through(struct rig *rig, int prog, enum hook hook, const void *bytes, uint32_t size,
		     const struct sl_cell *wire);

bool rig_run_skb_through(struct rig *rig, int prog, enum hook hook, const void *bytes,
			 uint32_t size, struct __sk_buff *skb, const struct sl_cell *wire);

/* --- Senders --------------------------------------------------------------------------------- */

/* A sequence of packets whose addresses change within a network (senders.h). */
struct march {
	/* variables of the BPF sender; a test may set `to`, `times` and `next` */
	struct senders *senders;
	bool ipv4;
	int prog;
	struct frame frame;
};

/*
 * Prepares packets of many senders. prog: the TC program that gets the packets. place: an index
 * below SENDERS_MAX that is not in use.
 */
struct march march_from(unsigned int place, const char *net, int prog);
/* Sends the next `count` packets. Returns how many passed. */
uint64_t rig_march(struct rig *rig, const struct march *march, uint64_t count);

/* --- Newcomers ------------------------------------------------------------------------------- */

/*
 * If `on`, begins a flood, which lasts until the end of the next interval. Otherwise ends the
 * flood.
 */
void rig_flood(struct rig *rig, bool on);
/*
 * If `admit`, unlocks all sets of the table of states. Otherwise locks all sets, so no new key gets
 * a state.
 */
void rig_admit(struct rig *rig, bool admit);
/* Returns the length of the flood detector's interval in ticks. */
uint64_t rig_interval(const struct rig *rig);
/* Returns the count of an event, summed over all CPUs. */
uint64_t rig_events(const struct rig *rig, enum sl_event event);
/* Returns how many insertions into the table of states have failed. */
uint64_t rig_refusals(const struct rig *rig);

/* Reads the state of an address under a limit. Returns false if there is no state. */
bool rig_state(const struct rig *rig, const struct sl_prefix *address, const struct sl_limit *limit,
	       struct sl_state *ret);
/* Evicts the state of an address under a limit. */
void rig_forget_state(const struct rig *rig, const struct sl_prefix *address,
		      const struct sl_limit *limit);
/* Return the number of states, and the number of sources that have a bucket on some CPU. */
uint32_t rig_states(const struct rig *rig);
uint32_t rig_states_of(const struct rig *rig, enum sl_family family);
uint32_t rig_buckets(const struct rig *rig);
uint32_t rig_buckets_of(const struct rig *rig, enum sl_family family);
bool rig_has_bucket(const struct rig *rig, const struct sl_prefix *address);
void rig_forget_bucket(struct rig *rig, const struct sl_prefix *address);
/* Marks the first buckets of each CPU as used. A slow source then gets no bucket. */
void rig_end_first_buckets(const struct rig *rig);

/* --- Counters -------------------------------------------------------------------------------- */

/* Returns the number of packets with this reason, in the counters of all policies. */
uint64_t rig_reason(const struct rig *rig, enum sl_reason reason);
/* Returns the sum of the counters of all policies, including deleted policies. */
struct sl_counters rig_counters(const struct rig *rig);
/* Returns the counters of the policy that applies to an address, or of SL_POLICY_NONE. */
struct sl_counters rig_counters_of(const struct rig *rig, const char *address);
/* Checks that each sent packet and its bytes were counted once, by the packet's verdict. */
void rig_check_counted(const struct rig *rig);
uint32_t rig_entries(const struct rig *rig, enum gate_map map);

/* --- The programs as they ship --------------------------------------------------------------- */

struct shipped {
	struct bpf_object *object;
	int prog[HOOKS];
};

/* Loads the programs of some hooks. The verifier needs a quarter of a second for each. */
struct shipped rig_ship(const struct rig *rig, unsigned int hooks);
void shipped_free(struct shipped *shipped);

/* A thread that sends one frame at full speed on one CPU. */
struct flood {
	pthread_t thread;
	int prog;
	unsigned int cpu;
	const struct frame *frame;
	uint32_t chunk;	   /* number of packets in one system call */
	uint64_t count;	   /* minimum number of packets to send */
	uint64_t until_ns; /* monotonic time */
	const bool *stop;  /* if not NULL, the thread ends when *stop is true */
	/* whether the thread asks for a real-time priority; it sends even without the permission */
	bool first;
	/* results */
	uint64_t sent;
	uint64_t begin, end; /* begin of the first call and end of the last call, in ticks */
	int err;
};

uint64_t clock_ns(void);
void flood_start(struct flood *flood);
/* Waits for the thread, and asserts that none of its system calls failed. */
void flood_join(struct flood *flood);

#endif
