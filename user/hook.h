/* SPDX-License-Identifier: GPL-2.0 */
/* Where a program of ours can hang. */
#ifndef SLUICE_HOOK_H
#define SLUICE_HOOK_H

enum hook {
	HOOK_XDP,
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOKS,
};

#endif
