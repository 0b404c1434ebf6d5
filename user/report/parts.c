// SPDX-License-Identifier: GPL-2.0
#include "report/parts.h"

#include <stdio.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "doctor/findings.h"
#include "gate/lists.h"
#include "gate/pins.h"
#include "gate/policy.h"
#include "keep/lock_file.h"
#include "migrate/open.h"
#include "program/print_rules.h"
#include "program/writer.h"
#include "rules/limit.h"
#include "rules/limit_words.h"

/* --- Gates ---------------------------------------------------------------------------------- */

int gate_open_named(struct gate *gate, const char *name)
{
	struct gate_names names = {.count = 0};
	bool exists = name;
	int err = exists ? 0 : gate_exists(GATE_USUAL, &exists);

	if (!err && !exists)
		err = gates_list(NULL, &names);
	if (names.count == 1)
		name = names.first;
	return err ?: gate_open(gate, name ?: GATE_USUAL, GATE_READ, NULL);
}

bool keeper_find(const char *gate, struct lock_holder *ret, char text[KEPT_TEXT])
{
	char process[32] = "another process";

	if (lock_file_find(LOCK_KEEP, gate, ret) != LOCK_HELD)
		return false;
	if (ret->pid)
		snprintf(process, sizeof(process), "process %d", ret->pid);
	snprintf(text, KEPT_TEXT, "kept by %s%s%s", process, *ret->path ? " as " : "",
		 name_shown(ret->path));
	return true;
}

void print_finding(const struct finding *finding, bool of_several, const char *indent)
{
	print_object(NULL);
	print_text("%s", indent);
	print_string("severity", "%s: ", severity_names[finding->severity]);
	if (of_several && finding->gate && strcmp(finding->gate, finding->object))
		print_text("gate '%s': ", finding->gate);
	print_string("gate", NULL, finding->gate);
	print_string("object", "%s: ", finding->object);
	print_string("text", "%s", finding->text);
	print_string("id", " [%s]\n", finding->id);
	print_text("%s", indent);
	print_string("advice", "    %s\n", finding->advice);
	print_end();
}

/* --- Attachments ---------------------------------------------------------------------------- */

void print_attachment(const struct attachment *a, const char *state)
{
	char netns[NETNS_NAME], slot[SLOT_TEXT];

	print_string("device", NULL, a->device);
	print_number("ifindex", NULL, a->ifindex);
	print_string("hook", NULL, hook_names[a->hook]);
	print_string("mode", NULL, mode_names[a->mode]);
	print_known("priority", NULL, a->priority, a->priority);
	print_string("array", NULL, *a->slot.path ? slot_format(&a->slot, slot) : NULL);
	print_number("program_id", NULL, a->program_id);
	print_string("state", NULL, state ?: a->program_id ? "attached" : "gone");
	print_string("gone", NULL, a->program_id ? NULL : a->device_gone ? "device" : "filter");
	print_string("netns", NULL, netns_name(a->netns, netns) ? netns : NULL);
	print_number("netns_inode", NULL, a->netns);
}

bool print_attach_command(const struct attachment *a, struct gate_sizes sizes, const char *gate,
			  const char *lead)
{
	enum mode mode = attachment_mode(a);
	char option[NETNS_OPTION], words[MODE_TEXT];

	netns_option(a->netns, netns_home(), option);
	if ((!*option && a->netns != netns_home()) || (mode == MODE_ARRAY && !*a->slot.path))
		return false;
	print_text("%ssluice %s%sattach %s", lead, option, gate_option(gate),
		   operand_typed(a->device));
	if (a->hook != HOOK_XDP)
		print_text(" hook %s", hook_names[a->hook]);
	if (mode != MODE_AUTO)
		print_text(" %s", mode_format(mode, &a->slot, a->priority, words));
	for (int i = 0; i < SIZES; i++)
		if (size_specified(&sizes, i))
			print_text(" %s %u", size_names[i], size_specified(&sizes, i));
	print_text("\n");
	return true;
}

/* --- Sources and limits --------------------------------------------------------------------- */

void print_packets(const char *key, const struct sl_cell *cell)
{
	print_row(key);
	print_number("packets", NULL, cell->packets);
	print_number("bytes", NULL, cell->bytes);
	print_end();
}

const char *unit_name(const struct sl_limit *limit)
{
	return limit->by_bytes ? "bytes" : "packets";
}

const char *unit_of(const struct sl_limit *limit, uint64_t count)
{
	return limit->by_bytes ? plural(count, "byte", "bytes")
			       : plural(count, "packet", "packets");
}

void print_limit_state(const struct source *source, const struct sl_limit *compiled,
		       const struct limit_state *state)
{
	static const enum spec_field fields[] = {SPEC_WINDOW, SPEC_GROUPS, SPEC_SHAPE, SPEC_HORIZON,
						 SPEC_MATCH,  SPEC_KEY,	   SPEC_ACTION};
	struct limit limit = source_limit(source, compiled);
	double rate = rate_per_second(&limit.spec);
	bool known = state->known, can_wait = known && !state->never;
	char label[LIMIT_LABEL], text[SPEC_TEXT];

	print_string("name", NULL, limit_label(&limit.spec, label));
	print_string("kind", NULL, kind_names[compiled->kind]);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char *words =
			spec_format_whole(&limit, &source->policy->prefix, fields[i], text);

		if (words)
			print_string(spec_names[fields[i]], NULL, words);
	}
	print_shared(&limit);
	if (rate == (uint64_t)rate) /* print 1000 instead of 1000.0 */
		print_number("rate", NULL, rate);
	else
		print_real("rate", rate);
	print_number("burst", NULL, burst_units(compiled));
	print_string("unit", NULL, unit_name(compiled));
	if (known)
		print_bool("allowed", state->reason < SL_FIRST_DROP);
	else
		print_null("allowed");
	print_string("reason", NULL, known ? reason_names[state->reason] : NULL);
	print_known("remaining", NULL, known, state->remaining);
	if (compiled->shared)
		print_known("owed", NULL, known, state->owed);
	print_known("retry_after_ms", NULL, can_wait, state->retry_after_ms);
	print_known("remaining_after_waiting", NULL, can_wait, state->remaining_after_waiting);
	print_known("full_in_ms", NULL, known, state->full_in_ms);
	print_known("blocked_ms", NULL, known, state->blocked_ms);
}

void print_judgement(const struct gate *gate, const struct judgement *judgement)
{
	char text[PREFIX_TEXT];
	const char *prefix = judgement->found ? prefix_format(&judgement->prefix, text) : NULL;

	print_string("policy", NULL, judgement->access ? access_words[judgement->access] : prefix);
	print_string("prefix", NULL, prefix);
	if (judgement->lists) {
		struct sl_list_info lists[SL_LIST_PLACES];

		lists_copy(gate, lists);
		print_lists(lists, judgement->lists);
	}
	if (judgement->access && judgement->until)
		print_real("seconds_left", until_left_ns(judgement->until) / 1e9);
}
