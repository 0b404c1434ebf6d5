// SPDX-License-Identifier: GPL-2.0
#include "attach/replace.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "attach/filter.h"
#include "base/cleanup.h"
#include "base/netns.h"

static int program_replace(const struct gate *gate, const struct attachment *a, int program_fd)
{
	_cleanup_netns_ int back = -1;
	_cleanup_close_ int fd = -1;

	if (a->mode == MODE_CLSACT)
		return netns_visit(a->netns, &back)
			       ?: filter_change(a->ifindex, a->hook == HOOK_INGRESS, a->program_id,
						program_fd);
	fd = pin_open(&gate->links, attachment_pin(a, PIN_ATTACHMENT).text);
	return fd < 0 ? fd : bpf_link_update(fd, program_fd, NULL);
}

/*
 * Replaces the program of an attachment, and updates its program_id. At every moment PIN_PROGRAM or
 * PIN_NEXT refers to the program that the attachment runs. So an interrupted replacement leaves at
 * most one extra pin, which the next one removes.
 */
static int attachment_switch(const struct gate *gate, struct attachment *a, int program_fd)
{
	struct pin_name name = attachment_pin(a, PIN_PROGRAM), next = attachment_pin(a, PIN_NEXT);
	struct pin_name qdisc = attachment_pin(a, PIN_QDISC);
	const struct pins *links = &gate->links;
	_cleanup_close_ int fd = pin_open(links, name.text);
	int err = 0;

	if (fd < 0 || program_id_of(fd) != a->program_id)
		err = pin_rename(links, next.text, links, name.text);
	if (err == -ENOENT && a->mode != MODE_CLSACT)
		err = 0; /* the pin of its program was removed */
	err = err ?: pin_replace(links, next.text, program_fd);
	if (err)
		return err;
	err = program_replace(gate, a, program_fd);
	if (err) {
		pin_remove(links, next.text);
		return err;
	}
	err = pin_rename(links, next.text, links, name.text);
	if (err)
		return err;
	/* the qdisc's pin must not keep the old program alive */
	if (a->mode == MODE_CLSACT && pin_exists(links, qdisc.text) &&
	    !pin_replace(links, next.text, program_fd))
		pin_rename(links, next.text, links, qdisc.text);
	a->program_id = program_id_of(program_fd);
	return 0;
}

void replacements_close(struct replacements *replacements)
{
	while (replacements->count)
		close(replacements->one[--replacements->count].program_fd);
}

static void note_skipped(const struct attachment *a)
{
	char netns[NETNS_NAME];

	if (!netns_name(a->netns, netns))
		error_notice("netns-gone", a->device,
			     "its network namespace is gone or has no name: if it still exists, so "
			     "does the program on hook %s that it has",
			     hook_names[a->hook]);
	else
		error_notice("nothing-to-switch", a->device,
			     "the %s is gone: nothing to switch on hook %s",
			     a->device_gone ? "device" : "filter", hook_names[a->hook]);
}

static int replacements_open(const struct gate *gate, struct replacements *replacements)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	int err = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !err && i < count; i++) {
		const struct attachment *a = &all[i];
		int fd;

		if (!a->program_id) {
			note_skipped(a);
			continue;
		}
		fd = attachment_program_open(gate, a);
		if (fd < 0)
			return error_add(errno, "program-open", NULL,
					 "cannot open program %u of %s, to have it back: %s",
					 a->program_id, a->device,
					 errno == EPERM
						 ? "its pin was removed, and this once needs "
						   "CAP_SYS_ADMIN: run it as root"
						 : why(errno));
		replacements->one[replacements->count++] = (struct replaced){*a, a->program_id, fd};
	}
	return err;
}

/*
 * Switches an attachment. An attachment that is gone counts as switched: its device may vanish at
 * any moment. Returns 0 or a negative errno.
 */
static int switch_or_gone(const struct gate *gate, struct attachment *a, int program_fd)
{
	unsigned int mark = error_count();
	int err = attachment_switch(gate, a, program_fd);

	if (err && !attachment_look(gate, a) && !a->program_id)
		return 0;
	error_drop(mark);
	return err;
}

/* Puts the old programs back. Returns whether all are as they were. */
static bool programs_restore(const struct gate *gate, struct replacements *replacements)
{
	bool restored = true;

	for (unsigned int i = replacements->count; i--;) {
		struct attachment *a = &replacements->one[i].attachment;
		int err;

		if (a->program_id == replacements->one[i].before)
			continue;
		err = switch_or_gone(gate, a, replacements->one[i].program_fd);
		if (!err)
			continue;
		error_notice("program-lost", a->device,
			     "cannot put back the program on hook %s: %s", hook_names[a->hook],
			     why(err));
		restored = false;
	}
	return restored;
}

static int replacements_switch(const struct gate *gate, const struct programs *programs,
			       struct replacements *replacements)
{
	for (unsigned int i = 0; i < replacements->count; i++) {
		struct attachment *a = &replacements->one[i].attachment;
		int err = switch_or_gone(gate, a, programs->fd[a->hook]);

		if (err)
			return error_add(err, "program-switch", NULL,
					 "cannot switch the program of %s on hook %s: %s%s",
					 a->device, hook_names[a->hook], why(err),
					 programs_restore(gate, replacements)
						 ? "; all are as they were"
						 : "");
	}
	return 0;
}

int programs_replace(const struct gate *gate, const struct gate *next, struct replacements *ret)
{
	struct programs programs = PROGRAMS_CLOSED;
	unsigned int hooks = 0, count;
	int err;

	ret->count = 0;
	err = replacements_open(gate, ret);
	for (unsigned int i = 0; !err && i < ret->count; i++)
		hooks |= HOOK_BIT(ret->one[i].attachment.hook);
	err = err ?: programs_load(next, hooks, &programs)
		  ?: replacements_switch(gate, &programs, ret);
	programs_close(&programs);
	if (err) {
		replacements_close(ret);
		return err;
	}
	count = ret->count;
	ret->count = 0;
	for (unsigned int i = 0; i < count; i++) {
		if (!ret->one[i].attachment.program_id) { /* it is gone by now */
			note_skipped(&ret->one[i].attachment);
			close(ret->one[i].program_fd);
			continue;
		}
		ret->one[ret->count++] = ret->one[i];
	}
	return 0;
}
