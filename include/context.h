/* SPDX-License-Identifier: GPL-2.0 */
/* What a packet is, and what is decided about it: the arguments of the decision in decide.h. */
#ifndef SLUICE_CONTEXT_H
#define SLUICE_CONTEXT_H

#include "match.h"

#ifdef __bpf__
#include <bpf/bpf_endian.h>
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/*
 * The packet context. It has no pointer, so global functions accept it. It begins zeroed, and is
 * filled in by packet_parse() and, if a limit needs more, by packet_inspect().
 */
struct packet {
	__u64 jiffy;		 /* jiffies64 at its arrival */
	__u64 now;		 /* ticks: the first read of the clock; 0: not yet */
	__u32 packets;		 /* on the wire: above 1 if the kernel merged them */
	__u32 bytes;		 /* on the wire, Ethernet header included */
	struct sl_prefix source; /* the whole address: finds the longest prefix in the trie */
	__u32 generation;	 /* of the rules that decide */
	__u16 ip_offset; /* of the IP header: 14, plus 4 for each VLAN tag, plus 8 for SNAP */
	__u16 headers;	 /* bytes of all headers that packet_inspect() could read: below 17,000 */
	__u16 vlan;	 /* the id of the first tag whose id is not 0; 0: none */
	__u8 egress;	 /* the device sends it */
	__u8 inspected;	 /* packet_inspect() has filled in `facts` and `destination` */
	struct sl_facts facts;
	union {
		__u64 bucket_key[2];  /* of an IPv6 source, during the lookup of its bucket */
		__u8 destination[16]; /* when the packet is inspected */
	};
};

/* It is on the stack below up to three calls, which share 512 bytes with it: BPF_GLOBAL. */
_Static_assert(sizeof(struct packet) == 88, "room on the stack");

/* The decision of rules, limits and budget about a packet. Begins zeroed. */
struct verdict {
	__u64 departure; /* ticks: earliest departure from the device; 0: at once */
	__u32 version;	 /* the policy version that decides about the source */
	__u8 reason;	 /* enum sl_reason */
	__u8 refusal;	 /* enum sl_reason: why the last limit with CHARGE_REFUSED refused */
	__u8 refused;	 /* marks of the limits without credit, including those that observe */
	__u8 is_new;	 /* by slot: limits with a budget, and no established state */
	__u8 is_counted; /* as a packet of a new key */
	__u8 is_charged; /* to a shared state, not only to slices */
	__u8 is_hot;	 /* a state of its key was charged within HOT_TICKS */
	__u8 is_waiting; /* a limit that drops gives its key no state with this packet */
	__u8 is_shaped;	 /* a shape has set `departure`, not only the sender */
};

/*
 * Bits by slot: the limits that passed a packet; that drop and have no state for its key; under
 * which its key gets a state if the packet passes. The verifier must not know the value, otherwise
 * it would walk the rest of the program for each value.
 */
#define LIMIT_PASSED(limit)   (1U << (limit)->slot % SL_LIMITS_MAX)
#define LIMIT_NO_STATE(limit) (LIMIT_PASSED(limit) << SL_LIMITS_MAX)
#define LIMIT_ADMITTED(limit) (LIMIT_PASSED(limit) << 2 * SL_LIMITS_MAX)
#define LIMITS_PASSED	      ((1U << SL_LIMITS_MAX) - 1)
#define LIMITS_NO_STATE	      (LIMITS_PASSED << SL_LIMITS_MAX)
#define LIMITS_ADMITTED	      (LIMITS_PASSED << 2 * SL_LIMITS_MAX)
#define LIMITS_MATCHED	      (1U << 3 * SL_LIMITS_MAX) /* a limit matched */
/* the limits that drop, and under which the key gets no state yet */
#define LIMITS_WAITING(limits) ((limits)&LIMITS_NO_STATE & ~((limits) >> SL_LIMITS_MAX))

/* Returns the bit of a limit in verdict->is_new: 0 if no budget pays for its new keys. */
static __always_inline __u32 limit_if_new(const struct sl_limit *limit)
{
	return (limit->budgeted && !limit->observe) * LIMIT_PASSED(limit);
}

/* The result of charging a packet to one limit. */
enum charge_result {
	CHARGE_PASSED,
	CHARGE_REFUSED,	 /* verdict->refusal is the reason */
	CHARGE_NO_STATE, /* the key has no state */
	CHARGE_ADMITTED, /* the key has no state, and gets one if the packet passes */
	CHARGE_LOST,	 /* another CPU changed the state: try again */
};

static __always_inline enum charge_result charge_refuse(struct verdict *verdict,
							enum sl_reason reason)
{
	verdict->refusal = reason;
	return CHARGE_REFUSED;
}

static __always_inline bool source_is_ipv4(const struct sl_prefix *source)
{
	return source->bits == SL_FAMILY_BITS + 32;
}

static __always_inline bool packet_is_ipv4(const struct packet *packet)
{
	return source_is_ipv4(&packet->source);
}

static __always_inline enum sl_family packet_family(const struct packet *packet)
{
	return packet_is_ipv4(packet) ? SL_IPV4 : SL_IPV6;
}

#endif
