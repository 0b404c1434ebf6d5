/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: filters (cls_bpf) in a clsact qdisc, which run the gate's program on kernels without tcx
 * (before Linux 6.6). A filter cannot be pinned, so functions find it by the id of its program.
 */
#ifndef SLUICE_FILTER_H
#define SLUICE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

/* All functions work in the current network namespace, and return 0 or a negative errno. */

/* Adds the clsact qdisc to a device, unless it exists. Sets `ret_made` if it was added. */
int qdisc_make(unsigned int ifindex, bool *ret_made);

/* Removes the clsact qdisc, unless it has a filter. Sets `ret_removed` if it was removed. */
int qdisc_remove_if_empty(unsigned int ifindex, bool *ret_removed);

/* Adds a filter that runs the program, before existing filters. The clsact qdisc must exist. */
int filter_add(unsigned int ifindex, bool ingress, int program_fd);

/* Stores in *ret_found whether a filter on the hook runs the program. */
int filter_find(unsigned int ifindex, bool ingress, uint32_t program_id, bool *ret_found);

/*
 * Replaces the program of the filter that runs program `program_id` by `program_fd`. During the
 * replacement, either the old or the new program judges each packet. If program_fd is -1, removes
 * the filter. Returns 0, -ENOENT if no filter runs the program, or another negative errno.
 */
int filter_change(unsigned int ifindex, bool ingress, uint32_t program_id, int program_fd);

#endif
