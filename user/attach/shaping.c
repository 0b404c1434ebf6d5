// SPDX-License-Identifier: GPL-2.0
#include "attach/shaping.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "attach/netlink.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/policy.h"
#include "gate/rules.h"
#include "rules/limit.h"
#include "rules/value.h"

#define NS_PER_US ((uint64_t)1000)

/* Default options of a new fq, equal in all kernels since 5.8. */
static const struct fq_limits fq_default = {.limit = 10000,
					    .flow_limit = 100,
					    .horizon_ns = 10000000 * NS_PER_US,
					    .horizon_drop = true};

/* --- Messages of the kernel ----------------------------------------------------------------- */

/*
 * Stores the value of an attribute. Returns false if the attribute is missing, or its value has
 * another length.
 */
static bool attr_number(const struct nlattr *attr, uint32_t *ret)
{
	if (!attr || mnl_attr_validate(attr, MNL_TYPE_U32) < 0)
		return false;
	*ret = mnl_attr_get_u32(attr);
	return true;
}

/* Parses the options of an fq. Returns false if they are invalid. */
static bool fq_parse(const struct nlattr *options, struct fq_limits *ret)
{
	const struct nlattr *table[TCA_FQ_MAX + 1] = {0};
	struct attrs attrs = {TCA_FQ_MAX, table};
	struct fq_limits fq = {.horizon_ns = UINT64_MAX};
	const struct nlattr *drop;
	uint32_t horizon_us;

	if (!options || mnl_attr_parse_nested(options, attr_keep, &attrs) < 0 ||
	    !attr_number(table[TCA_FQ_PLIMIT], &fq.limit) ||
	    !attr_number(table[TCA_FQ_FLOW_PLIMIT], &fq.flow_limit))
		return false;
	if (table[TCA_FQ_HORIZON]) {
		drop = table[TCA_FQ_HORIZON_DROP];
		if (!attr_number(table[TCA_FQ_HORIZON], &horizon_us) || !drop ||
		    mnl_attr_validate(drop, MNL_TYPE_U8) < 0)
			return false;
		fq.horizon_ns = horizon_us * NS_PER_US;
		fq.horizon_drop = mnl_attr_get_u8(drop);
	}
	*ret = fq;
	return true;
}

static int qdisc_add(struct qdiscs *qdiscs, uint16_t queue, const char *kind,
		     const struct nlattr *options)
{
	struct qdisc qdisc = {.queue = queue, .is_fq = !strcmp(kind, "fq")};

	if (qdisc.is_fq && !fq_parse(options, &qdisc.fq))
		return message_failed(EBADMSG);
	if (!array_grow(qdiscs->list, qdiscs->count, qdiscs->room))
		return message_failed(ENOMEM);
	qdiscs->list[qdiscs->count++] = qdisc;
	return MNL_CB_OK;
}

/* Parses a qdisc of a dump. The kernel lists a device's root qdisc first. */
static int qdisc_parse(const struct nlmsghdr *message, void *data)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(message);
	const struct nlattr *table[TCA_MAX + 1] = {0};
	struct attrs attrs = {TCA_MAX, table};
	struct qdiscs *qdiscs = data;
	const char *kind;

	if (message->nlmsg_type != RTM_NEWQDISC || mnl_nlmsg_get_payload_len(message) < sizeof(*tc))
		return message_failed(EBADMSG);
	if (tc->tcm_ifindex != (int)qdiscs->ifindex)
		return MNL_CB_OK;
	if (mnl_attr_parse(message, sizeof(*tc), attr_keep, &attrs) < 0 || !table[TCA_KIND] ||
	    mnl_attr_validate(table[TCA_KIND], MNL_TYPE_NUL_STRING) < 0)
		return message_failed(EBADMSG);
	kind = mnl_attr_get_str(table[TCA_KIND]);
	if (tc->tcm_parent == TC_H_ROOT) {
		qdiscs->handle = tc->tcm_handle;
		snprintf(qdiscs->root, sizeof(qdiscs->root), "%s", kind);
		if (strcmp(kind, "mq"))
			return qdisc_add(qdiscs, 0, kind, table[TCA_OPTIONS]);
	} else if (!strcmp(qdiscs->root, "mq") && TC_H_MAJ(tc->tcm_parent) == qdiscs->handle) {
		return qdisc_add(qdiscs, TC_H_MIN(tc->tcm_parent), kind, table[TCA_OPTIONS]);
	}
	/* ignore clsact, and ignore qdiscs below a root qdisc that is not an mq */
	return MNL_CB_OK;
}

