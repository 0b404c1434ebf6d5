/* SPDX-License-Identifier: GPL-2.0 */
/* Program: prints rules: as the commands that make them, and as JSON. */
#ifndef SLUICE_PRINT_RULES_H
#define SLUICE_PRINT_RULES_H

#include "program/writer.h"
#include "rules/ruleset.h"

/* What the printed lines of a sequence of rules have in common. */
struct rules_shown {
	uint64_t ends; /* the lists whose end a line has set */
	bool lacks_fq; /* lines of limits that shape need `no-fq` */
};

/*
 * Prints a rule as commands, one a line, each after `lead`:
 *
 *   sluice -g edge set 203.0.113.0/24 name dns rate 200pps burst 50 match udp port 53 inherit yes
 *   sluice -g edge newcomers 203.0.113.0/24 rate 10kpps burst 20000
 *   sluice -g edge deny 203.0.113.9 until 2026-11-22T13:00:00Z as /etc/drop.txt
 *
 * lists: the lists of the rule's bits; NULL: it has none. all: the lines of all rules are run
 * together; NULL: each line is run alone, on a gate that has the lists.
 */
void print_commands(const struct rule *rule, const struct sl_list_info *lists,
		    struct rules_shown *all, const char *gate, const char *lead);

/*
 * Prints a rule as JSON: {"prefix", "list", "seconds_left", "lists", "list_seconds_left", "limits",
 * "inherit", "newcomers"}. Keys without a value are omitted. "list" is the access by hand. rule:
 * NULL: null.
 */
void print_rule(const char *key, const struct rule *rule, const struct sl_list_info *lists);

/*
 * Print parts of a rule as JSON: the fields of a limit, its `shared`, an array of limits, and a
 * budget.
 */
void print_limit_fields(const struct limit *limit, const struct sl_prefix *prefix);
void print_shared(const struct limit *limit);
void print_limits(const char *key, const struct limit *limits, unsigned int count,
		  const struct sl_prefix *prefix);
void print_budget_fields(const struct sl_limit_spec *budget);

/* Prints the names of the lists of `bits`: {"lists": [...]}. */
void print_lists(const struct sl_list_info *lists, uint64_t bits);

#endif
