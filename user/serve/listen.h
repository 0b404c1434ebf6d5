/* SPDX-License-Identifier: GPL-2.0 */
/* Serve: the listening sockets. This process opens them, or systemd passes them. */
#ifndef SLUICE_LISTEN_H
#define SLUICE_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

#define LISTENERS_MAX 8

struct listeners {
	int fd[LISTENERS_MAX];
	unsigned int count;
	char path[108]; /* path of the UNIX socket to remove at the end; "": none */
};

/* The default addresses. A machine without IPv6 has no [::1], which is no error. */
#define LISTEN_USUAL "127.0.0.1:9740,[::1]:9740"

/*
 * Opens the sockets: the sockets that systemd passes, otherwise the UNIX socket `socket`, otherwise
 * the comma-separated addresses in `list`, otherwise LISTEN_USUAL. guarded: clients must have a
 * token or a certificate. If false, refuses addresses that other machines can reach. group: group
 * of the UNIX socket. Returns 0, or a negative errno with an error.
 */
int listeners_open(const char *list, const char *socket, bool guarded, gid_t group,
		   struct listeners *ret);
void listeners_close(struct listeners *listeners);

#endif