static int qdisc_compare(const void *a, const void *b)
{
	return ((const struct qdisc *)a)->queue - ((const struct qdisc *)b)->queue;
}

/* Sorts qdiscs by queue number, because the kernel lists them in the order of a hash table. */
static void qdiscs_sort(struct qdiscs *qdiscs)
{
	if (qdiscs->count)
		qsort(qdiscs->list, qdiscs->count, sizeof(*qdiscs->list), qdisc_compare);
}

int qdiscs_parse(const void *messages, size_t size, unsigned int ifindex, struct qdiscs *qdiscs)
{
	int more;

	qdiscs->ifindex = ifindex;
	more = messages_run(messages, size, qdisc_parse, qdiscs);
	if (!more)
		qdiscs_sort(qdiscs);
	return more;
}

static void qdiscs_restart(void *data)
{
	struct qdiscs *qdiscs = data;
	unsigned int ifindex = qdiscs->ifindex;

	qdiscs_free(qdiscs);
	qdiscs->ifindex = ifindex;
}

int qdiscs_read(unsigned int ifindex, const char *device, struct qdiscs *ret)
{
	/* request the qdiscs of all devices, because the kernel ignores tcm_ifindex */
	const struct tcmsg header = {0};
	char name[IF_NAMESIZE];
	int err;

	*ret = (struct qdiscs)QDISCS_NONE;
	ret->ifindex = ifindex;
	err = route_dump(RTM_GETQDISC, &header, sizeof(header), qdiscs_restart, qdisc_parse, ret);
	/* no root qdisc: the device does not exist, or was never up */
	if (!err && !ret->count && !if_indextoname(ifindex, name))
		err = -ENODEV;
	if (err) {
		qdiscs_free(ret);
		return error_add(err, "qdiscs-read", NULL, "cannot read the qdiscs of %s: %s",
				 device, why(err));
	}
	qdiscs_sort(ret);
	return 0;
}

void qdiscs_free(struct qdiscs *qdiscs)
{
	free(qdiscs->list);
	*qdiscs = (struct qdiscs)QDISCS_NONE;
}

/* --- Limits of the qdiscs ------------------------------------------------------------------- */

bool fq_everywhere(const struct qdiscs *qdiscs)
{
	for (unsigned int i = 0; i < qdiscs->count; i++)
		if (!qdiscs->list[i].is_fq)
			return false;
	return qdiscs->count;
}

static bool fq_holds(const struct fq_limits *has, const struct fq_limits *need)
{
	return has->limit >= need->limit && has->flow_limit >= need->flow_limit &&
	       has->horizon_ns >= need->horizon_ns;
}

static bool qdisc_lacks(const struct qdisc *qdisc, const struct fq_limits *need)
{
	return !qdisc->is_fq || !fq_holds(&qdisc->fq, need);
}

struct fq_limits fq_least(const struct qdiscs *qdiscs, const struct fq_limits *need)
{
	struct fq_limits least = {UINT32_MAX, UINT32_MAX, UINT64_MAX, false};
	bool found = false;

