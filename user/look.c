// SPDX-License-Identifier: GPL-2.0
/* Whether an attachment is alive, and where its device is: devices are renamed, and move to other namespaces. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "attachment.h"
#include "filter.h"
#include "netns.h"
#include "tcx.h"

uint32_t program_id_of(int program_fd)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(program_fd, &info, &size) ? 0 : info.id;
}

uint32_t program_id_pinned(const struct pins *pins, const char *name)
{
	int fd = pin_open(pins, name);
	uint32_t id = fd < 0 ? 0 : program_id_of(fd);

	if (fd >= 0)
		close(fd);
	return id;
}

/* --- In one namespace ----------------------------------------------------------------------- */

/* For netns_run_in and netns_find. */
struct look {
	const struct gate *gate;
	const struct attachment *attachment;
	unsigned int ifindex;
	uint32_t program_id;
	char device[IF_NAMESIZE]; /* of that ifindex; "": there is none */
	bool runs;		  /* the program, on the attachment's hook */
};

static bool xdp_runs(unsigned int ifindex, uint32_t program_id)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	return !bpf_xdp_query(ifindex, 0, &query) &&
	       (query.drv_prog_id == program_id || query.skb_prog_id == program_id ||
		query.hw_prog_id == program_id || query.prog_id == program_id);
}

static bool tcx_runs(unsigned int ifindex, bool ingress, uint32_t program_id)
{
	__u32 ids[TCX_PROGRAMS_MAX], count = TCX_PROGRAMS_MAX;

	/* the place of an fd in the question is that of a device, too */
	if (bpf_prog_query(ifindex, ingress ? TCX_INGRESS : TCX_EGRESS, 0, NULL, ids, &count))
		return false;
	for (__u32 i = 0; i < count; i++)
		if (ids[i] == program_id)
			return true;
	return false;
}

static bool device_runs(const struct look *look)
{
	bool ingress = look->attachment->hook == HOOK_INGRESS, found;

	switch (look->attachment->mode) {
	case MODE_CLSACT: /* a filter that cannot be asked for is not found */
		return !filter_find(look->ifindex, ingress, look->program_id, &found) && found;
	case MODE_TCX:
		return tcx_runs(look->ifindex, ingress, look->program_id);
	default:
		return xdp_runs(look->ifindex, look->program_id);
	}
}

static void call_look(void *data)
{
	struct look *look = data;

	if (!if_indextoname(look->ifindex, look->device))
		look->device[0] = '\0';
	look->runs = look->program_id && *look->device && device_runs(look);
}

/* --- In any --------------------------------------------------------------------------------- */

/* Whether another attachment of the gate was made to the device that is looked at: numbers repeat. */
static bool look_is_of_another(const struct look *look)
{
	struct attachment other = {.hook = look->attachment->hook};
	char name[PIN_NAME];

	other.pinned.netns = netns_current();
	other.pinned.ifindex = look->ifindex;
	memcpy(other.pinned.device, look->device, sizeof(look->device));
	for (other.mode = MODE_AUTO + 1; other.mode < MODES; other.mode++)
		if (pin_exists(&look->gate->links, attachment_pin(&other, name)))
			return true;
	return false;
}

static bool call_look_for(void *data)
{
	struct look *look = data;

	call_look(look);
	return look->runs && !look_is_of_another(look);
}

/* Where the program runs: where it was attached, or else anywhere. 0: it is not found. */
static uint64_t look_for(struct look *look)
{
	uint64_t home = look->attachment->pinned.netns;

	netns_run_in(home, call_look, look);
	return look->runs ? home : netns_find(call_look_for, look);
}

static void attachment_is_at(struct attachment *a, uint64_t netns, const struct look *look)
{
	a->netns = netns;
	a->ifindex = look->ifindex;
	memcpy(a->device, look->device, sizeof(a->device));
}

/* A link knows its device, wherever that is, and not the namespace. */
static void link_look(const struct gate *gate, struct attachment *a, int link_fd)
{
	struct look look = {.gate = gate, .attachment = a};
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);
	uint64_t netns;

	if (bpf_obj_get_info_by_fd(link_fd, &info, &size) || !info.xdp.ifindex)
		return; /* tcx has its ifindex at the same place */
	look.program_id = a->program_id = info.prog_id;
	look.ifindex = a->ifindex = info.xdp.ifindex;
	netns = look_for(&look);
	if (netns)
		attachment_is_at(a, netns, &look);
}

/* A filter does not survive a move: it is where it was, or gone. Its pin may be either of the two. */
static void filter_look(const struct gate *gate, struct attachment *a)
{
	struct look look = {.gate = gate, .attachment = a, .ifindex = a->ifindex};
	const char *(*pins[])(const struct attachment *, char *) = {attachment_pin,
								    attachment_next_pin};
	char name[PIN_NAME];

	for (int i = 0; i < 2 && !look.runs; i++) {
		look.program_id = program_id_pinned(&gate->links, pins[i](a, name));
		netns_run_in(a->netns, call_look, &look);
	}
	if (look.runs) {
		a->program_id = look.program_id;
		attachment_is_at(a, a->netns, &look);
	}
}

/* The number of a device that is gone comes back: one of another name is another device. */
static bool device_is_there(const struct attachment *a)
{
	struct look look = {.attachment = a, .ifindex = a->pinned.ifindex};

	return netns_run_in(a->pinned.netns, call_look, &look) &&
	       !strcmp(look.device, a->pinned.device);
}

void attachment_look(const struct gate *gate, struct attachment *a)
{
	char name[PIN_NAME];
	int fd = pin_open(&gate->links, attachment_pin(a, name));

	a->program_id = 0;
	a->netns = a->pinned.netns;
	a->ifindex = a->pinned.ifindex;
	memcpy(a->device, a->pinned.device, sizeof(a->device));
	if (fd >= 0 && a->mode != MODE_CLSACT)
		link_look(gate, a, fd);
	else if (fd >= 0)
		filter_look(gate, a);
	if (fd >= 0)
		close(fd);
	a->device_gone = !a->program_id && !device_is_there(a);
}
