/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: reads the components of libxdp's dispatcher from their pins in /sys/fs/bpf/xdp, as
 * protocol.org of libxdp describes them. Does not require libxdp.
 */
#ifndef SLUICE_COMPONENTS_H
#define SLUICE_COMPONENTS_H

#include <stdbool.h>
#include <stdint.h>

#define COMPONENTS_MAX 10 /* as in libxdp */

/* The dispatcher of a device, and its components in their order. */
struct components {
	uint32_t dispatcher_id; /* 0: the device has no dispatcher with pins of libxdp */
	bool is_generic;	/* the dispatcher runs in generic XDP */
	unsigned int count;
	struct component {
		uint32_t id;
		char name[16];
		bool is_ours; /* it uses the map */
	} list[COMPONENTS_MAX];
};

/* Reads the components of a device of the current network namespace. secret_id: id of the map. */
void components_read(unsigned int ifindex, uint32_t secret_id, struct components *ret);

#endif