	for (unsigned int i = 0; i < qdiscs->count; i++) {
		const struct qdisc *qdisc = &qdiscs->list[i];
		const struct fq_limits *fq = qdisc->is_fq ? &qdisc->fq : &fq_default;

		if (need ? !qdisc_lacks(qdisc, need) : !qdisc->is_fq)
			continue;
		if (fq->limit < least.limit)
			least.limit = fq->limit;
		if (fq->flow_limit < least.flow_limit)
			least.flow_limit = fq->flow_limit;
		if (fq->horizon_ns < least.horizon_ns)
			least.horizon_ns = fq->horizon_ns;
		least.horizon_drop |= fq->horizon_drop;
		found = true;
	}
	return found ? least : fq_default;
}

/* --- The command that is missing ------------------------------------------------------------ */

#define FQ_OPTIONS sizeof(" limit 4294967295 flow_limit 4294967295 horizon 18446744073709552us")

/* Formats tc options that raise each limit of an fq that is below the limit in `need`. */
static void options_format(const struct qdiscs *qdiscs, const struct fq_limits *need,
			   char text[FQ_OPTIONS])
{
	struct fq_limits least = fq_least(qdiscs, need);
	size_t length = 0;

	*text = '\0';
	if (need->limit > least.limit)
		length += snprintf(text, FQ_OPTIONS, " limit %" PRIu32, need->limit);
	if (need->flow_limit > least.flow_limit)
		length += snprintf(text + length, FQ_OPTIONS - length, " flow_limit %" PRIu32,
				   need->flow_limit);
	if (need->horizon_ns > least.horizon_ns)
		snprintf(text + length, FQ_OPTIONS - length, " horizon %" PRIu64 "us",
			 (need->horizon_ns + NS_PER_US - 1) / NS_PER_US);
}

/*
 * Formats a tc command that adds an fq below each queue of a root mq. Does not replace the mq by a
 * single fq, because all queues would share its lock. If the kernel created the mq, the command
 * first replaces it, because tc needs a handle, and then adds an fq to each queue. Otherwise it
 * changes only the qdiscs that do not satisfy `need`. tc reads the number of a queue as
 * hexadecimal.
 */
static char *queues_format(const char *device, const struct qdiscs *qdiscs,
			   const struct fq_limits *need, const char *options)
{
	unsigned int major = qdiscs->handle ? TC_H_MAJ(qdiscs->handle) >> 16 : 1, due = 0;
	_cleanup_free_ char *queues = calloc(qdiscs->count, sizeof(" ffff"));
	char mq[NETNS_OPTION + NAME_TYPED +
		sizeof("tc qdisc replace dev  root handle ffff: mq && ")] = "";
	size_t length = 0;
	char *text;
	int size;

	for (unsigned int i = 0; queues && i < qdiscs->count; i++) {
		if (qdiscs->handle && !qdisc_lacks(&qdiscs->list[i], need))
			continue;
		length += sprintf(queues + length, " %x", qdiscs->list[i].queue);
		due++;
	}
	if (!due)
		return NULL;
	if (!qdiscs->handle)
		snprintf(mq, sizeof(mq), "tc %sqdisc replace dev %s root handle %x: mq && ",
			 netns_typed(), device, major);
	if (due == 1)
		size = asprintf(&text, "%stc %sqdisc replace dev %s parent %x:%s fq%s", mq,
				netns_typed(), device, major, queues + 1, options);
	else
		size = asprintf(
			&text, "%sfor n in%s; do tc %sqdisc replace dev %s parent %x:$n fq%s; done",
			mq, queues, netns_typed(), device, major, options);
	return size < 0 ? NULL : text;
}

char *fq_command(const char *device, const struct qdiscs *qdiscs, const struct fq_limits *need)
{
	bool lacks = !qdiscs->count;
	char options[FQ_OPTIONS], *text;

	for (unsigned int i = 0; i < qdiscs->count; i++)
		lacks |= qdisc_lacks(&qdiscs->list[i], need);
	if (!lacks)
		return strdup("");
	device = word_typed(device);
	options_format(qdiscs, need, options);
	if (qdiscs->count && !strcmp(qdiscs->root, "mq"))
		return queues_format(device, qdiscs, need, options);
	if (asprintf(&text, "tc %sqdisc replace dev %s root fq%s", netns_typed(), device, options) <
	    0)
		return NULL;
	return text;
}

