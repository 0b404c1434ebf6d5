/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Report: the output of commands that read a gate. The function of a command has the command's
 * name. print_begin() selects the stream, and text or JSON. If a function returns an error, its
 * output is incomplete. A process can print several reports.
 */
#ifndef SLUICE_REPORT_H
#define SLUICE_REPORT_H

#include <stdbool.h>

#include "gate/gate.h"
#include "rules/prefix.h"
#include "rules/value.h"
#include "state/source.h"

struct asked;

/*
 * Report one gate, or all gates if `gate` is NULL. If a gate cannot be read, report_status()
 * reports the remaining gates, and then returns an error.
 */
int report_status(const char *gate);
int report_metrics(const char *gate); /* output of `export`, always text */

/*
 * Reports findings, after watching packets for asked->watch_ns. Returns 0, 1 if a finding is WRONG,
 * or a negative errno.
 */
int report_doctor(const struct asked *asked);

/* Reports all counters. If `all` is set, text output includes counts of 0. */
int report_stats(const struct gate *gate, bool all);

int report_lists(const struct gate *gate);
int report_show(const struct gate *gate);

/* --- Sources -------------------------------------------------------------------------------- */

enum order {
	ORDER_BUSIEST,
	ORDER_PASSED,
	ORDER_DROPPED,
	ORDER_BYTES,
	ORDER_LEVEL,
	ORDERS,
};

struct sources_args {
	struct sl_prefix within;
	unsigned int order; /* enum order */
	unsigned int top;   /* number of sources to print; 0 for all */
	unsigned int skip;  /* number of sources to omit at the top of the order */
};

/* types of the words `sort`, `top` and `skip` */
extern const struct value_type value_order, value_top, value_skip;

int report_sources(const struct gate *gate, const struct sources_args *args);

/* --- A packet ------------------------------------------------------------------------------- */

/* The packet that the words of `check` describe. A member is 0 if its word was not given. */
struct check_args {
	struct sl_prefix source;
	struct sl_prefix to;
	unsigned int proto;		/* value_proto */
	unsigned int port;		/* value_port */
	unsigned int sport;		/* value_port */
	unsigned int flags;		/* value_flags */
	unsigned int icmp[SL_FAMILIES]; /* value_icmp_type */
	unsigned int length;		/* value_length */
	unsigned int dscp;		/* value_dscp */
	unsigned int fragment;		/* value_fragment */
	unsigned int vlan;		/* value_vlan */
	unsigned int bytes;		/* value_frame */
	unsigned int hook;		/* value_given_hook */
	bool syn;
	bool quic_initial;
	bool tls_hello;
	bool dns_query;
	bool unread;
};

/*
 * Types of the members of check_args. A number N is stored as N + 1; 0 means that the word was not
 * given.
 */
extern const struct value_type value_proto, value_port, value_fragment, value_vlan, value_frame,
	value_flags, value_icmp_type, value_length, value_dscp;

/* Builds the packet that `args` describe, with the facts that the BPF program would find. */
int packet_build(const struct check_args *args, struct packet_args *ret);

int report_check(const struct gate *gate, const struct packet_args *packet);

#endif
