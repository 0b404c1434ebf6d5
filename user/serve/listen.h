/* SPDX-License-Identifier: GPL-2.0 */
/* Serve: the listening sockets, which this process opens or systemd passes. */
#ifndef SLUICE_LISTEN_H
#define SLUICE_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

#define LISTENERS_MAX 8

struct listeners {
	int fd[LISTENERS_MAX];
	unsigned int count;
	char path[108]; /* UNIX socket to remove at the end; "" if none */
};

/* The address that is listened to if none is given; [::1] may be missing. */
#define LISTEN_USUAL "127.0.0.1:9740,[::1]:9740"

/*
 * Opens the sockets: those that systemd passes, the UNIX socket `socket`, or the addresses of
 * `list`, separated by commas, or LISTEN_USUAL. guarded: clients must show a token or a
 * certificate. Otherwise refuses addresses that other machines reach. group: group of the UNIX
 * socket.
 */
int listeners_open(const char *list, const char *socket, bool guarded, gid_t group,
		   struct listeners *ret);
void listeners_close(struct listeners *listeners);

#endif
