// SPDX-License-Identifier: GPL-2.0
#include "rule_json.h"

#include "prefix.h"
#include "spec.h"
#include "units.h"
#include "uptime.h"

json_t *limit_json(const struct limit *limit, const struct sl_prefix *prefix)
{
	json_t *object = json_object();
	char text[SPEC_TEXT];

	for (int field = 0; field < SPEC_FIELDS; field++)
		json_object_set_new(object, spec_names[field],
				    json_string(spec_format_whole(limit, prefix, field, text)));
	return object;
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
	json_t *object = json_object(), *limits = json_array();
	char prefix[PREFIX_TEXT];

	json_object_set_new(object, "prefix", json_string(prefix_format(&rule->prefix, prefix)));
	if (rule->list)
		json_object_set_new(object, "list",
				    json_string(rule->list == SL_LIST_ALLOW ? "allow" : "deny"));
	if (rule->list && rule->until)
		json_object_set_new(object, "seconds_left",
				    json_real(until_left_ns(rule->until) / 1e9));
	if (rule->lists)
		json_object_set_new(object, "lists", lists_json(lists, rule->lists));
	for (int i = 0; i < rule->limits; i++)
		json_array_append_new(limits, limit_json(&rule->limit[i], &rule->prefix));
	json_object_set_new(object, "limits", limits);
	if (rule->limits && rule->prefix.bits)
		json_object_set_new(object, "inherit", json_boolean(rule_inherits(rule)));
	if (rule->newcomers)
		json_object_set_new(object, "newcomers", budget_json(rule->newcomers));
	return object;
}
