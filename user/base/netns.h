/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Base: network namespaces. A number of a namespace is its inode. bpffs belongs to the mount
 * namespace, so every pin stays visible in all network namespaces.
 */
#ifndef SLUICE_NETNS_H
#define SLUICE_NETNS_H

#include <stdint.h>

#include "base/log.h"

#define NETNS_NAME   64
#define NETNS_OPTION (NETNS_NAME + sizeof("-n  "))

/* Enters a named network namespace (`ip netns add`) until the process ends: option -n. */
enum status netns_enter(const char *name);

/* The number of the namespace that this process is in; 0: it cannot be read. */
uint64_t netns_current(void);

/*
 * Runs `call(data)` in the namespace of that number: the current one, a named one, or the initial
 * one. False: it is none of these, and `call` did not run.
 */
bool netns_run_in(uint64_t netns, void (*call)(void *data), void *data);

/*
 * Runs `call(data)` in the current namespace, the initial one and each named one until it returns
 * true. Returns the number of that namespace; 0: none.
 */
uint64_t netns_find(bool (*call)(void *data), void *data);

/* The name of a namespace, "" for the current one. False: it has no name. */
bool netns_name(uint64_t netns, char name[NETNS_NAME]);

/* The number of the namespace in which sluice was started, which -n may have left. */
uint64_t netns_home(void);

/* The number of the namespace of a process; 0: it cannot be read. */
uint64_t netns_of_process(int pid);

/*
 * The option "-n NETNS " that a command in a message needs when it is typed in namespace `from`.
 * "": both are the same, or the namespace has no name.
 */
const char *netns_option(uint64_t netns, uint64_t from, char text[NETNS_OPTION]);

/* netns_option() for the current namespace and the one in which sluice was started. */
const char *netns_typed(void);

#endif
