// SPDX-License-Identifier: GPL-2.0
#include "cli/command.h"
#include "live/command_top.h"
#include "replaying/command_replay.h"
#include "replaying/command_suggest.h"
#include "report/command_serve.h"
#include "sharing/command_share.h"

static const struct command *const commands[] = {
	&command_attach,    &command_detach,  &command_status,	&command_doctor,  &command_set,
	&command_newcomers, &command_allow,   &command_deny,	&command_unallow, &command_undeny,
	&command_lists,	    &command_del,     &command_forgive, &command_show,	  &command_apply,
	&command_confirm,   &command_keep,    &command_share,	&command_diff,	  &command_dump,
	&command_check,	    &command_stats,   &command_sources, &command_top,	  &command_events,
	&command_replay,    &command_suggest, &command_export,	&command_serve,	  &command_upgrade,
	&command_complete,  &command_version, &command_help,
};

const char *gate_named(const struct context *context)
{
	return context->gate_given ? context->gate : NULL;
}

int gate_open_to_look(struct gate *gate, const struct context *context)
{
	return gate_open_named(gate, gate_named(context));
}

int main(int argc, char **argv)
{
	static const struct program sluice = {
		.name = "sluice",
		.commands = commands,
		.count = ARRAY_SIZE(commands),
		.usage = "Options stand before or after the command. Words that begin with - stand "
			 "after --.\n"
			 "Without -g, check, dump, events, lists, replay, show, sources, stats, "
			 "suggest\n"
			 "and top read the only gate that exists, and status, doctor, export and "
			 "serve\n"
			 "read all gates.\n",
		.finish = trial_finish,
	};

	return program_main(&sluice, argc, argv);
}
