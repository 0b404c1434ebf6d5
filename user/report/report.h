/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Report: the documents that the commands of the same names print. A report is written by the calls
 * of program/writer.h, so print_begin() selects its stream, and text or JSON. A report that fails
 * returns an error, and its document is incomplete. A process can write any number of reports, one
 * at a time. Errors and notices stay in the list of base/error.h until the caller prints or drops
 * them.
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
 * Read and report a gate or, if it is NULL, all gates. A gate that cannot be read does not prevent
 * the report of the others: report_status() then returns an error at the end.
 */
int report_status(const char *gate);
int report_metrics(const char *gate); /* `export`; always text */

/*
 * Reports findings, after the time asked->watch_ns. Returns 0, 1 if a finding is WRONG, or a
 * negative errno.
 */
int report_doctor(const struct asked *asked);

/* all: text also has the lines whose counts are 0. */
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
	unsigned int top;   /* number of sources to print; 0 prints all */
};

/* The types of `order` and `top`. */
extern const struct value_type value_order, value_top;

int report_sources(const struct gate *gate, const struct sources_args *args);

/* --- A packet ------------------------------------------------------------------------------- */

/* The words that describe a packet. 0 means that a word was not given. */
struct check_args {
	struct sl_prefix source;
	struct sl_prefix to;
	unsigned int proto;    /* value_proto */
	unsigned int port;     /* value_port */
	unsigned int fragment; /* value_fragment */
	unsigned int vlan;     /* value_vlan */
	unsigned int bytes;    /* value_frame */
	unsigned int hook;     /* value_given_hook */
	bool syn;
	bool unread;
};

/* Types of its members, of which none stores 0. */
extern const struct value_type value_proto, value_port, value_fragment, value_vlan, value_frame;

/*
 * Builds the packet that the words describe, with the facts that the BPF program would see.
 */
int packet_build(const struct check_args *args, struct packet_args *ret);

int report_check(const struct gate *gate, const struct packet_args *packet);

#endif
