/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doctor: findings, which tell why nothing happens, or what is not set up well, and what to do.
 *
 *   host       kernel, bpffs, rights
 *   devices    device, driver, XDP mode, queues
 *   traffic    what arrives, and where, while it watches
 *   rules      rules that have no effect
 *   examine    all of them, of the gates that are there
 *
 * Each of these reads facts, and judges them in functions of the facts alone. A message of failure
 * that another command would print becomes a finding, too.
 */
#ifndef SLUICE_FINDING_H
#define SLUICE_FINDING_H

#include <stdbool.h>

#include "base/log.h"

/*
 * The findings, in the order in which they are told: first what keeps a gate from filtering, the
 * likely before the rare, then what is not set up well.
 */
enum finding_id {
	/* Why nothing happens */
	FIND_KERNEL_OLD,
	FIND_BPF_REFUSED,
	FIND_FEATURE_MISSING,
	FIND_BPFFS,
	FIND_NO_GATE,
	FIND_GATE_UNREAD,
	FIND_RESIZE_INTERRUPTED,
	FIND_NO_DEVICE,
	FIND_NOT_ATTACHED,
	FIND_DEVICE_GONE,
	FIND_FILTER_GONE,
	FIND_DEVICE_DOWN,
	FIND_NO_CARRIER,
	FIND_NO_RULES,
	FIND_NOTHING_JUDGED,
	FIND_NOT_IP,
	FIND_ALLOWED_ALL,
	FIND_DENIED_ALL,
	FIND_NEEDS_EGRESS,
	FIND_NO_FQ,
	FIND_VLAN_HIDDEN,
	FIND_NEVER_MATCHES,
	FIND_COVERED,
	FIND_CHARGED_TWICE,
	FIND_FLOOD_PASSES,
	FIND_UNSHARED,
	FIND_DIVIDED,
	FIND_LIST_UNREAD,
	FIND_OTHER_LIMITS,
	FIND_SAME_NODE,
	FIND_LEFT_OUT,
	FIND_RING_OVERRUN,
	/* Whether it is set up well */
	FIND_TRIAL,
	FIND_ELSEWHERE,
	FIND_OBSERVES,
	FIND_ALLOW_OVER_DENY,
	FIND_ENTRY_OVER_LIMITS,
	FIND_ABOVE_LINK,
	FIND_LOOSER,
	FIND_BUDGET_IDLE,
	FIND_NO_BUDGET,
	FIND_ROOM_SHORT,
	FIND_NOT_NATIVE,
	FIND_OTHER_XDP,
	FIND_MERGED,
	FIND_OVERSIZE,
	FIND_FQ_SHORT,
	FIND_ONE_QUEUE,
	FIND_NO_SLICES,
	FIND_NO_JIT,
	FIND_RIGHTS,
	FIND_UNSEEN,
	FINDINGS,
};

enum severity {
	WRONG,	/* what the gate was told to do does not happen */
	ADVICE, /* it happens, and could be better, or may not be what was meant */
};

extern const char *const severity_names[];

struct finding_kind {
	const char *name; /* stable: scripts rely on it */
	enum severity severity;
};

extern const struct finding_kind finding_kinds[FINDINGS];

struct finding {
	enum finding_id id;
	char *gate;   /* whose it is; NULL: of no gate, as of the host */
	char *object; /* what it is about: "lan0", "gate 'main'", "default dns" */
	char *text;
	char *advice; /* a command to type; NULL: none yet */
};

struct findings {
	struct finding *list;
	unsigned int count, room;
	const char *gate; /* the gate that is examined now; NULL: none */
	bool failed;	  /* out of memory: some are missing */
};

/* Adds a finding of the gate that is examined now. */
void finding_add(struct findings *findings, enum finding_id id, const char *object,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sets the advice of the finding that was added last. */
void finding_advise(struct findings *findings, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* --- Messages ------------------------------------------------------------------------------- */

/*
 * From now on messages are joined in *text, by "; ", and not printed. *text is NULL before the
 * first one; free() ends it. NULL: they are printed again. Returns the text that was set before, to
 * be set again.
 */
char **messages_keep(char **text);

/* Adds what could not be looked at, with the messages that say why, and frees them. */
void messages_tell(char *messages, enum finding_id id, const char *object,
		   struct findings *findings);

/* The command by which more can be seen. */
const char *messages_advice(void);

/* --- All of them ---------------------------------------------------------------------------- */

/* Orders by enum finding_id; findings of one id stay in the order in which they were added. */
void findings_sort(struct findings *findings);

unsigned int findings_count(const struct findings *findings, enum severity severity);
void findings_free(struct findings *findings);

#endif
