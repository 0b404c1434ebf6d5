/* SPDX-License-Identifier: GPL-2.0 */
/* A packet in words: "proto udp port 53 fragment first". */
#ifndef SLUICE_PROBE_H
#define SLUICE_PROBE_H

#include "log.h"
#include "standing.h"

/*
 * Parses argv[1], the source, and the words behind it. The facts are those that the packet path
 * would find in such a packet: of what is not said it has nothing.
 */
enum status probe_parse(int argc, char **argv, struct probe *ret);

#endif
