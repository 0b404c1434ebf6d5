/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: network namespaces, which are identified by their inode. A process that enters a network
 * namespace sees the same bpffs as before, because mounts belong to the mount namespace.
 */
#ifndef SLUICE_NETNS_H
#define SLUICE_NETNS_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

#define NETNS_DIR    "/run/netns" /* directory with a file for each named network namespace */
#define NETNS_NAME   64
#define NETNS_OPTION (NAME_TYPED + sizeof("-n  "))

/* Enters a network namespace of `ip netns` for the rest of the process, for option -n. */
int netns_enter(const char *name);

/* Returns the inode of the network namespace of this process, or 0 if it cannot be read. */
uint64_t netns_current(void);

/*
 * Enters the namespace with inode `netns` until the end of the scope:
 *
 *   _cleanup_netns_ int back = -1;
 *   int err = netns_visit(netns, &back);
 *
 * Finds the current, the initial and all named namespaces. Returns 0, -ENOENT if no such namespace
 * is found, -EPERM if this requires CAP_SYS_ADMIN, or another negative errno. Adds no error.
 */
int netns_visit(uint64_t netns, int *ret_back);
void netns_return(int *back);

#define _cleanup_netns_ _cleanup_(netns_return)

/* Returns a text for an errno that netns_visit() returned. */
const char *netns_why(int err);

/*
 * Lists the inodes of the current, the initial and all named namespaces. An inode may be repeated.
 * The caller frees `ret`. Returns 0 or a negative errno, and adds no error.
 */
int netns_list(uint64_t **ret, unsigned int *ret_count);

/*
 * Stores the name of a namespace, or "" for the current namespace. Returns false if the namespace
 * has no name.
 */
bool netns_name(uint64_t netns, char name[NETNS_NAME]);

/* Returns the inode of the network namespace in which this process started. */
uint64_t netns_home(void);

/*
 * Returns the inode of a namespace of `ip netns`. If it cannot be read, sets errno, and returns 0.
 */
uint64_t netns_named(const char *name);

/* Returns the inode of the namespace of a process, or 0 if it cannot be read. */
uint64_t netns_of_process(int pid);

/*
 * Formats the option "-n NETNS " for a command that a user in namespace `from` runs in `netns`.
 * Returns "" if `from` and `netns` are equal, or if `netns` has no name.
 */
const char *netns_option(uint64_t netns, uint64_t from, char text[NETNS_OPTION]);

#define NETNS_EXEC (NETNS_OPTION + sizeof("ip netns exec"))

/* Converts "-n NETNS " to "ip netns exec NETNS ", for programs that have no option -n. */
const char *netns_exec(const char *option, char text[NETNS_EXEC]);

/*
 * Returns the option "-n NETNS " for a command that a user in namespace netns_home() runs in the
 * current namespace.
 */
const char *netns_typed(void);

#endif
