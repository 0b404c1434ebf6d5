/* SPDX-License-Identifier: GPL-2.0 */
/* Sizes in bytes of headers without options, for tests and their BPF programs. */
#ifndef SLUICE_TEST_HEADER_SIZES_H
#define SLUICE_TEST_HEADER_SIZES_H

#define ETH_SIZE  14
#define IPV4_SIZE 20
#define IPV6_SIZE 40
#define UDP_SIZE  8

#endif
