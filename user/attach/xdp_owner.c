// SPDX-License-Identifier: GPL-2.0
#include "attach/xdp_owner.h"

#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "attach/attachment.h"
#include "base/cleanup.h"
#include "gate/pins.h"

#define LIBXDP_DISPATCHER "xdp_dispatcher"

/* An XDP program, and the gate that owns it. */
struct search {
	unsigned int ifindex;
	struct xdp_owner *owner;
};

/* Sets the owner's gate if the program is this gate's. Called by gates_for_each(). */
static int gate_look(const char *name, void *data)
{
	struct gate gate = GATE_CLOSED;
	struct attachment all[ATTACHMENTS_MAX];
	const struct search *search = data;
	unsigned int count = 0;

	snprintf(gate.name, sizeof(gate.name), "%s", name);
	/* after an error the search goes on: another gate may own the program */
	if (!gate_dir_open(&gate))
		attachments_read(&gate, all, &count);
	for (unsigned int i = 0; i < count; i++)
		if (all[i].hook == HOOK_XDP && all[i].program_id == search->owner->program_id &&
		    all[i].ifindex == search->ifindex)
			memcpy(search->owner->gate, gate.name, sizeof(gate.name));
	gate_close(&gate);
	return 0;
}

struct xdp_owner xdp_owner_find(unsigned int ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct xdp_owner owner = {0};
	struct search search = {ifindex, &owner};
	struct bpf_prog_info info = {0};
	_cleanup_close_ int fd = -1;
	__u32 size = sizeof(info);

	if (bpf_xdp_query(ifindex, 0, &query))
		return owner;
	owner.program_id = query.prog_id       ?: query.drv_prog_id
			   ?: query.skb_prog_id ?: query.hw_prog_id;
	if (!owner.program_id)
		return owner;
	gates_for_each(gate_look, &search);
	fd = bpf_prog_get_fd_by_id(owner.program_id);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
		snprintf(owner.name, sizeof(owner.name), "%s", info.name);
	return owner;
}

bool xdp_owner_is_libxdp(const struct xdp_owner *owner)
{
	return !strcmp(owner->name, LIBXDP_DISPATCHER);
}

const char *xdp_owner_format(const struct xdp_owner *owner, char text[XDP_OWNER_TEXT])
{
	bool named = *owner->name;

	if (*owner->gate)
		snprintf(text, XDP_OWNER_TEXT, "gate '%s'", owner->gate);
	else
		snprintf(text, XDP_OWNER_TEXT, "a program%s%s%s, id %u, of another software%s",
			 named ? " '" : "", owner->name, named ? "'" : "", owner->program_id,
			 xdp_owner_is_libxdp(owner) ? ": the dispatcher of libxdp" : "");
	return text;
}
