// SPDX-License-Identifier: GPL-2.0
#include "attach/shaping.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/netns.h"
#include "gate/policy.h"
#include "gate/rules.h"
#include "rules/limit.h"
#include "rules/value.h"

/* --- What is needed ------------------------------------------------------------------------- */

/* How many packets of one key wait at most: of a bit rate, of the usual length. */
static uint32_t packets_waiting(const struct sl_limit_spec *spec)
{
	double rate = rate_per_second(spec);

	if (spec->rate_unit == SL_RATE_BITS)
		rate /= 8 * FRAME_USUAL;
	rate = rate * spec->span_ns / NS_PER_SEC + 1;
	return rate < UINT32_MAX ? rate : UINT32_MAX;
}

static void spec_add(struct shaping *shaping, const struct sl_limit_spec *spec)
{
	uint32_t packets;

	if (spec->kind != SL_SHAPE)
		return;
	packets = packets_waiting(spec);
	shaping->any = true;
	if (shaping->need.flow_limit < packets)
		shaping->need.flow_limit = packets;
	if (shaping->need.horizon_ns < spec->span_ns)
		shaping->need.horizon_ns = spec->span_ns;
	shaping->need.limit = shaping->need.flow_limit;
}

void shaping_add(struct shaping *shaping, const struct rule *rule)
{
	for (unsigned int i = 0; i < rule->limits; i++)
		spec_add(shaping, &rule->limit[i].spec);
}

int shaping_read(const struct gate *gate, struct shaping *ret)
{
	const struct sl_policy **policies;
	struct shaping shaping = {0};
	unsigned int count;
	int status = rules_policies(gate, &policies, &count);

	if (status)
		return status;
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
			if (policies[i]->spec[slot].name[0])
				spec_add(&shaping, &policies[i]->spec[slot]);
	free(policies);
	*ret = shaping;
	return OK;
}

/* --- Hooks ---------------------------------------------------------------------------------- */

static int hooks_check(const struct gate *gate, const struct attachment *all,
			       unsigned int count, const struct attachment *more)
{
	const struct attachment *first = more;

	for (unsigned int i = 0; i < count; i++) {
		if (all[i].hook == HOOK_EGRESS)
			return OK;
		if (!first)
			first = &all[i];
	}
	if (!first || first->hook == HOOK_EGRESS)
		return OK;
	return failure("a limit that shapes has no effect on hook %s of %s: what a device receives "
		       "cannot be queued, only what it sends: 'sluice %s-g %s attach DEV hook "
		       "egress' first",
		       hook_names[first->hook], first->device, netns_typed(), gate->name);
}

int shaping_check_hooks(const struct gate *gate, const struct shaping *shaping,
				const struct attachment *more)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	int status = shaping->any ? attachments_read(gate, all, &count) : OK;

	return status || !shaping->any ? status : hooks_check(gate, all, count, more);
}

/* --- Devices -------------------------------------------------------------------------------- */

/* Reads the qdiscs of a device, in its own namespace. */
struct look {
	const struct shaping *shaping;
	const struct attachment *attachment;
	int status;
	bool holds;
	bool is_short; /* an fq is there, and holds less than is needed */
	struct fq_limits least;
	char *command;
};

static bool is_short(const struct fq_limits *least, const struct fq_limits *need)
{
	return least->flow_limit < need->flow_limit || least->limit < need->limit ||
	       least->horizon_ns < need->horizon_ns;
}

static void look_there(void *data)
{
	struct look *look = data;
	struct qdiscs qdiscs = QDISCS_NONE;
	struct device device = {.ifindex = look->attachment->ifindex};

	memcpy(device.name, look->attachment->device, sizeof(device.name));
	look->status = qdiscs_read(&device, &qdiscs);
	if (look->status)
		return;
	look->holds = fq_everywhere(&qdiscs);
	look->least = fq_least(&qdiscs);
	look->is_short = look->holds && is_short(&look->least, &look->shaping->need);
	if (!look->holds || look->is_short)
		look->command = fq_command(&device, &qdiscs, &look->shaping->need);
	qdiscs_free(&qdiscs);
}

/* A device that is gone, or in a namespace without a name, is taken to hold packets back. */
static struct look look_at(const struct shaping *shaping, const struct attachment *attachment)
{
	struct look look = {.shaping = shaping, .attachment = attachment, .holds = true};

	if (!attachment->device_gone)
		netns_run_in(attachment->netns, look_there, &look);
	return look;
}

int shaping_look(const struct shaping *shaping, const struct attachment *attachment,
			 struct holding *ret)
{
	struct look look = look_at(shaping, attachment);

	*ret = (struct holding){look.holds, look.is_short, look.command};
	return look.status;
}

int shaping_check_device(const struct shaping *shaping, const struct attachment *attachment,
				 bool may_lack)
{
	struct look look = {0};
	int status = OK;

	if (!shaping->any || attachment->hook != HOOK_EGRESS)
		return OK;
	look = look_at(shaping, attachment);
	if (look.status)
		return look.status;
	if (!look.holds && !may_lack)
		status = failure("%s has no qdisc fq, so limits that shape would hold no packet "
				 "back: '%s' first, or say no-fq",
				 attachment->device, look.command ?: "tc qdisc replace");
	else if (!look.holds)
		note("%s has no qdisc fq: limits that shape hold no packet back before '%s'",
		     attachment->device, look.command ?: "tc qdisc replace");
	else if (look.is_short)
		note("%s: its fq holds %u packets of a flow, and %u may wait within the horizon: "
		     "it drops the rest, unless '%s'",
		     attachment->device, look.least.flow_limit, shaping->need.flow_limit,
		     look.command ?: "tc qdisc replace");
	free(look.command);
	return status;
}

int shaping_check_planned(const struct gate *gate, const struct shaping *shaping,
				  const struct attachment *all, unsigned int count, bool may_lack)
{
	int status = shaping->any ? hooks_check(gate, all, count, NULL) : OK;

	for (unsigned int i = 0; !status && i < count; i++)
		status = shaping_check_device(shaping, &all[i], may_lack);
	return status;
}

int shaping_check(const struct gate *gate, const struct shaping *shaping, bool may_lack)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	int status = shaping->any ? attachments_read(gate, all, &count) : OK;

	if (status || !shaping->any)
		return status;
	return shaping_check_planned(gate, shaping, all, count, may_lack);
}
