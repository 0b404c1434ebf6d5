// SPDX-License-Identifier: GPL-2.0
#include "doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

const char *const severity_names[] = {
	[WRONG] = "wrong",
	[ADVICE] = "advice",
};

const struct finding_kind finding_kinds[FINDINGS] = {
	[FIND_KERNEL_OLD] = {"kernel-old", WRONG},
	[FIND_BPF_REFUSED] = {"bpf-refused", WRONG},
	[FIND_FEATURE_MISSING] = {"feature-missing", WRONG},
	[FIND_BPFFS] = {"bpffs", WRONG},
	[FIND_NO_GATE] = {"no-gate", WRONG},
	[FIND_GATE_UNREAD] = {"gate-unread", WRONG},
	[FIND_RESIZE_INTERRUPTED] = {"resize-interrupted", WRONG},
	[FIND_NO_DEVICE] = {"no-device", WRONG},
	[FIND_NOT_ATTACHED] = {"not-attached", WRONG},
	[FIND_DEVICE_GONE] = {"device-gone", WRONG},
	[FIND_FILTER_GONE] = {"filter-gone", WRONG},
	[FIND_DEVICE_DOWN] = {"device-down", WRONG},
	[FIND_NO_CARRIER] = {"no-carrier", WRONG},
	[FIND_NO_RULES] = {"no-rules", WRONG},
	[FIND_NOTHING_JUDGED] = {"nothing-judged", WRONG},
	[FIND_NOT_IP] = {"not-ip", WRONG},
	[FIND_ALLOWED_ALL] = {"allowed-all", WRONG},
	[FIND_DENIED_ALL] = {"denied-all", WRONG},
	[FIND_NEEDS_EGRESS] = {"needs-egress", WRONG},
	[FIND_NO_FQ] = {"no-fq", WRONG},
	[FIND_VLAN_HIDDEN] = {"vlan-hidden", WRONG},
	[FIND_NEVER_MATCHES] = {"never-matches", WRONG},
	[FIND_COVERED] = {"covered", WRONG},
	[FIND_CHARGED_TWICE] = {"charged-twice", WRONG},
	[FIND_FLOOD_PASSES] = {"flood-passes", WRONG},
	[FIND_UNSHARED] = {"unshared", WRONG},
	[FIND_DIVIDED] = {"divided", WRONG},
	[FIND_LIST_UNREAD] = {"list-unread", WRONG},
	[FIND_OTHER_LIMITS] = {"other-limits", WRONG},
	[FIND_SAME_NODE] = {"same-node", WRONG},
	[FIND_LEFT_OUT] = {"left-out", WRONG},
	[FIND_RING_OVERRUN] = {"ring-overrun", WRONG},
	[FIND_TRIAL] = {"trial", ADVICE},
	[FIND_ELSEWHERE] = {"elsewhere", ADVICE},
	[FIND_OBSERVES] = {"observes", ADVICE},
	[FIND_ALLOW_OVER_DENY] = {"allow-over-deny", ADVICE},
	[FIND_ENTRY_OVER_LIMITS] = {"entry-over-limits", ADVICE},
	[FIND_ABOVE_LINK] = {"above-link", ADVICE},
	[FIND_LOOSER] = {"looser", ADVICE},
	[FIND_BUDGET_IDLE] = {"budget-idle", ADVICE},
	[FIND_NO_BUDGET] = {"no-budget", ADVICE},
	[FIND_ROOM_SHORT] = {"room-short", ADVICE},
	[FIND_NOT_NATIVE] = {"not-native", ADVICE},
	[FIND_OTHER_XDP] = {"other-xdp", ADVICE},
	[FIND_MERGED] = {"merged", ADVICE},
	[FIND_OVERSIZE] = {"oversize", ADVICE},
	[FIND_FQ_SHORT] = {"fq-short", ADVICE},
	[FIND_ONE_QUEUE] = {"one-queue", ADVICE},
	[FIND_NO_SLICES] = {"no-slices", ADVICE},
	[FIND_NO_JIT] = {"no-jit", ADVICE},
	[FIND_RIGHTS] = {"rights", ADVICE},
	[FIND_UNSEEN] = {"unseen", ADVICE},
};

static char *text_make(struct findings *findings, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0) {
		findings->failed = true;
		return NULL;
	}
	text_make_printable(text);
	return text;
}

static void finding_free(struct finding *finding)
{
	free(finding->gate);
	free(finding->object);
	free(finding->text);
	free(finding->advice);
}

void finding_add(struct findings *findings, enum finding_id id, const char *object,
		 const char *format, ...)
{
	struct finding finding = {.id = id};
	va_list args;

	finding.gate = findings->gate ? strdup(findings->gate) : NULL;
	finding.object = strdup(name_shown(object));
	va_start(args, format);
	finding.text = text_make(findings, format, args);
	va_end(args);
	if (finding.object && finding.text && !finding.gate == !findings->gate &&
	    array_grow(findings->list, findings->count, findings->room)) {
		findings->list[findings->count++] = finding;
		return;
	}
	findings->failed = true;
	finding_free(&finding);
}

void finding_advise(struct findings *findings, const char *format, ...)
{
	va_list args;
	char **advice;

	if (findings->failed)
		return; /* the last one may be another */
	advice = &findings->list[findings->count - 1].advice;
	free(*advice);
	va_start(args, format);
	*advice = text_make(findings, format, args);
	va_end(args);
}

/* --- Messages ------------------------------------------------------------------------------- */

static char **kept;

/* Called by base/log for each message. True: it is printed, for want of memory to keep it. */
static bool message_take(void *data, const char *message)
{
	char *joined;

	(void)data;
	if (asprintf(&joined, "%s%s%s", *kept ?: "", *kept ? "; " : "", message) < 0)
		return true;
	free(*kept);
	*kept = joined;
	return false;
}

char **messages_keep(char **text)
{
	char **before = kept;

	kept = text;
	log_filter(text ? message_take : NULL, NULL);
	return before;
}

const char *messages_advice(void)
{
	return caps_missing() ? "sudo sluice doctor" : "sluice -v status";
}

void messages_tell(char *messages, enum finding_id id, const char *object,
		   struct findings *findings)
{
	finding_add(findings, id, object, "%s", messages ?: "it cannot be read");
	finding_advise(findings, "%s", messages_advice());
	free(messages);
}

/* --- All of them ---------------------------------------------------------------------------- */

void findings_sort(struct findings *findings)
{
	for (unsigned int i = 1; i < findings->count; i++) {
		struct finding moved = findings->list[i];
		unsigned int place = i;

		for (; place && findings->list[place - 1].id > moved.id; place--)
			findings->list[place] = findings->list[place - 1];
		findings->list[place] = moved;
	}
}

unsigned int findings_count(const struct findings *findings, enum severity severity)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < findings->count; i++)
		count += finding_kinds[findings->list[i].id].severity == severity;
	return count;
}

void findings_free(struct findings *findings)
{
	for (unsigned int i = 0; i < findings->count; i++)
		finding_free(&findings->list[i]);
	free(findings->list);
	*findings = (struct findings){0};
}
