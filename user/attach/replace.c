// SPDX-License-Identifier: GPL-2.0
#include "attach/replace.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "attach/attachment.h"
#include "attach/filter.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/netns.h"

/* --- Replacing the program of one attachment ------------------------------------------------ */

static int program_replace(const struct gate *gate, const struct attachment *a, int program_fd)
{
	_cleanup_netns_ int back = -1;
	_cleanup_close_ int fd = -1;
	char name[PIN_NAME];
	int err;

	if (a->mode == MODE_CLSACT) {
		err = netns_visit(a->netns, &back);
		return err
			       ?: filter_replace(a->ifindex, a->hook == HOOK_INGRESS, a->program_id,
						 program_fd);
	}
	fd = pin_open(&gate->links, attachment_pin(a, name));
	return fd < 0 ? fd : bpf_link_update(fd, program_fd, NULL);
}

/*
 * Replaces the program of an attachment, and updates its program_id. At every moment one of the
 * attachment's two pins refers to the program that it runs. So an interrupted replacement leaves at
 * most one extra pin, which the next one removes.
 */
static int attachment_switch(const struct gate *gate, struct attachment *a, int program_fd)
{
	const struct pins *links = &gate->links;
	char name[PIN_NAME], next[PIN_NAME], qdisc[PIN_NAME];
	int err = 0;

	attachment_program_pin(a, name);
	attachment_next_pin(a, next);
	if (program_id_pinned(links, name) != a->program_id)
		err = pin_rename(links, next, links, name);
	if (err == -ENOENT && a->mode != MODE_CLSACT)
		err = 0; /* the pin of its program was removed */
	err = err ?: pin_replace(links, next, program_fd);
	if (err)
		return err;
	err = program_replace(gate, a, program_fd);
	if (err) {
		pin_remove(links, next);
		return err;
	}
	err = pin_rename(links, next, links, name);
	if (err)
		return err;
	/* the qdisc's pin must not keep the old program alive */
	if (a->mode == MODE_CLSACT && pin_exists(links, attachment_qdisc_pin(a, qdisc)) &&
	    !pin_replace(links, next, program_fd))
		pin_rename(links, next, links, qdisc);
	a->program_id = program_id_of(program_fd);
	return 0;
}

/* --- Replacing the programs of a gate ------------------------------------------------------- */

void replacements_close(struct replacements *replacements)
{
	while (replacements->count)
		close(replacements->program_fd[--replacements->count]);
}

/*
 * Opens the program of an attachment by one of its pins, or by id if these were removed.
 */
static int program_open(const struct gate *gate, const struct attachment *a)
{
	const char *(*pins[])(const struct attachment *, char *) = {attachment_program_pin,
								    attachment_next_pin};
	char name[PIN_NAME];

	for (size_t i = 0; i < ARRAY_SIZE(pins); i++) {
		int fd = pin_open(&gate->links, pins[i](a, name));

		if (fd >= 0 && program_id_of(fd) == a->program_id)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return bpf_prog_get_fd_by_id(a->program_id);
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
		fd = program_open(gate, a);
		if (fd < 0)
			return error_add(errno, "program-open", NULL,
					 "cannot open program %u of %s, to have it back: %s",
					 a->program_id, a->device,
					 errno == EPERM
						 ? "its pin was removed, and this once needs "
						   "CAP_SYS_ADMIN: run it as root"
						 : why(errno));
		replacements->one[replacements->count] = (struct replaced){*a, a->program_id};
		replacements->program_fd[replacements->count++] = fd;
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
		err = switch_or_gone(gate, a, replacements->program_fd[i]);
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

/* Removes attachments that are gone by now, and adds notices. */
static void replacements_prune(struct replacements *replacements)
{
	unsigned int count = replacements->count;

	replacements->count = 0;
	for (unsigned int i = 0; i < count; i++) {
		if (!replacements->one[i].attachment.program_id) {
			note_skipped(&replacements->one[i].attachment);
			close(replacements->program_fd[i]);
			continue;
		}
		replacements->one[replacements->count] = replacements->one[i];
		replacements->program_fd[replacements->count++] = replacements->program_fd[i];
	}
}

int programs_replace(const struct gate *gate, const struct gate *next, struct replacements *ret)
{
	struct programs programs = PROGRAMS_CLOSED;
	unsigned int hooks = 0;
	int err;

	ret->count = 0;
	err = replacements_open(gate, ret);
	for (unsigned int i = 0; !err && i < ret->count; i++)
		hooks |= HOOK_BIT(ret->one[i].attachment.hook);
	if (!err)
		err = programs_load(next, hooks, &programs);
	if (!err)
		err = replacements_switch(gate, &programs, ret);
	programs_close(&programs);
	if (err)
		replacements_close(ret);
	else
		replacements_prune(ret);
	return err;
}
