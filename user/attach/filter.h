/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clsact way to TC: a qdisc and, in it, a bpf filter. For kernels without tcx (before 6.6). Filters
 * have no pin of their own: ours is known by the id of the program it runs.
 */
#ifndef SLUICE_FILTER_H
#define SLUICE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

/* All of them return 0 or a negative errno, in the current network namespace. */

/* Makes the qdisc where it is missing; `ret_made` tells whether it was. */
int qdisc_make(unsigned int ifindex, bool *ret_made);

/* Removes the qdisc, unless it holds a filter; `ret_removed` tells. */
int qdisc_remove_if_empty(unsigned int ifindex, bool *ret_removed);

/* Adds a filter that runs the program, ahead of those that are there. The qdisc is there. */
int filter_add(unsigned int ifindex, bool ingress, int program_fd);

/* Whether a filter runs the program of that id. */
int filter_find(unsigned int ifindex, bool ingress, uint32_t program_id, bool *ret_found);

/*
 * Puts another program under the filter that runs the program of that id, in its place: each packet meets the one or
 * the other. -ENOENT: there is no such filter.
 */
int filter_replace(unsigned int ifindex, bool ingress, uint32_t program_id, int program_fd);

/* Removes the filter that runs that program; `ret_found` tells whether there was one. */
int filter_remove(unsigned int ifindex, bool ingress, uint32_t program_id, bool *ret_found);

#endif
