// SPDX-License-Identifier: GPL-2.0
#include "advice.h"

#include <netinet/in.h>
#include <stdlib.h>

#include "credit.h"
#include "prefix.h"
#include "rules.h"
#include "units.h"

/* --- All limits ----------------------------------------------------------------------------- */

/* The first limit that a search found. */
struct found {
	const struct sl_policy *policy;
	struct limit limit;
	bool more; /* there are others */
};

typedef bool limit_test(const struct limit *limit, const void *data);

static void limit_try(const struct sl_policy *policy, const struct limit *limit, limit_test *test,
		      const void *data, struct found *found)
{
	/* one that only observes stops nothing */
	if (!limit->spec.name[0] || limit->spec.action == SL_ACTION_OBSERVE || !test(limit, data))
		return;
	if (found->policy) {
		found->more = true;
		return;
	}
	found->policy = policy;
	found->limit = *limit;
}

static void policy_search(const struct sl_policy *policy, limit_test *test, const void *data,
			  struct found *found)
{
	const struct limit newcomers = {policy->newcomers_spec, {.fact = SL_FACT_ANY}};

	for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
		limit_try(policy, &(struct limit){policy->spec[slot], policy->match[slot]}, test,
			  data, found);
	limit_try(policy, &newcomers, test, data, found);
}

/* Searches the limits in force for those that the test is true of. None: found.policy is NULL. */
static enum status limits_search(const struct gate *gate, limit_test *test, const void *data,
				 struct found *ret)
{
	const struct sl_policy **policies;
	struct found found = {0};
	unsigned int count;
	enum status status = rules_policies(gate, &policies, &count);

	if (status)
		return status;
	for (unsigned int i = 0; i < count; i++)
		policy_search(policies[i], test, data, &found);
	free(policies);
	*ret = found;
	return OK;
}

/* --- Frames of the device ------------------------------------------------------------------- */

static bool burst_is_short(const struct limit *limit, const void *data)
{
	const struct device *device = data;

	return !limit_holds_frame(limit, device_frame_bytes(device));
}

enum status advice_frames(const struct gate *gate, const struct device *device, bool attached)
{
	char buffer[PREFIX_TEXT], burst[UNITS_TEXT];
	const char *prefix;
	struct found found;
	enum status status = limits_search(gate, burst_is_short, device, &found);
	const char *format = "%s, limit '%s' in gate '%s': burst %s is too little for a frame of "
			     "%s (%u B): raise the burst%s";

	if (status || !found.policy)
		return status;
	prefix = prefix_format(&found.policy->prefix, buffer);
	burst_format(&found.limit.spec, burst);
	if (!attached)
		return fail(format, prefix, found.limit.spec.name, gate->name, burst, device->name,
			    device_frame_bytes(device), " first");
	note(format, prefix, found.limit.spec.name, gate->name, burst, device->name,
	     device_frame_bytes(device), "");
	return OK;
}

/* --- Merged packets ------------------------------------------------------------------------- */

/* The most that the kernel merges of one TCP stream, as frames of the usual size. */
#define MERGED_FRAMES 45

static bool may_be_tcp(const struct sl_match *match)
{
	return match->fact == SL_FACT_ANY || match->fact == SL_FACT_TCP ||
	       (match->fact == SL_FACT_PROTO && match->proto == IPPROTO_TCP);
}

static bool burst_is_short_of_merged(const struct limit *limit, const void *data)
{
	const struct machine *machine = data;
	struct sl_limit compiled = limit_compile(limit, SL_IPV4, machine);

	return may_be_tcp(&limit->match) &&
	       credit_cost(&compiled, MERGED_FRAMES, MERGED_FRAMES * FRAME_USUAL) > compiled.burst;
}

static enum status merged_say(const struct gate *gate, const struct attachment *a)
{
	char prefix[PREFIX_TEXT], burst[UNITS_TEXT];
	struct found found;
	enum status status = limits_search(gate, burst_is_short_of_merged, &gate->machine, &found);

	if (!status && found.policy)
		note("%s: on hook %s the kernel merges TCP packets, up to %d (64 KiB) into one, "
		     "and burst %s of %s, limit '%s', drops such as oversize%s",
		     a->device, hook_names[a->hook], MERGED_FRAMES,
		     burst_format(&found.limit.spec, burst),
		     prefix_format(&found.policy->prefix, prefix), found.limit.spec.name,
		     found.more ? "; other limits do, too" : "");
	return status;
}

/*
 * Generic XDP runs behind GRO, and a tap's native XDP behind whoever sends: a merged packet of many segments is one to
 * both, and nothing there says how many it was.
 */
static enum status merged_as_one_say(const struct attachment *a)
{
	struct device device;
	enum status status = device_find(a->device, &device);

	if (!status && (a->mode == MODE_GENERIC || device.is_tap))
		note("%s: in mode %s%s, a packet that was merged of many (GRO, GSO) counts as one: "
		     "hook ingress counts each",
		     a->device, mode_names[a->mode], device.is_tap ? " on a tap" : "");
	return status;
}

/* --- Two hooks ------------------------------------------------------------------------------ */

/* The other hook that sees what this one sees. */
static bool hooks_meet(enum hook a, enum hook b)
{
	return (a == HOOK_XDP && b == HOOK_INGRESS) || (a == HOOK_INGRESS && b == HOOK_XDP);
}

static enum status twice_say(const struct gate *gate, const struct attachment *a)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	enum status status = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !status && i < count; i++)
		if (all[i].program_id && all[i].netns == a->netns && all[i].ifindex == a->ifindex &&
		    hooks_meet(all[i].hook, a->hook))
			note("%s: attached to gate '%s' on hooks xdp and ingress: what it receives "
			     "is charged, and counted, twice",
			     a->device, gate->name);
	return status;
}

/* --- Newcomers ------------------------------------------------------------------------------ */

/* As the packet path's policy_charge, which asks the budget in place of a limit that drops or blocks. */
static bool budget_is_idle(const struct rule *rule)
{
	bool idle = rule->newcomers && rule->limits;

	for (unsigned int i = 0; i < rule->limits; i++)
		idle &= rule->limit[i].spec.action == SL_ACTION_OBSERVE;
	return idle;
}

void advice_newcomers(const struct rule *rules, unsigned int count)
{
	const struct rule *first = NULL;
	char prefix[PREFIX_TEXT];
	unsigned int idle = 0;

	for (unsigned int i = 0; i < count; i++)
		if (budget_is_idle(&rules[i]) && !idle++)
			first = &rules[i];
	if (first)
		note("%s: the newcomers' budget drops no packet as long as all limits only "
		     "observe%s",
		     prefix_format(&first->prefix, prefix),
		     idle > 1 ? "; other prefixes have such budgets, too" : "");
}

/* --- Attaching ------------------------------------------------------------------------------ */

enum status advice_attached(const struct gate *gate, const struct attachment *a)
{
	enum status status = twice_say(gate, a);

	if (status)
		return status;
	return a->hook == HOOK_XDP ? merged_as_one_say(a) : merged_say(gate, a);
}