/* --- Needs of the limits -------------------------------------------------------------------- */

/*
 * Returns how many packets of a key may wait in a shaper at once: the rate times the horizon. For a
 * bit rate, assumes packets of the usual length.
 */
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
	for (unsigned int i = 0; i < rule->limits; i++) {
		const struct sl_limit_spec *spec = &rule->limit[i].spec;

		spec_add(shaping, spec);
		if (!shaping->by_dst && spec->key_dst && spec->kind != SL_SHAPE) {
			shaping->by_dst = spec;
			shaping->by_dst_prefix = &rule->prefix;
		}
	}
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
				 "%s has no qdisc fq, so limits that shape would delay no packet; "
				 "add the fq first: '%s', or write 'no-fq'",
				 a->device, command);
	if (!fq.holds)
		error_notice("no-fq", NULL,
			     "%s has no qdisc fq, so limits that shape delay no packet; add the "
			     "fq: '%s'",
			     a->device, command);
	else if (fq.is_short)
		error_notice("fq-short", a->device,
			     "its fq holds %u packets of a flow, but %u may wait, and it drops the "
			     "rest; raise its limits: '%s'",
			     fq.least.flow_limit, shaping->need.flow_limit, command);
	return 0;
}

/*
 * Checks that an attachment is on hook egress. If it is not, returns an error for a limit that
 * shapes, or adds a notice for a limit with key dst. Accepts a gate without attachments.
 */
static int hooks_check(const struct gate *gate, const struct shaping *shaping,
		       const struct attachment *all, unsigned int count)
{
	char prefix[PREFIX_TEXT], command[COMMAND_TEXT];
	struct attachment egress;

	for (unsigned int i = 0; i < count; i++)
		if (all[i].hook == HOOK_EGRESS)
			return 0;
	if (!count)
		return 0;
	if (!shaping->any) {
		egress = *all;
		egress.hook = HOOK_EGRESS;
		egress.mode = MODE_AUTO;
		error_notice("dst-needs-egress", prefix_format(shaping->by_dst_prefix, prefix),
			     "limit '%s' counts by destination, which only hook egress sees; to "
			     "attach it: '%s'",
			     shaping->by_dst->name,
			     attachment_command("attach", &egress, gate->name, command));
		return 0;
	}
	return error_add(
		EOPNOTSUPP, "needs-egress", NULL,
		"a limit that shapes has no effect on hook %s of %s, because only sent packets "
		"can be delayed; attach on hook egress first: 'sluice %s-g %s attach DEV hook "
		"egress'",
		hook_names[all->hook], all->device, netns_typed(), gate->name);
}

int shaping_check(const struct gate *gate, const struct shaping *shaping,
		  const struct attachment *all, unsigned int count, bool may_lack)
{
	struct attachment present[ATTACHMENTS_MAX];
	bool applies = shaping->any || shaping->by_dst;
	int err = applies && !all ? attachments_read(gate, present, &count) : 0;

	if (err || !applies)
		return err;
	all = all ?: present;
	err = hooks_check(gate, shaping, all, count);
	for (unsigned int i = 0; shaping->any && !err && i < count; i++)
		err = device_check(shaping, &all[i], may_lack);
	return err;
}

int shaping_check_new(const struct gate *gate, const struct shaping *shaping,
		      const struct attachment *a, bool may_lack)
{
	struct attachment all[ATTACHMENTS_MAX + 1] = {*a};
	unsigned int count;
	int err = attachments_read(gate, all + 1, &count);

	return err ?: hooks_check(gate, shaping, all, count + 1)
		      ?: device_check(shaping, a, may_lack);
}
