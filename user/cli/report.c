// SPDX-License-Identifier: GPL-2.0
#include "cli/report.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "config/config.h"
#include "gate/counters.h"
#include "gate/change.h"
#include "program/writer.h"
#include "rules/limit_words.h"
#include "rules/lists.h"
#include "rules/prefix.h"
#include "rules/value.h"

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

/* What a kind of limit does not have is left out. */
static void words_set(json_t *object, const char *key, const char *words)
{
	if (words)
		json_object_set_new(object, key, json_string(words));
}

static json_t *number_json(bool known, uint64_t number)
{
	return known ? json_integer(number) : json_null();
}

json_t *limit_state_json(const struct source *source, const struct sl_limit *compiled,
			 const struct limit_state *state)
{
	struct limit limit = source_limit(source, compiled);
	char label[LIMIT_LABEL];
	static const enum spec_field fields[] = {SPEC_NAME,  SPEC_WINDOW,  SPEC_GROUPS,
						 SPEC_SHAPE, SPEC_HORIZON, SPEC_MATCH,
						 SPEC_KEY,   SPEC_ACTION};
	double rate = rate_per_second(&limit.spec);
	bool known = state->known;
	json_t *object = json_object();
	char text[SPEC_TEXT];

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		words_set(object, spec_names[fields[i]],
			  spec_format_whole(&limit, &source->policy->prefix, fields[i], text));
	if (limit.spec.shared)
		json_object_set_new(object, spec_names[SPEC_SHARED], shared_json(&limit));
	json_object_set_new(object, "name", json_string(limit_label(&limit.spec, label)));
	json_object_set_new(object, "kind", json_string(kind_names[compiled->kind]));
	json_object_set_new(object, "rate", /* 1000 and not 1000.0 */
			    rate == (json_int_t)rate ? json_integer(rate) : json_real(rate));
	json_object_set_new(object, "burst", json_integer(burst_units(compiled)));
	json_object_set_new(object, "unit", json_string(unit_name(compiled)));
	json_object_set_new(object, "allowed",
			    known ? json_boolean(state->reason < SL_FIRST_DROP) : json_null());
	json_object_set_new(object, "reason",
			    known ? json_string(reason_names[state->reason]) : json_null());
	json_object_set_new(object, "remaining", number_json(known, state->remaining));
	if (compiled->shared)
		json_object_set_new(object, "owed", number_json(known, state->owed));
	json_object_set_new(object, "retry_after_ms",
			    number_json(known && !state->never, state->retry_after_ms));
	json_object_set_new(object, "remaining_after_waiting",
			    number_json(known && !state->never, state->remaining_after_waiting));
	json_object_set_new(object, "full_in_ms", number_json(known, state->full_in_ms));
	json_object_set_new(object, "blocked_ms", number_json(known, state->blocked_ms));
	return object;
}

void judgement_json(const struct gate *gate, const struct judgement *judgement, json_t *object)
{
	char text[PREFIX_TEXT];

	json_t *prefix = judgement->found ? json_string(prefix_format(&judgement->prefix, text))
					  : json_null();

	json_object_set_new(object, "policy",
			    judgement->access ? json_string(access_words[judgement->access])
					      : json_incref(prefix));
	json_object_set_new(object, "prefix", prefix);
	if (judgement->lists) {
		struct sl_list_info lists[SL_LIST_PLACES];

		lists_copy(gate, lists);
		json_object_set_new(object, "lists", lists_json(lists, judgement->lists));
	}
	if (judgement->access && judgement->until)
		json_object_set_new(object, "seconds_left",
				    json_real(until_left_ns(judgement->until) / 1e9));
}

/* --- Attachments ---------------------------------------------------------------------------- */

