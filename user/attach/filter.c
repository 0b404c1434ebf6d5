// SPDX-License-Identifier: GPL-2.0
#include "attach/filter.h"

#include <errno.h>
#include <string.h>
#include <bpf/libbpf.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "attach/netlink.h"

/* The result of a search among the filters of one hook. */
struct search {
	uint32_t program_id; /* the program to find */
	bool found;
	uint32_t handle;
	uint32_t priority;
	unsigned int others; /* other filters */
};

static enum bpf_tc_attach_point attach_point(bool ingress)
{
	return ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS;
}

/*
 * The id of the program that a filter runs; 0: it is not a bpf filter, or it is the head of a
 * chain.
 */
static uint32_t filter_program(const struct nlmsghdr *message)
{
	const struct nlattr *table[TCA_MAX + 1] = {0}, *options[TCA_BPF_MAX + 1] = {0};
	struct attrs attrs = {TCA_MAX, table};

	mnl_attr_parse(message, sizeof(struct tcmsg), attr_keep, &attrs);
	if (strcmp(attr_text(table[TCA_KIND]), "bpf"))
		return 0;
	attr_nested(table[TCA_OPTIONS], TCA_BPF_MAX, options);
	return attr_u32(options[TCA_BPF_ID]);
}

static int search_one(const struct nlmsghdr *message, void *data)
{
	const struct tcmsg *tc = mnl_nlmsg_get_payload(message);
	struct search *search = data;
	uint32_t program;

	if (!tc->tcm_handle) /* the head of a chain: its filters follow */
		return MNL_CB_OK;
	program = filter_program(message);
	if (program && program == search->program_id) {
		search->found = true;
		search->handle = tc->tcm_handle;
		search->priority = TC_H_MAJ(tc->tcm_info) >> 16;
	} else {
		search->others++;
	}
	return MNL_CB_OK;
}

/* Searches the filters of one hook. A device without the qdisc has none. */
static int search_filters(unsigned int ifindex, bool ingress, struct search *search)
{
	const struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = ifindex,
		.tcm_parent = TC_H_MAKE(TC_H_CLSACT, ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS),
	};
	int err = route_dump(RTM_GETTFILTER, &header, sizeof(header), search_one, search);

	return err == -EINVAL || err == -EOPNOTSUPP ? 0 : err;
}

int qdisc_make(unsigned int ifindex, bool *ret_made)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
	int err = bpf_tc_hook_create(&hook);

	*ret_made = !err;
	return err == -EEXIST ? 0 : err;
}

int qdisc_remove_if_empty(unsigned int ifindex, bool *ret_removed)
{
	/* both directions mean the qdisc itself, not the filters of one direction */
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
			    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	struct search search = {0};
	int err = search_filters(ifindex, true, &search);

	*ret_removed = false;
	if (!err)
		err = search_filters(ifindex, false, &search);
	if (err || search.others)
		return err;
	err = bpf_tc_hook_destroy(&hook);
	if (err == -EINVAL || err == -ENOENT) /* it was already removed */
		err = 0;
	*ret_removed = !err;
	return err;
}

int filter_add(unsigned int ifindex, bool ingress, int program_fd)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
			    .attach_point = attach_point(ingress));
	/* without handle and priority the kernel puts the filter before the others */
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program_fd);

	return bpf_tc_attach(&hook, &opts);
}

int filter_find(unsigned int ifindex, bool ingress, uint32_t program_id, bool *ret_found)
{
	struct search search = {.program_id = program_id};
	int err = search_filters(ifindex, ingress, &search);

	*ret_found = search.found;
	return err;
}

/*
 * Fills the options that name the filter which runs a program. Returns 0, -ENOENT, or another
 * errno.
 */
static int filter_name(unsigned int ifindex, bool ingress, uint32_t program_id,
		       struct bpf_tc_opts *ret)
{
	struct search search = {.program_id = program_id};
	int err = search_filters(ifindex, ingress, &search);

	ret->handle = search.handle;
	ret->priority = search.priority;
	return err || search.found ? err : -ENOENT;
}

int filter_replace(unsigned int ifindex, bool ingress, uint32_t program_id, int program_fd)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
			    .attach_point = attach_point(ingress));
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program_fd, .flags = BPF_TC_F_REPLACE);

	return filter_name(ifindex, ingress, program_id, &opts) ?: bpf_tc_attach(&hook, &opts);
}

int filter_remove(unsigned int ifindex, bool ingress, uint32_t program_id)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
			    .attach_point = attach_point(ingress));
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, opts);
	int err = filter_name(ifindex, ingress, program_id, &opts) ?: bpf_tc_detach(&hook, &opts);

	return err == -ENOENT ? 0 : err;
}
