// SPDX-License-Identifier: GPL-2.0
#include "attach/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "attach/attrs.h"
#include "attach/netlink.h"
#include "base/array.h"
#include "base/netns.h"
#include "base/text.h"

/* --- Reading devices ------------------------------------------------------------------------ */

/* The kinds of device that get packets of the device in IFLA_LINK. */
static bool kind_is_upper(const char *kind)
{
	static const char *const kinds[] = {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"};

	return word_find(kinds, ARRAY_SIZE(kinds), kind) >= 0;
}

static const char *text_of(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 ? mnl_attr_get_str(attr)
									 : "";
}

static unsigned int number_of(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_U32) >= 0 ? mnl_attr_get_u32(attr) : 0;
}

/* Fills a table of nested attributes; it stays empty if they cannot be read. */
static void nested_take(const struct nlattr *attr, unsigned int max, const struct nlattr **table)
{
	struct attrs attrs = {max, table};

	if (attr)
		mnl_attr_parse_nested(attr, attr_keep, &attrs);
}

static bool xdp_is_attached(const struct nlattr *attr)
{
	const struct nlattr *xdp[IFLA_XDP_MAX + 1] = {0}, **attached = &xdp[IFLA_XDP_ATTACHED];

	nested_take(attr, IFLA_XDP_MAX, xdp);
	return *attached && mnl_attr_validate(*attached, MNL_TYPE_U8) >= 0 &&
	       mnl_attr_get_u8(*attached) != XDP_ATTACHED_NONE;
}

static int link_take(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *table[IFLA_MAX + 1] = {0}, *info[IFLA_INFO_MAX + 1] = {0};
	struct attrs attrs = {IFLA_MAX, table};
	struct stack_link link = {0};
	struct stack *stack = data;

	if (message->nlmsg_type != RTM_NEWLINK ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*header) ||
	    mnl_attr_parse(message, sizeof(*header), attr_keep, &attrs) < 0) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	nested_take(table[IFLA_LINKINFO], IFLA_INFO_MAX, info);
	link.ifindex = header->ifi_index;
	snprintf(link.name, sizeof(link.name), "%s", text_of(table[IFLA_IFNAME]));
	link.is_ifb = !strcmp(text_of(info[IFLA_INFO_KIND]), "ifb");
	if (kind_is_upper(text_of(info[IFLA_INFO_KIND])) && !table[IFLA_LINK_NETNSID])
		link.lower = number_of(table[IFLA_LINK]);
	if (strcmp(text_of(info[IFLA_INFO_SLAVE_KIND]), "vrf"))
		link.master = number_of(table[IFLA_MASTER]);
	link.has_xdp = xdp_is_attached(table[IFLA_XDP]);
	if (!array_grow(stack->list, stack->count, stack->room)) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	stack->list[stack->count++] = link;
	return MNL_CB_OK;
}

static int links_take(const void *messages, size_t size, void *stack)
{
	return messages_run(messages, size, link_take, stack);
}

int stack_read(struct stack *ret)
{
	int err = -EINTR;

	*ret = (struct stack){0};
	for (int i = 0; i < DUMPS_MAX && err == -EINTR; i++) {
		stack_free(ret);
		err = route_dump(RTM_GETLINK, sizeof(struct ifinfomsg), links_take, ret);
	}
	if (!err)
		return OK;
	stack_free(ret);
	return failure("cannot read the devices: %s", why(err));
}

void stack_free(struct stack *stack)
{
	free(stack->list);
	*stack = (struct stack){0};
}

/* --- Which is above which ------------------------------------------------------------------- */

/* The kernel nests no deeper (MAX_NEST_DEV). */
#define DEPTH_MAX 8

const struct stack_link *stack_find(const struct stack *stack, unsigned int ifindex)
{
	for (unsigned int i = 0; i < stack->count; i++)
		if (stack->list[i].ifindex == ifindex)
			return &stack->list[i];
	return NULL;
}

static bool is_above(const struct stack *stack, const struct stack_link *upper,
		     const struct stack_link *lower, unsigned int depth)
{
	if (!upper || !lower || depth > DEPTH_MAX)
		return false;
	if (upper->lower && (upper->lower == lower->ifindex ||
			     is_above(stack, stack_find(stack, upper->lower), lower, depth + 1)))
		return true;
	return lower->master &&
	       (lower->master == upper->ifindex ||
		is_above(stack, upper, stack_find(stack, lower->master), depth + 1));
}

bool stack_is_above(const struct stack *stack, unsigned int upper, unsigned int lower)
{
	return is_above(stack, stack_find(stack, upper), stack_find(stack, lower), 0);
}

const struct stack_link *stack_find_xdp(const struct stack *stack, unsigned int ifindex)
{
	for (unsigned int i = 0; i < stack->count; i++) {
		const struct stack_link *link = &stack->list[i];

		if (link->has_xdp && (stack_is_above(stack, link->ifindex, ifindex) ||
				      stack_is_above(stack, ifindex, link->ifindex)))
			return link;
	}
	return NULL;
}

/* --- Attachments that are stacked ----------------------------------------------------------- */

/* The argument of call_pairs(): finds the pairs of one network namespace. */
struct pairs {
	const struct attachment *all;
	unsigned int count;
	uint64_t netns;
	stacked_call *call;
	void *data;
	struct stack stack;
	int status;
};

