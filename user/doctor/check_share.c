// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/netns.h"
#include "base/text.h"
#include "doctor/checks.h"

/* Whether the unit sluice-share@GATE shares the limits. */
static bool has_unit(const struct subject *s)
{
	return s->gate->has_share_file && s->facts->host.has_systemd;
}

static void advise_sharing(struct subject *s)
{
	const struct sharing *sharing = &s->gate->sharing;
	const char *gate = s->gate->name, *name = sharing->name;
	bool is_named = *name && strcmp(name, gate);

	if (has_unit(s) && sharing->sharer == SHARER_LIVES)
		subject_set(s, 2, "journalctl -n 20 -u sluice-share@%s", gate);
	else if (has_unit(s))
		subject_set(s, 2,
			    "systemctl enable sluice-share@%s && systemctl restart sluice-share@%s",
			    gate, gate);
	else if (sharing->sharer == SHARER_NONE && *sharing->command)
		subject_set(s, 2, "%s", sharing->command);
	else if (sharing->sharer == SHARER_NONE)
		subject_set(s, 2, "sluice %s%sshare %s%s%s", netns_typed(), gate_option(gate),
			    *sharing->store ? operand_typed(sharing->store) : "localhost:6379",
			    is_named ? " --name " : "", is_named ? word_typed(name) : "");
	else if (sharing->sharer == SHARER_SILENT && sharing->pid)
		subject_set(s, 2, "kill -s cont %d", sharing->pid);
	else
		subject_set(s, 2, "sluice %sstatus", gate_option(gate));
}

static bool trouble_describe(struct subject *s, bool is_divided)
{
	char trouble_text[SHARING_TEXT], effect[SHARING_TEXT];
	const struct sharing *sharing = &s->gate->sharing;
	const char *trouble = sharing_trouble(sharing, trouble_text);
	bool is_guessed = sharing->sharer == SHARER_NONE && !*sharing->store && !has_unit(s);

	if (!sharing->is_wanted || !trouble || (sharing->divided_by > 1) != is_divided)
		return false;
	subject_set(s, 1, "%s: %s%s", trouble, sharing_effect(sharing, effect),
		    is_guessed ? "; localhost:6379 stands for your store, Redis or Valkey" : "");
	advise_sharing(s);
	return true;
}

bool limits_are_unshared(struct subject *s)
{
	return trouble_describe(s, false);
}

bool limits_are_divided(struct subject *s)
{
	return trouble_describe(s, true);
}
