/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: network namespaces. A number of a namespace is its inode. bpffs belongs to the mount
 * namespace, so every pin stays visible in all network namespaces.
 */
#ifndef SLUICE_NETNS_H
#define SLUICE_NETNS_H

#include <stdint.h>

#include "base/log.h"
#include "base/text.h"

#define NETNS_DIR    "/run/netns" /* a file for each named one */
#define NETNS_NAME   64
#define NETNS_OPTION (NAME_TYPED + sizeof("-n  "))

/* Enters a named network namespace (`ip netns add`) until the process ends: option -n. */
int netns_enter(const char *name);

/* The number of the namespace that this process is in; 0: it cannot be read. */
uint64_t netns_current(void);

/*
 * Runs `call(data)` in the namespace of that number: the current one, a named one, or the initial
 * one. False: `call` did not run, and errno tells why. ENOENT: it is none of these; EPERM: another
 * namespace takes CAP_SYS_ADMIN, and it may well exist.
 */
bool netns_run_in(uint64_t netns, void (*call)(void *data), void *data);

/* The meaning of that errno. */
const char *netns_why(int err);

/*
 * Runs `call(data)` in the current namespace, the initial one and each named one until it returns
 * true. Returns the number of that namespace; 0: none.
 */
uint64_t netns_find(bool (*call)(void *data), void *data);

/* The name of a namespace, "" for the current one. False: it has no name. */
bool netns_name(uint64_t netns, char name[NETNS_NAME]);

/* The number of the namespace in which sluice was started, which -n may have left. */
uint64_t netns_home(void);

/* The number of the namespace of that name, as `ip netns` gives names; 0: there is none. */
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
