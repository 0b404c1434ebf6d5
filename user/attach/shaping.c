// SPDX-License-Identifier: GPL-2.0
#include "attach/shaping.h"

#include <errno.h>
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
	_cleanup_free_ const struct sl_policy **policies = NULL;
	unsigned int count;
	int err = rules_policies(gate, &policies, &count);

	*ret = (struct shaping){0};
	for (unsigned int i = 0; !err && i < count; i++)
		for (unsigned int slot = 0; slot < SL_LIMITS_MAX; slot++)
			if (policies[i]->spec[slot].name[0])
				spec_add(ret, &policies[i]->spec[slot]);
	return err;
}

/* --- Hooks ---------------------------------------------------------------------------------- */

static int hooks_check(const struct gate *gate, const struct attachment *all, unsigned int count,
		       const struct attachment *more)
{
	const struct attachment *first = more;

	for (unsigned int i = 0; i < count; i++) {
		if (all[i].hook == HOOK_EGRESS)
			return 0;
		if (!first)
			first = &all[i];
	}
	if (!first || first->hook == HOOK_EGRESS)
		return 0;
	return error_add(
		EOPNOTSUPP, "needs-egress", NULL,
		"a limit that shapes has no effect on hook %s of %s: what a device receives "
		"cannot be queued, only what it sends: 'sluice %s-g %s attach DEV hook "
		"egress' first",
		hook_names[first->hook], first->device, netns_typed(), gate->name);
}

int shaping_check_hooks(const struct gate *gate, const struct shaping *shaping,
			const struct attachment *more)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	int err = shaping->any ? attachments_read(gate, all, &count) : 0;

	return err || !shaping->any ? err : hooks_check(gate, all, count, more);
}

/* --- Devices -------------------------------------------------------------------------------- */

static bool is_short(const struct fq_limits *least, const struct fq_limits *need)
{
	return least->flow_limit < need->flow_limit || least->limit < need->limit ||
	       least->horizon_ns < need->horizon_ns;
}

/* A device that is gone, or in a namespace without a name, is assumed to hold packets back. */
int shaping_look(const struct shaping *shaping, const struct attachment *a, struct holding *ret)
{
	_cleanup_qdiscs_ struct qdiscs qdiscs = QDISCS_NONE;
	struct device device = {.ifindex = a->ifindex};
	_cleanup_netns_ int back = -1;
	int err;

	*ret = (struct holding){.holds = true};
	memcpy(device.name, a->device, sizeof(device.name));
	if (a->device_gone || netns_visit(a->netns, &back))
		return 0;
	err = qdiscs_read(&device, &qdiscs);
	if (err)
		return err;
	ret->holds = fq_everywhere(&qdiscs);
	ret->least = fq_least(&qdiscs);
	ret->is_short = ret->holds && is_short(&ret->least, &shaping->need);
	if (!ret->holds || ret->is_short)
		ret->command = fq_command(&device, &qdiscs, &shaping->need);
	return 0;
}

int shaping_check_device(const struct shaping *shaping, const struct attachment *a, bool may_lack)
{
	struct holding fq;
	const char *command;
	int err;

	if (!shaping->any || a->hook != HOOK_EGRESS)
		return 0;
	err = shaping_look(shaping, a, &fq);
	command = fq.command ?: "tc qdisc replace";
	if (!err && !fq.holds && !may_lack)
		err = error_add(EOPNOTSUPP, "no-fq", NULL,
				"%s has no qdisc fq, so limits that shape would hold no packet "
				"back: '%s' first, or say no-fq",
				a->device, command);
	else if (!err && !fq.holds)
		error_notice(
			"no-fq", NULL,
			"%s has no qdisc fq: limits that shape hold no packet back before '%s'",
			a->device, command);
	else if (!err && fq.is_short)
		error_notice("fq-short", a->device,
			     "its fq holds %u packets of a flow, and %u may wait within the "
			     "horizon: it drops the rest, unless '%s'",
			     fq.least.flow_limit, shaping->need.flow_limit, command);
	free(fq.command);
	return err;
}

int shaping_check_planned(const struct gate *gate, const struct shaping *shaping,
			  const struct attachment *all, unsigned int count, bool may_lack)
{
	int err = shaping->any ? hooks_check(gate, all, count, NULL) : 0;

	for (unsigned int i = 0; !err && i < count; i++)
		err = shaping_check_device(shaping, &all[i], may_lack);
	return err;
}

int shaping_check(const struct gate *gate, const struct shaping *shaping, bool may_lack)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	int err = shaping->any ? attachments_read(gate, all, &count) : 0;

	return err || !shaping->any ? err
				    : shaping_check_planned(gate, shaping, all, count, may_lack);
}
