// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "gate.h"
#include "netns.h"

struct command {
	const char *name;
	command_fn *run;
	const char *usage;
	const char *brief;
	const char *details;
};

static command_fn cmd_help;

static const struct command commands[] = {
	{"attach", cmd_attach, "attach DEV... [hook xdp|ingress|egress] [mode MODE]",
	 "filter what a device receives or sends",
	 "Without a rule nothing is dropped, only counted. Makes the gate if it is not there yet.\n"
	 "hook   xdp (default): in the driver, the cheapest; ingress, egress: in TC\n"
	 "mode   of xdp: auto (default) takes native or settles for generic, saying so; native;\n"
	 "       generic. Of ingress and egress: auto (default), tcx, clsact"},
	{"detach", cmd_detach, "detach DEV...|all [hook xdp|ingress|egress]", "stop filtering",
	 "With the gate's last device its rules, counters and pins go, too."},
	{"status", cmd_status, "status", "gates, devices, and how full the maps are", ""},
	{"set", cmd_set, "set default|PREFIX rate RATE [burst BURST]",
	 "limit each source in a prefix",
	 "Each IPv4 address, and each IPv6 /64, has a token bucket of its own. The longest prefix\n"
	 "that covers a source decides; default covers all.\n"
	 "RATE   500pps, 10kpps, 2mpps, 30/min, 5/h; 50mbit, 1gbit (of whole frames)\n"
	 "BURST  2000 packets, or 64kB of a bit rate, or a time, 250ms. Default: 250 ms at the "
	 "rate,\n"
	 "       but at least 8 packets, or 128 kB"},
	{"del", cmd_del, "del default|PREFIX", "delete a rule", ""},
	{"show", cmd_show, "show", "the rules, as commands that make them", ""},
	{"check", cmd_check, "check ADDRESS [size BYTES]", "what would happen to a source now",
	 "Consumes nothing. size: of the frame that is tried against a bit rate; 1514 by default."},
	{"stats", cmd_stats, "stats", "what passed and what was dropped, and why", ""},
	{"sources", cmd_sources, "sources [PREFIX]", "the sources in memory, busiest first", ""},
	{"export", cmd_export, "export", "the counters in Prometheus's text format", ""},
	{"version", cmd_version, "version", "the version of this command", ""},
	{"help", cmd_help, "help [COMMAND]", "this, or more about a command", ""},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void print_usage(FILE *out)
{
	fprintf(out, "usage: sluice [-g GATE] [-n NETNS] [-j] [-v] COMMAND ...\n"
		     "  -g GATE   the gate, a named set of rules; main by default\n"
		     "  -n NETNS  the network namespace of the devices ('ip netns')\n"
		     "  -j        JSON on standard output\n"
		     "  -v        what libbpf and the kernel say, on standard error\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].brief);
}

static enum status print_help(const struct command *command)
{
	printf("usage: sluice %s\n%s\n", command->usage, command->brief);
	if (*command->details)
		printf("\n%s\n", command->details);
	return OK;
}

static enum status no_such_command(const char *name)
{
	return misuse("there is no command '%s': see 'sluice help'", name);
}

static enum status cmd_help(const struct context *context, int argc, char **argv)
{
	const struct command *command;

	(void)context;
	if (argc > 2)
		return unexpected("help", argv[2]);
	if (argc == 1) {
		print_usage(stdout);
		return OK;
	}
	command = command_find(argv[1]);
	return command ? print_help(command) : no_such_command(argv[1]);
}

static bool is_help(const char *word)
{
	return !strcmp(word, "help") || !strcmp(word, "-h") || !strcmp(word, "--help");
}

static enum status run(const struct context *context, int argc, char **argv)
{
	const struct command *command = command_find(is_help(argv[0]) ? "help" : argv[0]);

	if (!command)
		return no_such_command(argv[0]);
	if (argc == 2 && is_help(argv[1]))
		return print_help(command);
	return command->run(context, argc, argv);
}

static enum status no_such_option(char **argv)
{
	/* optopt tells the letter; of a long option, the word does */
	if (optopt)
		return misuse("there is no option '-%c': see 'sluice help'", optopt);
	return misuse("there is no option '%s': see 'sluice help'", argv[optind - 1]);
}

/* Options before the command. */
static enum status parse_options(int argc, char **argv, struct context *context, bool *ret_help)
{
	static const struct option long_options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	const char *netns = NULL;
	bool verbose = false;
	enum status status;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:g:n:jvh", long_options, NULL)) != -1) {
		switch (option) {
		case 'g':
			context->gate = optarg;
			context->gate_given = true;
			break;
		case 'n':
			netns = optarg;
			break;
		case 'j':
			context->json = true;
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			*ret_help = true;
			return OK;
		case ':':
			return misuse("-%c needs a value: see 'sluice help'", optopt);
		default:
			return no_such_option(argv);
		}
	}
	log_libbpf(verbose);
	status = gate_check_name(context->gate);
	return !status && netns ? netns_enter(netns) : status;
}

int main(int argc, char **argv)
{
	struct context context = {.gate = "main"};
	bool help = false;
	enum status status = parse_options(argc, argv, &context, &help);

	if (help)
		print_usage(stdout);
	else if (!status && optind == argc)
		print_usage(stderr);
	if (!help && !status)
		status = optind == argc ? MISUSED : run(&context, argc - optind, argv + optind);
	/* figures that did not reach their reader are a failure */
	if ((fflush(stdout) || ferror(stdout)) && !status)
		status = fail("cannot write the output: %s", strerror(errno));
	return status;
}
