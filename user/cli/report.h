/* SPDX-License-Identifier: GPL-2.0 */
/* Cli: prints attachments, sources, limits and findings, for several commands. */
#ifndef SLUICE_REPORT_H
#define SLUICE_REPORT_H

#include "attach/attachment.h"
#include "gate/gate.h"
#include "program/print_rules.h"
#include "program/writer.h"
#include "rules/ruleset.h"
#include "rules/value.h"
#include "state/source.h"

/*
 * Prints JSON: "device", "ifindex", "hook", "mode", "program_id", "netns", "netns_inode", "state"
 * (attached, gone) and "gone" (device, filter, null). state: replaces "state"; NULL: it is read.
 */
void print_attachment(const struct attachment *attachment, const char *state);

/*
 * Prints an attachment that a command made or removed, an object and "eth0: attached to gate
 * 'main', hook xdp". The caller ends the object and the line.
 */
void print_attachment_of(const struct gate *gate, const struct attachment *attachment,
			 const char *state, const char *what);

/* Prints JSON: {"packets", "bytes"}. */
void print_packets(const char *key, const struct sl_cell *cell);

/*
 * Prints JSON: the rule in force of a source: "policy", as in stats ("allow" or "deny" for an
 * entry), and "prefix", which are null if no rule covers the source; "lists" and "seconds_left" of
 * an entry.
 */
void print_judgement(const struct gate *gate, const struct judgement *judgement);

/*
 * Prints JSON: the words of a limit, "kind", "rate" (per second), "burst", "unit", and the state:
 * "allowed", "reason", "remaining", "retry_after_ms", "remaining_after_waiting", "full_in_ms",
 * "blocked_ms", "owed". The state is null if the key is not known.
 */
void print_limit_state(const struct source *source, const struct sl_limit *limit,
		       const struct limit_state *state);

/* Returns "packets", or "bytes" of a bit rate; unit_of(): "packet" after 1. */
const char *unit_name(const struct sl_limit *limit);
const char *unit_of(const struct sl_limit *limit, uint64_t count);

struct finding;

/* Prints a finding in two lines. of_several: also the gate, unless it is the object. */
void print_finding(const struct finding *finding, bool of_several, const char *indent);

#endif
