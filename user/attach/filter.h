/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: clsact, the hooks of TC on kernels without tcx (before 6.6): a qdisc and, in it, bpf
 * filters. Filters have no pins: ours is found by the id of the program that it runs.
 */
#ifndef SLUICE_FILTER_H
#define SLUICE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

/* All functions return 0 or a negative errno, and act in the current network namespace. */

/* Makes the qdisc unless it exists. ret_made: it was made. */
int qdisc_make(unsigned int ifindex, bool *ret_made);

/* Removes the qdisc unless it holds a filter. ret_removed: it was removed. */
int qdisc_remove_if_empty(unsigned int ifindex, bool *ret_removed);

/* Adds a filter that runs the program, before the existing ones. The qdisc exists. */
int filter_add(unsigned int ifindex, bool ingress, int program_fd);

/* Finds whether a filter runs the program of that id. */
int filter_find(unsigned int ifindex, bool ingress, uint32_t program_id, bool *ret_found);

/*
 * Replaces the program of the filter that runs the program of that id; program_fd -1: removes the
 * filter. Each packet meets the old or the new program. -ENOENT: there is no such filter.
 */
int filter_change(unsigned int ifindex, bool ingress, uint32_t program_id, int program_fd);

#endif
