// SPDX-License-Identifier: GPL-2.0
#include "cli/kept.h"

#include <stdio.h>

#include "base/file.h"
#include "base/error.h"
#include "base/text.h"
#include "keep/lock_file.h"
#include "program/writer.h"
#include "sharing/share_state.h"

/* Who keeps a gate, in words. */
#define KEPT_TEXT (PATH_MAX + 64)

static const char *kept_format(const struct lock_holder *keeper, char text[KEPT_TEXT])
{
	char process[32] = "another process";

	if (keeper->pid)
		snprintf(process, sizeof(process), "process %d", keeper->pid);
	snprintf(text, KEPT_TEXT, "kept by %s%s%s", process, *keeper->path ? " as " : "",
		 name_shown(keeper->path));
	return text;
}

/* Where the caller may not read the lock, nothing is said. */
static bool keeper_find(const char *gate, struct lock_holder *ret)
{
	return lock_file_find(LOCK_KEEP, gate, ret) == LOCK_HELD;
}

void print_kept(const char *gate)
{
	struct lock_holder keeper;
	char text[KEPT_TEXT];

	if (!keeper_find(gate, &keeper)) {
		print_null("kept");
		return;
	}
	print_text("  %s\n", kept_format(&keeper, text));
	print_object("kept");
	print_known("pid", NULL, keeper.pid, keeper.pid);
	print_string("file", NULL, *keeper.path ? keeper.path : NULL);
	print_end();
}

static void kept_note(const char *gate, const struct lock_holder *keeper, const char *what)
{
	char text[KEPT_TEXT];

	error_notice("kept", NULL, "gate '%s' is %s: %s", gate, kept_format(keeper, text), what);
}

void kept_note_attachments(const char *gate)
{
	struct lock_holder keeper;

	if (keeper_find(gate, &keeper))
		kept_note(gate, &keeper,
			  "what that file attaches is attached again, unless that process ends "
			  "first");
}

void kept_note_limits(const char *gate)
{
	struct lock_holder keeper;

	if (keeper_find(gate, &keeper))
		kept_note(gate, &keeper,
			  "this lasts until that file is applied again, at a reload or a restart");
}

void kept_note_file(const char *gate, const char *path)
{
	struct stamp applied = stamp_of(path), kept;
	struct lock_holder keeper;

	if (!keeper_find(gate, &keeper))
		return;
	kept = stamp_of(keeper.path);
	if (!stamp_same_file(&applied, &kept))
		kept_note(gate, &keeper,
			  "this lasts until that file is applied again, at a reload or a restart; "
			  "its devices are attached at once");
}

void kept_forget(const char *gate)
{
	lock_file_remove(LOCK_KEEP, gate);
	share_state_forget(gate);
}
