// SPDX-License-Identifier: GPL-2.0
#include "attach/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <bpf/libbpf.h>
#include <libmnl/libmnl.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "attach/attrs.h"

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
	const struct nlattr *attrs[TCA_MAX + 1] = {0}, *options[TCA_BPF_MAX + 1] = {0};
	struct attrs all = {TCA_MAX, attrs}, of_bpf = {TCA_BPF_MAX, options};

	mnl_attr_parse(message, sizeof(struct tcmsg), attr_keep, &all);
	if (!attrs[TCA_KIND] || strcmp(mnl_attr_get_str(attrs[TCA_KIND]), "bpf") ||
	    !attrs[TCA_OPTIONS])
		return 0;
	mnl_attr_parse_nested(attrs[TCA_OPTIONS], attr_keep, &of_bpf);
	return options[TCA_BPF_ID] ? mnl_attr_get_u32(options[TCA_BPF_ID]) : 0;
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

static int search_receive(struct mnl_socket *socket, unsigned int sequence, struct search *search)
{
	unsigned int port = mnl_socket_get_portid(socket);
	char buffer[16384];
	ssize_t size;
	int more;

	do {
		size = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (size < 0)
			return -errno;
		more = mnl_cb_run(buffer, size, sequence, port, search_one, search);
	} while (more > 0);
	return more < 0 ? -errno : 0;
}

/* Searches the filters of one hook. A device without the qdisc has none. */
static int search_filters(unsigned int ifindex, bool ingress, struct search *search)
{
	struct mnl_socket *socket = mnl_socket_open(NETLINK_ROUTE);
	char buffer[256];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct tcmsg *tc = mnl_nlmsg_put_extra_header(message, sizeof(*tc));
	int err = 0;

	if (!socket)
		return -errno;
	message->nlmsg_type = RTM_GETTFILTER;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	message->nlmsg_seq = 1;
	tc->tcm_family = AF_UNSPEC;
	tc->tcm_ifindex = ifindex;
	tc->tcm_parent = TC_H_MAKE(TC_H_CLSACT, ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);

	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		err = -errno;
	else
		err = search_receive(socket, message->nlmsg_seq, search);
	mnl_socket_close(socket);
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

int filter_replace(unsigned int ifindex, bool ingress, uint32_t program_id, int program_fd)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
			    .attach_point = attach_point(ingress));
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program_fd, .flags = BPF_TC_F_REPLACE);
	struct search search = {.program_id = program_id};
	int err = search_filters(ifindex, ingress, &search);

	if (err)
		return err;
	if (!search.found)
		return -ENOENT;
	opts.handle = search.handle;
	opts.priority = search.priority;
	return bpf_tc_attach(&hook, &opts);
}

int filter_remove(unsigned int ifindex, bool ingress, uint32_t program_id, bool *ret_found)
{
	DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
			    .attach_point = attach_point(ingress));
	DECLARE_LIBBPF_OPTS(bpf_tc_opts, opts);
	struct search search = {.program_id = program_id};
	int err = search_filters(ifindex, ingress, &search);

	*ret_found = search.found;
	if (err || !search.found)
		return err;
	opts.handle = search.handle;
	opts.priority = search.priority;
	return bpf_tc_detach(&hook, &opts);
}
