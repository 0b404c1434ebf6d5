/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The packet context stores what is known about a packet. The verdict stores the decision about the
 * packet.
 */
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
 * The packet context. It contains no pointer, because the verifier passes no pointers within
 * arguments of global functions. All members are 0 at first. packet_parse() sets some members.
 * packet_inspect() sets the remaining members if a limit needs them.
 */
struct packet {
	__u64 jiffy; /* time at which the packet arrived (jiffies64) */
	__u64 now;   /* arrival of the packet, in ticks, set by packet_now(); 0: not needed yet */
	/* number of packets in the buffer; the kernel may merge several packets into one buffer */
	__u32 packets;
	__u32 bytes; /* bytes on the wire of all packets in the buffer, with Ethernet headers */
	/* source address, as a key of map `prefixes` */
	struct sl_prefix source;
	__u32 generation; /* generation of the rules that this packet uses */
	/* bytes of headers that packet_inspect() has read; below 17,000 */
	__u16 headers;
	__u8 ip_offset; /* offset of the IP header: 14, plus 4 per VLAN tag, plus 8 for SNAP */
	__u8 egress;	/* 1 if the device sends the packet */
	__u8 inspected; /* 1 if packet_inspect() has filled in `facts` and `destination` */
	/* packet_parse() sets only the VLAN id */
	struct sl_facts facts;
	union {
		__u64 bucket_key[2]; /* key of the source's bucket, until the packet is inspected */
		__u8 destination[16]; /* destination address, after the packet is inspected */
	};
};

/* The BPF stack has 512 bytes for the packet and for up to three nested calls (BPF_GLOBAL). */
_Static_assert(sizeof(struct packet) == 88, "room on the stack");

/*
 * The decision about a packet, by rules, limits and the budget for new sources. All members are 0
 * at first.
 */
struct verdict {
	__u64 departure; /* earliest departure time from the device, in ticks; 0: at once */
	__u32 version;	 /* policy version that decides about the packet */
	__u8 reason;	 /* enum sl_reason */
	__u8 refusal;	 /* enum sl_reason of the last limit that refused (charge_refuse()) */
	/* SL_MARK_OWN or SL_MARK_INHERITED of each limit that refused the packet */
	__u8 refused;
	/*
	 * LIMIT_PASSED() of each limit that drops packets, whose policy has a budget, and under
	 * which the packet's key is not established; the packet may charge the budget
	 */
	__u8 is_new;
	__u8 is_counted; /* 1 if the packet was already counted as a packet of a new key */
	__u8 is_charged; /* 1 if a shared state was charged; 0 if only slices were charged */
	__u8 is_hot;	 /* 1 if a state of the source was charged less than HOT_TICKS ago */
	__u8 is_waiting; /* 1 if a limit that drops packets gives the packet's key no state */
	__u8 is_shaped;	 /* 1 if a shape has set `departure`; if 0, the sender may have set it */
	__u8 is_watched; /* 1 if a process reads the records in map `events` (bpf/record.h) */
	__u16 untimed;	 /* 0 if the duration of this packet is measured (bpf/duration.h) */
};

/*
 * Masks of slots in the argument `limits`. PASSED: the limit passed the packet. NO_STATE: the limit
 * drops, and the packet's key has no state. ADMITTED: the key gets a state if the packet passes. If
 * the verifier knew the value of `limits`, it would walk the rest of the program once for each
 * value.
 */
#define LIMIT_PASSED(limit)   (1U << (limit)->slot % SL_LIMITS_MAX)
#define LIMIT_NO_STATE(limit) (LIMIT_PASSED(limit) << SL_LIMITS_MAX)
#define LIMIT_ADMITTED(limit) (LIMIT_PASSED(limit) << 2 * SL_LIMITS_MAX)
#define LIMITS_PASSED	      ((1U << SL_LIMITS_MAX) - 1)
#define LIMITS_NO_STATE	      (LIMITS_PASSED << SL_LIMITS_MAX)
#define LIMITS_ADMITTED	      (LIMITS_PASSED << 2 * SL_LIMITS_MAX)
#define LIMITS_MATCHED	      (1U << 3 * SL_LIMITS_MAX) /* at least one limit matched the packet */
/* the limits in NO_STATE that are not in ADMITTED: this packet gives its key no state */
#define LIMITS_WAITING(limits) ((limits)&LIMITS_NO_STATE & ~((limits) >> SL_LIMITS_MAX))

/*
 * Returns a limit's bit for verdict->is_new. Returns 0 if new keys under the limit charge no
 * budget.
 */
static __always_inline __u32 limit_if_new(const struct sl_limit *limit)
{
	return (limit->budgeted && !limit->observe) * LIMIT_PASSED(limit);
}

/* The result of charging a packet to a limit. */
enum charge_result {
	CHARGE_PASSED,
	CHARGE_REFUSED,	 /* the limit refuses the packet; verdict->refusal is the reason */
	CHARGE_NO_STATE, /* the packet's key has no state, and does not get one from this packet */
	CHARGE_ADMITTED, /* the key has no state; it gets one if all limits pass the packet */
	CHARGE_LOST,	 /* another CPU changed the state first, so the caller tries again */
};

static __always_inline enum charge_result charge_refuse(struct verdict *verdict,
							enum sl_reason reason)
{
	verdict->refusal = reason;
	return CHARGE_REFUSED;
}

/* A packet and its verdict. The test build of the programs stores them after each packet. */
struct sl_judged {
	struct sl_prefix source; /* `bits` is 0 if the frame has no source */
	struct sl_facts facts;	 /* all 0 if no header after the source address was read */
	__u32 version;		 /* policy version that decided about the packet */
	__u8 reason;		 /* enum sl_reason */
	__u8 refused;		 /* marks of the limits that refused the packet */
	__u16 pad;
	__u8 destination[16]; /* destination address, if `facts` is not 0 */
};

static __always_inline void judged_store(const struct packet *packet, const struct verdict *verdict,
					 void *ret)
{
	struct sl_judged *judged = ret;

	judged->source = packet->source;
	judged->facts = packet->facts;
	__builtin_memcpy(judged->destination, packet->destination, sizeof(judged->destination));
	judged->version = verdict->version;
	judged->reason = verdict->reason;
	judged->refused = verdict->refused;
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
