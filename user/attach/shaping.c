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
	uint32_t packets = spec->kind == SL_SHAPE ? packets_waiting(spec) : 0;

	if (spec->kind != SL_SHAPE)
		return;
	shaping->any = true;
	if (shaping->need.flow_limit < packets)
		shaping->need.limit = shaping->need.flow_limit = packets;
	if (shaping->need.horizon_ns < spec->span_ns)
		shaping->need.horizon_ns = spec->span_ns;
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

/* --- Devices -------------------------------------------------------------------------------- */

int shaping_look(const struct shaping *shaping, const struct attachment *a, struct holding *ret)
{
	_cleanup_qdiscs_ struct qdiscs qdiscs = QDISCS_NONE;
	_cleanup_netns_ int back = -1;
	int err;

	*ret = (struct holding){.holds = true};
	if (a->device_gone || netns_visit(a->netns, &back))
		return 0;
	err = qdiscs_read(a->ifindex, a->device, &qdiscs);
	if (err)
		return err;
	ret->holds = fq_everywhere(&qdiscs);
	ret->least = fq_least(&qdiscs, NULL);
	ret->is_short = ret->holds && !fq_holds(&ret->least, &shaping->need);
	if (!ret->holds || ret->is_short)
		ret->command = fq_command(a->device, &qdiscs, &shaping->need);
	return 0;
}

static int device_check(const struct shaping *shaping, const struct attachment *a, bool may_lack)
{
	_cleanup_free_ char *owned = NULL;
	const char *command;
	struct holding fq;
	int err = a->hook == HOOK_EGRESS ? shaping_look(shaping, a, &fq) : 0;

	if (err || a->hook != HOOK_EGRESS)
		return err;
	owned = fq.command;
	command = owned ?: "tc qdisc replace";
	if (!fq.holds && !may_lack)
		return error_add(EOPNOTSUPP, "no-fq", NULL,
				 "%s has no qdisc fq, so limits that shape would hold no packet "
				 "back: '%s' first, or say no-fq",
				 a->device, command);
	if (!fq.holds)
		error_notice(
			"no-fq", NULL,
			"%s has no qdisc fq: limits that shape hold no packet back before '%s'",
			a->device, command);
	else if (fq.is_short)
		error_notice("fq-short", a->device,
			     "its fq holds %u packets of a flow, and %u may wait within the "
			     "horizon: it drops the rest, unless '%s'",
			     fq.least.flow_limit, shaping->need.flow_limit, command);
	return 0;
}

/* Fails if there are attachments, and all are on other hooks than egress. */
static int hooks_check(const struct gate *gate, const struct attachment *all, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (all[i].hook == HOOK_EGRESS)
			return 0;
	if (!count)
		return 0;
	return error_add(
		EOPNOTSUPP, "needs-egress", NULL,
		"a limit that shapes has no effect on hook %s of %s: what a device receives "
		"cannot be queued, only what it sends: 'sluice %s-g %s attach DEV hook "
		"egress' first",
		hook_names[all->hook], all->device, netns_typed(), gate->name);
}

int shaping_check(const struct gate *gate, const struct shaping *shaping,
		  const struct attachment *all, unsigned int count, bool may_lack)
{
	struct attachment present[ATTACHMENTS_MAX];
	int err = shaping->any && !all ? attachments_read(gate, present, &count) : 0;

	if (err || !shaping->any)
		return err;
	all = all ?: present;
	err = hooks_check(gate, all, count);
	for (unsigned int i = 0; !err && i < count; i++)
		err = device_check(shaping, &all[i], may_lack);
	return err;
}

int shaping_check_new(const struct gate *gate, const struct shaping *shaping,
		      const struct attachment *a, bool may_lack)
{
	struct attachment all[ATTACHMENTS_MAX + 1] = {*a};
	unsigned int count;
	int err = attachments_read(gate, all + 1, &count);

	return err ?: hooks_check(gate, all, count + 1) ?: device_check(shaping, a, may_lack);
}
