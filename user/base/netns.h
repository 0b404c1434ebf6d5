/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: network namespaces. A number of a namespace is its inode. bpffs belongs to the mount
 * namespace, so every pin stays visible in all network namespaces.
 */
#ifndef SLUICE_NETNS_H
#define SLUICE_NETNS_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

#define NETNS_DIR    "/run/netns" /* a file for each named one */
#define NETNS_NAME   64
#define NETNS_OPTION (NAME_TYPED + sizeof("-n  "))

/* Enters a named network namespace (`ip netns add`) until the process ends: option -n. */
int netns_enter(const char *name);

/* The number of the namespace that this process is in; 0: it cannot be read. */
uint64_t netns_current(void);

/*
 * Enters the namespace of that number, if it is the current, a named or the initial namespace:
 *
 *   _cleanup_netns_ int back = -1;
 *   int err = netns_visit(netns, &back);
 *
 * returns to the present namespace at the end of the scope. Returns 0, or without an error -ENOENT
 * if it is none of these, or -EPERM if this needs CAP_SYS_ADMIN; then it may exist.
 */
int netns_visit(uint64_t netns, int *ret_back);
void netns_return(int *back);

#define _cleanup_netns_ _cleanup_(netns_return)

/* The meaning of such an errno. */
const char *netns_why(int err);

/*
 * Lists the current, the initial and each named namespace. A number may be repeated. The caller
 * frees `ret`. Returns 0 or a negative errno, without an error.
 */
int netns_list(uint64_t **ret, unsigned int *ret_count);

/* The name of a namespace, "" for the current one. False: it has no name. */
bool netns_name(uint64_t netns, char name[NETNS_NAME]);

/* The number of the namespace in which sluice was started, which -n may have left. */
uint64_t netns_home(void);

/* The number of the namespace of that name, as `ip netns` gives names; 0: it does not exist. */
uint64_t netns_named(const char *name);

/* The number of the namespace of a process; 0: it cannot be read. */
uint64_t netns_of_process(int pid);

/*
 * The option "-n NETNS " that a command in a message needs when it is typed in namespace `from`,
 * with the name as a shell reads it. "": both are the same, or the namespace has no name.
 */
const char *netns_option(uint64_t netns, uint64_t from, char text[NETNS_OPTION]);

#define NETNS_EXEC (NETNS_OPTION + sizeof("ip netns exec"))

/* "ip netns exec NETNS ": what other commands need where ours take that option. */
const char *netns_exec(const char *option, char text[NETNS_EXEC]);

/* netns_option() for the current namespace and the one in which sluice was started. */
const char *netns_typed(void);

#endif
