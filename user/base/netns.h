/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Network namespaces. bpffs, and so every pin, belongs to the mount namespace and stays in
 * sight.
 */
#ifndef SLUICE_NETNS_H
#define SLUICE_NETNS_H

#include <stdint.h>

#include "base/log.h"

#define NETNS_NAME   64
#define NETNS_OPTION (NETNS_NAME + sizeof("-n  "))

/* Enters a named network namespace (`ip netns add`) for good: -n NETNS. */
enum status netns_enter(const char *name);

/* The number (inode) of the network namespace that this process is in; 0 if it cannot be told. */
uint64_t netns_current(void);

/*
 * Runs `call(data)` in the namespace of that number: this one, one of the named ones, or the
 * initial one. False: it is none of these, and `call` did not run.
 */
bool netns_run_in(uint64_t netns, void (*call)(void *data), void *data);

/* Runs `call(data)` in one known namespace after another until it returns true. Its number; 0: in none. */
uint64_t netns_find(bool (*call)(void *data), void *data);

/* The name of that namespace, "" for the current one; false if it has none. */
bool netns_name(uint64_t netns, char name[NETNS_NAME]);

/* The number of the namespace in which sluice was called: -n may have left it. */
uint64_t netns_home(void);

/* The number of a process's; 0 if it cannot be told. */
uint64_t netns_of_process(int pid);

/*
 * How a message says a namespace in a command that is to be typed in `from`: "-n NETNS ", or "" where that is the same, or
 * the namespace has no name.
 */
const char *netns_option(uint64_t netns, uint64_t from, char text[NETNS_OPTION]);

/* The same of the current namespace, in a command that is typed where this one was. */
const char *netns_typed(void);

#endif
