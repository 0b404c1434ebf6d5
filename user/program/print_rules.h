/* SPDX-License-Identifier: GPL-2.0 */
/* Program: prints rules as the commands that add them, or as JSON. */
#ifndef SLUICE_PRINT_RULES_H
#define SLUICE_PRINT_RULES_H

#include "program/writer.h"
#include "rules/ruleset.h"

/* State of print_commands() for several rules whose commands will be run together. */
struct rules_shown {
	uint64_t ends; /* bit i: a printed command specifies when list i ends */
	/* a device lacks qdisc fq, so commands with limits that shape need `no-fq` */
	bool lacks_fq;
};

/*
 * Prints the commands that add a rule, one per line, with `lead` before each:
 *
 *  sluice -g edge set 203.0.113.0/24 name dns rate 200pps burst 50 match udp port 53 inherit yes
 *  sluice -g edge newcomers 203.0.113.0/24 rate 10kpps burst 20000
 *  sluice -g edge deny 203.0.113.9 until 2026-11-22T13:00:00Z as /etc/drop.txt
 *
 * lists: array that the rule's list bits index; NULL if no bit is set. all: state of several rules
 * whose commands will be run together; NULL if each command will be run alone, on a gate that
 * already has these lists.
 */
void print_commands(const struct rule *rule, const struct sl_list_info *lists,
		    struct rules_shown *all, const char *gate, const char *lead);

/*
 * Prints a rule as JSON: {"prefix", "list", "seconds_left", "lists", "list_seconds_left", "limits",
 * "inherit", "newcomers"}. Omits keys without a value. "list" is the access of a runtime entry:
 * "allow" or "deny". If `rule` is NULL, prints null.
 */
void print_rule(const char *key, const struct rule *rule, const struct sl_list_info *lists);

/*
 * Print as JSON: the fields of a limit, its field "shared", an array of limits, or the fields of a
 * budget.
 */
void print_limit_fields(const struct limit *limit, const struct sl_prefix *prefix);
void print_shared(const struct limit *limit);
void print_limits(const char *key, const struct limit *limits, unsigned int count,
		  const struct sl_prefix *prefix);
void print_budget_fields(const struct sl_limit_spec *budget);

/* Prints as JSON the names of the lists whose bits are set: "lists": [...]. */
void print_lists(const struct sl_list_info *lists, uint64_t bits);

#endif
