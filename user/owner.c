// SPDX-License-Identifier: GPL-2.0
#include "owner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "attachment.h"
#include "netns.h"
#include "gate_dir.h"

/* For gates_for_each: whose XDP program it is. */
struct owner {
	uint32_t program_id;
	unsigned int ifindex;
	char gate[GATE_NAME + 1];
	char device[IF_NAMESIZE];
};

static enum status owner_look(const char *name, void *data)
{
	struct gate gate = GATE_CLOSED;
	struct attachment all[ATTACHMENTS_MAX];
	struct owner *owner = data;
	unsigned int count = 0;

	snprintf(gate.name, sizeof(gate.name), "%s", name);
	if (!gate_dir_open(&gate))
		attachments_read(&gate, all,
				 &count); /* or it says why not; another gate may own it */
	for (unsigned int i = 0; i < count; i++) {
		if (all[i].hook != HOOK_XDP || all[i].program_id != owner->program_id ||
		    all[i].ifindex != owner->ifindex)
			continue;
		memcpy(owner->gate, gate.name, sizeof(owner->gate));
		memcpy(owner->device, all[i].device, sizeof(owner->device));
	}
	gate_close(&gate);
	return OK;
}

static uint32_t xdp_program(unsigned int ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (bpf_xdp_query(ifindex, 0, &query))
		return 0;
	return query.prog_id ?: query.drv_prog_id ?: query.skb_prog_id ?: query.hw_prog_id;
}

enum status owner_refuse(const struct device *device)
{
	struct owner owner = {.program_id = xdp_program(device->ifindex),
			      .ifindex = device->ifindex};
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);
	int fd;

	if (owner.program_id)
		gates_for_each(owner_look, &owner);
	if (*owner.gate)
		return fail("%s is attached to gate '%s' on hook xdp already, and has room for one "
			    "XDP program: 'sluice %s-g %s detach %s' first",
			    device->name, owner.gate, netns_typed(), owner.gate, owner.device);
	fd = owner.program_id ? bpf_prog_get_fd_by_id(owner.program_id) : -1;
	if (fd >= 0) {
		bpf_obj_get_info_by_fd(fd, &info, &size);
		close(fd);
	}
	return fail("%s has an XDP program already: '%s', id %u; detach that first ('bpftool net' "
		    "lists it)",
		    device->name, info.name, owner.program_id);
}
