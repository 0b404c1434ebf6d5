// SPDX-License-Identifier: GPL-2.0
#include "attach/replace.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "attach/attachment.h"
#include "attach/filter.h"
#include "base/clock.h"
#include "base/netns.h"

/* --- One attachment ------------------------------------------------------------------------- */

static int link_swap(const struct gate *gate, const struct attachment *a, int program_fd)
{
	char name[PIN_NAME];
	int fd = pin_open(&gate->links, attachment_pin(a, name)), err;

	if (fd < 0)
		return fd;
	err = bpf_link_update(fd, program_fd, NULL);
	close(fd);
	return err;
}

/* For netns_run_in. */
struct replace_call {
	const struct attachment *attachment;
	int program_fd;
	int err;
};

static void call_filter_replace(void *data)
{
	struct replace_call *call = data;
	const struct attachment *a = call->attachment;

	call->err = filter_replace(a->ifindex, a->hook == HOOK_INGRESS, a->program_id,
				   call->program_fd);
}

/* Pins a program under a name, in the place of what may be left there. */
static int pin_anew(const struct pins *pins, const char *name, int program_fd)
{
	int err = pin_remove(pins, name);

	return err && err != -ENOENT ? err : pin_make(pins, name, program_fd);
}

/* The qdisc's pin is a program's only for want of something else to pin; it must not keep the old one alive. */
static void qdisc_repin(const struct gate *gate, const struct attachment *a, int program_fd)
{
	char qdisc[PIN_NAME], next[PIN_NAME];

	attachment_next_pin(a, next);
	if (pin_exists(&gate->links, attachment_qdisc_pin(a, qdisc)) &&
	    !pin_anew(&gate->links, next, program_fd))
		pin_rename(&gate->links, next, &gate->links, qdisc);
}

/*
 * At every moment one of the attachment's two pins refers to the program that the filter runs. So an interrupted
 * switch leaves at most a pin too many, which the next switch removes.
 */
static int filter_swap(const struct gate *gate, const struct attachment *a, int program_fd)
{
	struct replace_call call = {.attachment = a, .program_fd = program_fd, .err = -ENOENT};
	const struct pins *links = &gate->links;
	char name[PIN_NAME], next[PIN_NAME];
	int err = 0;

	attachment_pin(a, name);
	attachment_next_pin(a, next);
	if (program_id_pinned(links, name) != a->program_id)
		err = pin_rename(links, next, links, name);
	err = err ?: pin_anew(links, next, program_fd);
	if (err)
		return err;
	netns_run_in(a->netns, call_filter_replace, &call);
	if (call.err) {
		pin_remove(links, next);
		return call.err;
	}
	err = pin_rename(links, next, links, name);
	if (!err)
		qdisc_repin(gate, a, program_fd);
	return err;
}

/* Puts the program under the attachment, which knows then that it runs it. */
static int attachment_switch(const struct gate *gate, struct attachment *a, int program_fd)
{
	int err;

	if (a->mode == MODE_CLSACT)
		err = filter_swap(gate, a, program_fd);
	else
		err = link_swap(gate, a, program_fd);
	if (!err)
		a->program_id = program_id_of(program_fd);
	return err;
}

/* --- All ------------------------------------------------------------------------------------ */

void replacements_close(struct replacements *replacements)
{
	while (replacements->count)
		close(replacements->program_fd[--replacements->count]);
}

/* A filter's program is pinned; a link's can be had by its id only. */
static int program_open(const struct gate *gate, const struct attachment *a)
{
	char name[PIN_NAME];
	int fd = -1;

	if (a->mode == MODE_CLSACT)
		fd = pin_open(&gate->links, attachment_pin(a, name));
	if (fd >= 0 && program_id_of(fd) == a->program_id)
		return fd;
	if (fd >= 0)
		close(fd);
	return bpf_prog_get_fd_by_id(a->program_id);
}

static void skip_say(const struct attachment *a)
{
	char netns[NETNS_NAME];

	if (!netns_name(a->netns, netns))
		note("%s: its network namespace is gone or has no name: if it still exists, so "
		     "does "
		     "the program on hook %s that it has",
		     a->device, hook_names[a->hook]);
	else
		note("%s: the %s is gone: nothing to switch on hook %s", a->device,
		     a->device_gone ? "device" : "filter", hook_names[a->hook]);
}

static enum status held_open(const struct gate *gate, struct replacements *held)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count;
	enum status status = attachments_read(gate, all, &count);

	for (unsigned int i = 0; !status && i < count; i++) {
		const struct attachment *a = &all[i];
		int fd;

		if (!a->program_id) {
			skip_say(a);
			continue;
		}
		fd = program_open(gate, a);
		if (fd < 0)
			return failure("cannot open program %u of %s, to have it back: %s",
				       a->program_id, a->device,
				       errno == EPERM ? "this needs CAP_SYS_ADMIN: run it as root"
						      : why(errno));
		held->one[held->count] = (struct replaced){*a, a->program_id};
		held->program_fd[held->count++] = fd;
	}
	return status;
}

/* The device may go at any moment. */
static bool attachment_is_gone(const struct gate *gate, struct attachment *a)
{
	attachment_look(gate, a);
	return !a->program_id;
}

/* Of those that have been replaced. */
bool programs_restore(const struct gate *gate, struct replacements *held)
{
	bool restored = true;

	for (unsigned int i = held->count; i--;) {
		struct attachment *a = &held->one[i].attachment;
		int err;

		if (a->program_id == held->one[i].before)
			continue;
		err = attachment_switch(gate, a, held->program_fd[i]);
		if (!err || attachment_is_gone(gate, a))
			continue;
		note("%s: cannot put back the program on hook %s: %s", a->device,
		     hook_names[a->hook], why(err));
		restored = false;
	}
	return restored;
}

static enum status held_switch(const struct gate *gate, const struct programs *programs,
			       struct replacements *held)
{
	for (unsigned int i = 0; i < held->count; i++) {
		struct attachment *a = &held->one[i].attachment;
		int err = attachment_switch(gate, a, programs->fd[a->hook]);

		if (!err || attachment_is_gone(gate, a))
			continue;
		return failure("cannot switch the program of %s on hook %s: %s%s", a->device,
			       hook_names[a->hook], why(err),
			       programs_restore(gate, held) ? "; all are as they were" : "");
	}
	return OK;
}

/* Forgets those that are gone by now, and says which. */
static void held_sift(struct replacements *held)
{
	unsigned int count = held->count;

	held->count = 0;
	for (unsigned int i = 0; i < count; i++) {
		if (held->one[i].attachment.program_id) {
			held->one[held->count] = held->one[i];
			held->program_fd[held->count++] = held->program_fd[i];
			continue;
		}
		skip_say(&held->one[i].attachment);
		close(held->program_fd[i]);
	}
}

enum status programs_replace(const struct gate *gate, const struct programs *programs,
			     struct replacements *ret)
{
	enum status status;

	ret->count = 0;
	status = held_open(gate, ret);
	ret->began = uptime_ticks();
	if (!status)
		status = held_switch(gate, programs, ret);
	if (status)
		replacements_close(ret);
	else
		held_sift(ret);
	return status;
}
