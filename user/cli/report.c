// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"
#include "config/config.h"
#include "doctor/findings.h"
#include "gate/counters.h"

void print_attachment(const struct attachment *a, const char *state)
{
	char netns[NETNS_NAME];

	print_string("device", NULL, a->device);
	print_number("ifindex", NULL, a->ifindex);
	print_string("hook", NULL, hook_names[a->hook]);
	print_string("mode", NULL, mode_names[a->mode]);
	print_number("program_id", NULL, a->program_id);
	print_string("state", NULL, state ?: a->program_id ? "attached" : "gone");
	print_string("gone", NULL, a->program_id ? NULL : a->device_gone ? "device" : "filter");
	print_string("netns", NULL, netns_name(a->netns, netns) ? netns : NULL);
	print_number("netns_inode", NULL, a->netns);
}

void print_attachment_of(const struct gate *gate, const struct attachment *a, const char *state,
			 const char *what)
{
	print_object(NULL);
	print_attachment(a, state);
	print_string("gate", NULL, gate->name);
	print_text("%s: %s gate '%s', hook %s", name_shown(a->device), what, gate->name,
		   hook_names[a->hook]);
}

void print_packets(const char *key, const struct sl_cell *cell)
{
	print_object(key);
	print_number("packets", NULL, cell->packets);
	print_number("bytes", NULL, cell->bytes);
	print_end();
}

/* --- Sources -------------------------------------------------------------------------------- */

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
	if (rate == (uint64_t)rate) /* 1000 and not 1000.0 */
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

/* --- Findings ------------------------------------------------------------------------------- */

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
