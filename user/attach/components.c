// SPDX-License-Identifier: GPL-2.0
#include "attach/components.h"

#include <stdio.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "base/array.h"
#include "base/cleanup.h"

#define COMPONENT_PATH 96 /* size of a buffer for the path of a component's pin */

/* Returns whether a program uses a map. */
static bool uses_map(const uint32_t *ids, uint32_t count, uint32_t map_id)
{
	for (uint32_t i = 0; map_id && i < count; i++)
		if (ids[i] == map_id)
			return true;
	return false;
}

void components_read(unsigned int ifindex, uint32_t secret_id, struct components *ret)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	char path[COMPONENT_PATH];

	*ret = (struct components){0};
	if (bpf_xdp_query(ifindex, 0, &query))
		return;
	ret->is_generic = query.attach_mode == XDP_ATTACHED_SKB;
	ret->dispatcher_id = ret->is_generic ? query.skb_prog_id : query.drv_prog_id;
	for (unsigned int i = 0; i < COMPONENTS_MAX; i++) {
		struct component *component = &ret->list[ret->count];
		uint32_t ids[64];
		struct bpf_prog_info info = {.nr_map_ids = ARRAY_SIZE(ids),
					     .map_ids = (uintptr_t)ids};
		__u32 size = sizeof(info);
		_cleanup_close_ int fd = -1;

		snprintf(path, sizeof(path), "/sys/fs/bpf/xdp/dispatch-%u-%u/prog%u-prog", ifindex,
			 ret->dispatcher_id, i);
		fd = bpf_obj_get(path);
		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
			break;
		*component = (struct component){
			.id = info.id,
			.is_ours = uses_map(ids, info.nr_map_ids, secret_id),
		};
		memcpy(component->name, info.name, sizeof(component->name));
		ret->count++;
	}
	if (!ret->count)
		ret->dispatcher_id = 0;
}
