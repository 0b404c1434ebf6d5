// SPDX-License-Identifier: GPL-2.0
#include "attach/filter.h"

#include <errno.h>
#include <string.h>
#include <bpf/libbpf.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "attach/netlink.h"

/* A search, on one hook of a device, for the filter that runs a program. */
struct search {
	uint32_t program_id;
	uint32_t handle; /* handle of the filter; 0 if no filter was found */
	uint32_t priority;
	bool has_others; /* the hook has other filters */
};

/*
 * Parses a filter of the dump. Ignores an entry without a handle, because it describes a whole
 * chain.
 */
static int search_one(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *table[TCA_MAX + 1] = {0}, *options[TCA_BPF_MAX + 1] = {0};
	const struct tcmsg *tc = mnl_nlmsg_get_payload(message);
	struct attrs attrs = {TCA_MAX, table};
	struct search *search = data;
	bool found;

	mnl_attr_parse(message, sizeof(struct tcmsg), attr_keep, &attrs);
	attr_nested(table[TCA_OPTIONS], TCA_BPF_MAX, options);
	found = search->program_id && !strcmp(attr_text(table[TCA_KIND]), "bpf") &&
		attr_u32(options[TCA_BPF_ID]) == search->program_id;
	if (found) {
		search->handle = tc->tcm_handle;
		search->priority = TC_H_MAJ(tc->tcm_info) >> 16;
	} else {
		search->has_others |= tc->tcm_handle != 0;
	}
	return MNL_CB_OK;
}

static void search_restart(void *data)
{
	struct search *search = data;

	*search = (struct search){.program_id = search->program_id};
}

/*
 * Searches the hook for the filter. Returns 0 without a filter if the device has no clsact qdisc.
 */
static int search_run(unsigned int ifindex, bool ingress, struct search *search)
{
	const struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = ifindex,
		.tcm_parent = TC_H_MAKE(TC_H_CLSACT, ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS),
	};
	int err = route_dump(RTM_GETTFILTER, &header, sizeof(header), search_restart, search_one,
			     search);

	return err == -EINVAL || err == -EOPNOTSUPP ? 0 : err;
}

int qdisc_make(unsigned int ifindex, bool *ret_made)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
	int err = bpf_tc_hook_create(&hook);

	*ret_made = !err;
	return err == -EEXIST ? 0 : err;
}

int qdisc_remove_if_empty(unsigned int ifindex, bool *ret_removed)
{
	/* libbpf removes the qdisc if both directions are set */
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
		    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	struct search ingress = {0}, egress = {0};
	int err = search_run(ifindex, true, &ingress) ?: search_run(ifindex, false, &egress);

	*ret_removed = false;
	if (err || ingress.has_others || egress.has_others)
		return err;
	err = bpf_tc_hook_destroy(&hook);
	if (err == -EINVAL || err == -ENOENT) /* the qdisc does not exist */
		err = 0;
	*ret_removed = !err;
	return err;
}

int filter_find(unsigned int ifindex, bool ingress, uint32_t program_id, bool *ret_found)
{
	struct search search = {.program_id = program_id};
	int err = search_run(ifindex, ingress, &search);

	*ret_found = search.handle;
	return err;
}

int filter_add(unsigned int ifindex, bool ingress, int program_fd)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
		    .attach_point = ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS);
	/* if no priority is set, the kernel puts the filter before existing filters */
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program_fd);

	return bpf_tc_attach(&hook, &opts);
}

int filter_change(unsigned int ifindex, bool ingress, uint32_t program_id, int program_fd)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
		    .attach_point = ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts);
	struct search search = {.program_id = program_id};
	int err = search_run(ifindex, ingress, &search);

	if (err || !search.handle)
		return err ?: -ENOENT;
	opts.handle = search.handle;
	opts.priority = search.priority;
	if (program_fd < 0)
		return bpf_tc_detach(&hook, &opts);
	opts.prog_fd = program_fd;
	opts.flags = BPF_TC_F_REPLACE;
	return bpf_tc_attach(&hook, &opts);
}