static bool filters_like(const struct attachment *a, const struct attachment *b)
{
	return a->program_id && b->program_id && a->netns == b->netns &&
	       (a->hook == HOOK_EGRESS) == (b->hook == HOOK_EGRESS);
}

/* Returns whether each port of the device has an attachment in the same direction. */
static bool ports_are_filtered(const struct pairs *pairs, const struct attachment *upper)
{
	for (unsigned int i = 0; i < pairs->stack.count; i++) {
		const struct stack_link *port = &pairs->stack.list[i];
		bool found = port->master != upper->ifindex;

		for (unsigned int j = 0; !found && j < pairs->count; j++)
			found = pairs->all[j].ifindex == port->ifindex &&
				filters_like(&pairs->all[j], upper);
		if (!found)
			return false;
	}
	return true;
}

static void pair_check(struct pairs *pairs, const struct attachment *upper,
		       const struct attachment *lower)
{
	struct stacked stacked = {.upper = upper, .lower = lower, .surplus = upper};

	if (!filters_like(upper, lower) ||
	    !stack_is_above(&pairs->stack, upper->ifindex, lower->ifindex))
		return;
	if (!ports_are_filtered(pairs, upper))
		stacked.surplus = lower;
	pairs->call(pairs->data, &stacked);
}

static void call_pairs(void *data)
{
	struct pairs *pairs = data;

	pairs->status = stack_read(&pairs->stack);
	for (unsigned int i = 0; !pairs->status && i < pairs->count; i++) {
		const struct stack_link *link = stack_find(&pairs->stack, pairs->all[i].ifindex);

		if (pairs->all[i].netns != pairs->netns || !link || (!link->master && !link->lower))
			continue;
		for (unsigned int j = 0; j < pairs->count; j++) {
			if (link->master)
				pair_check(pairs, &pairs->all[j], &pairs->all[i]);
			if (link->lower)
				pair_check(pairs, &pairs->all[i], &pairs->all[j]);
		}
	}
	stack_free(&pairs->stack);
}

int stacked_find(const struct attachment *all, unsigned int count, stacked_call *call,
			 void *data)
{
	struct pairs pairs = {.all = all, .count = count, .call = call, .data = data};

	for (unsigned int i = 0; !pairs.status && i < count; i++) {
		bool is_first = true;

		for (unsigned int j = 0; j < i; j++)
			is_first &= all[j].netns != all[i].netns;
		pairs.netns = all[i].netns;
		if (is_first)
			netns_run_in(pairs.netns, call_pairs, &pairs);
	}
	return pairs.status;
}

/* --- Words ---------------------------------------------------------------------------------- */

const char *stacked_format(const struct stacked *stacked, const char *gate, char text[STACKED_TEXT])
{
	bool sends = stacked->upper->hook == HOOK_EGRESS;

	snprintf(text, STACKED_TEXT,
		 "it %s packets %s %s, and gate '%s' filters both, so each of these packets is "
		 "charged and counted twice",
		 sends ? "sends" : "gets", sends ? "by" : "of", stacked->lower->device, gate);
	return text;
}

const char *stacked_remedy(const struct stacked *stacked, const char *gate,
			   char text[STACKED_REMEDY])
{
	const struct attachment *a = stacked->surplus;
	char option[NETNS_OPTION];

	snprintf(text, STACKED_REMEDY, "sluice %s-g %s detach %s hook %s",
		 netns_option(a->netns, netns_home(), option), gate, operand_typed(a->device),
		 hook_names[a->hook]);
	return text;
}

/* The argument of note_take(): keeps the first pair with an attachment that was made. */
struct noting {
	const struct attachment *made;
	unsigned int count;
	struct stacked first;
	unsigned int found;
};

static bool is_made(const struct noting *noting, const struct attachment *a)
{
	for (unsigned int i = 0; i < noting->count; i++)
		if (noting->made[i].netns == a->netns && noting->made[i].ifindex == a->ifindex &&
		    noting->made[i].hook == a->hook)
			return true;
	return false;
}

static void note_take(void *data, const struct stacked *stacked)
{
	struct noting *noting = data;

	if ((is_made(noting, stacked->upper) || is_made(noting, stacked->lower)) &&
	    !noting->found++)
		noting->first = *stacked;
}

int stacked_note(const struct gate *gate, const struct attachment *made, unsigned int count)
{
	struct noting noting = {.made = made, .count = count};
	struct attachment all[ATTACHMENTS_MAX];
	char text[STACKED_TEXT], remedy[STACKED_REMEDY], more[64] = "";
	unsigned int there;
	int status = count ? attachments_read(gate, all, &there) : OK;

	if (status || !count)
		return status;
	status = stacked_find(all, there, note_take, &noting);
	if (noting.found > 1)
		snprintf(more, sizeof(more), "; %u more %s: see 'sluice doctor'", noting.found - 1,
			 plural(noting.found - 1, "pair", "pairs"));
	if (noting.found)
		note("%s: %s; to charge them once: '%s'%s", noting.first.upper->device,
		     stacked_format(&noting.first, gate->name, text),
		     stacked_remedy(&noting.first, gate->name, remedy), more);
	return status;
}