json_t *attachment_json(const struct attachment *a)
{
	char netns[NETNS_NAME];
	bool named = netns_name(a->netns, netns);
	const char *gone = a->program_id ? NULL : a->device_gone ? "device" : "filter";

	return json_pack("{s:o, s:i, s:s, s:s, s:i, s:s, s:s?, s:o, s:I}", "device",
			 json_name(a->device), "ifindex", (int)a->ifindex, "hook",
			 hook_names[a->hook], "mode", mode_names[a->mode], "program_id",
			 (int)a->program_id, "state", a->program_id ? "attached" : "gone", "gone",
			 gone, "netns", named ? json_name(netns) : json_null(), "netns_inode",
			 (json_int_t)a->netns);
}

/* --- Rules ---------------------------------------------------------------------------------- */

json_t *limit_json(const struct limit *limit, const struct sl_prefix *prefix)
{
	json_t *object = json_object();
	char text[SPEC_TEXT];

	for (int field = 0; field < SPEC_SHARED; field++)
		words_set(object, spec_names[field], spec_format_whole(limit, prefix, field, text));
	if (limit->spec.shared)
		json_object_set_new(object, spec_names[SPEC_SHARED], shared_json(limit));
	return object;
}

json_t *limit_list_json(const struct limit *limits, unsigned int count,
			const struct sl_prefix *prefix)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < count; i++)
		json_array_append_new(array, limit_json(&limits[i], prefix));
	return array;
}

json_t *budget_json(const struct limit *budget)
{
	char rate[UNITS_TEXT], burst[UNITS_TEXT];

	return json_pack("{s:s, s:s}", spec_names[SPEC_RATE], rate_format(&budget->spec, rate),
			 spec_names[SPEC_BURST], burst_format(&budget->spec, burst));
}

json_t *lists_json(const struct sl_list_info *lists, uint64_t bits)
{
	json_t *names = json_array();

	for (; bits; bits &= bits - 1)
		json_array_append_new(names, json_string(lists[__builtin_ctzll(bits)].name));
	return names;
}

json_t *rule_json(const struct rule *rule, const struct sl_list_info *lists)
{
	json_t *object = json_object();
	char prefix[PREFIX_TEXT];

	json_object_set_new(object, "prefix", json_string(prefix_format(&rule->prefix, prefix)));
	if (rule->access)
		json_object_set_new(object, "list", json_string(access_words[rule->access]));
	if (rule->access && rule->until)
		json_object_set_new(object, "seconds_left",
				    json_real(until_left_ns(rule->until) / 1e9));
	if (rule->lists)
		json_object_set_new(object, "lists", lists_json(lists, rule->lists));
	if (rule->list_until)
		json_object_set_new(object, "list_seconds_left",
				    json_pack("{s:f}", lists[rule->timed].name,
					      until_left_ns(rule->list_until) / 1e9));
	json_object_set_new(object, "limits",
			    limit_list_json(rule->limit, rule->limits, &rule->prefix));
	if (rule->limits && rule->prefix.bits)
		json_object_set_new(object, "inherit", json_boolean(rule_inherits(rule)));
	if (rule->newcomers)
		json_object_set_new(object, "newcomers", budget_json(rule->newcomers));
	return object;
}

/* --- JSON ----------------------------------------------------------------------------------- */

json_t *json_cell(const struct sl_cell *cell)
{
	return json_pack("{s:I, s:I}", "packets", (json_int_t)cell->packets, "bytes",
			 (json_int_t)cell->bytes);
}

json_t *json_name(const char *name)
{
	return json_string(name) ?: json_string(name_shown(name));
}

int json_print(json_t *document)
{
	if (print_tree(NULL, document))
		return failure("cannot write JSON: %s", why(ENOMEM));
	return 0;
}

int json_print_item(json_t *item, bool is_first)
{
	bool is_whole = item && print_is_whole();
	int err = -1;

	fputs(is_first ? "\n    " : ",\n    ", stdout);
	if (is_whole)
		err = json_dumpf(item, stdout, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
	json_decref(item);
	if (err && !ferror(stdout))
		return failure("cannot write JSON: %s", why(ENOMEM));
	return err ? FAILED : OK;
}
