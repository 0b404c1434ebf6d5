// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "gate/gate.h"
#include "sluice.h"

struct command {
	const char *name;
	command_fn *run;
	unsigned int takes; /* options of its own */
	const char *usage;
	const char *brief;
	const char *details;
};

static command_fn cmd_help;

#define LIST_DETAILS                                                                               \
	"Of all rules, entries and limits alike, the longest prefix decides. By hand a prefix "    \
	"is\n"                                                                                     \
	"allowed or denied, the later word counts; its limits stay, and decide again when the\n"   \
	"entry is over. A file's entries are a list with a name of its own, beside what is said\n" \
	"by hand and beside other lists: an entry stays while any of them names it. By hand\n"     \
	"beats lists at the same prefix, and what is allowed by hand no list denies, however\n"    \
	"long its prefix. Where two lists differ on a prefix, allow counts.\n"                     \
	"-f FILE   the file's entries come onto its list. A line is an address, a prefix or a\n"   \
	"          range A-B; #, ; and // begin comments; also what ipset save and list print\n"   \
	"          of one set (timeouts are not read), and lines of JSON with a cidr. - is\n"      \
	"          standard input.\n"                                                              \
	"          All or nothing. The list has the file's absolute path as its name\n"            \
	"as NAME   the list of that name instead; also for prefixes: deny A B as NAME\n"           \
	"replace   what the file does not name goes from the list, in the same step. A file\n"     \
	"          without entries is refused\n"                                                   \
	"force     take an empty file, and prefixes shorter than /8 (IPv6: /16)\n"                 \
	"for TIME  30s, 10min, 1h, 7d: then the entry, or all the list, ends by itself.\n"         \
	"          Default: never. What is added to a list ends with it: another time is "         \
	"refused\n"                                                                                \
	"          without replace\n"                                                              \
	"'sluice lists' tells of all lists. What takes an entry or a list back: 'sluice "          \
	"undeny',\n"                                                                               \
	"'sluice unallow', 'sluice del -f FILE'."

#define UNLIST_DETAILS                                                                             \
	"PREFIX    its entry by hand; its limits stay, and so does what lists say of it\n"         \
	"as NAME   its entry on that list instead\n"                                               \
	"-f FILE   all the list of that file, or of that name; the file is not read"

static const struct command commands[] = {
	{"attach", cmd_attach, 0,
	 "attach DEV... [hook xdp|ingress|egress] [mode MODE] [sources N] [hot N]\n"
	 "                     [policies N] [hosts N] [prefixes N]",
	 "filter what a device receives or sends",
	 "Without a rule nothing is dropped, only counted. Makes the gate if it is not there yet.\n"
	 "hook      xdp (default): in the driver, the cheapest; ingress, egress: in TC\n"
	 "mode      of xdp: auto (default) takes native; where the driver has none, and on a tap,\n"
	 "          hook ingress, saying so. native; generic: a packet that the kernel, or who\n"
	 "          sent it, has merged of many counts as one there, as it does on a tap.\n"
	 "          Of ingress and egress: auto (default), tcx, clsact\n"
	 "The rest are sizes of the gate that this makes, 65536, 64k or 4m; what a gate has, only\n"
	 "'sluice apply FILE --resize' changes. 'sluice status' shows what memory it takes.\n"
	 "sources   sources whose level is remembered, of each family: 104 bytes each for every\n"
	 "          limit, 120 of IPv6, set aside at once. At least 256 for each CPU\n"
	 "hot       sources that the CPUs keep at hand, of each family: 80 bytes each, 88 of\n"
	 "          IPv6, and 168 for each CPU, set aside at once. At least 256 for each CPU\n"
	 "policies  prefixes that have limits; hosts: rules of whole addresses, of each family;\n"
	 "          prefixes: rules of anything shorter"},
	{"detach", cmd_detach, 0, "detach DEV...|all [hook xdp|ingress|egress]", "stop filtering",
	 "From all hooks, or one. With the gate's last device its rules, counters and pins go."},
	{"status", cmd_status, 0, "status", "gates, devices, and how full the maps are",
	 "pressure tells how newcomers fare: sources that have no bucket yet. quiet: each gets\n"
	 "one with its first packet. flood: so many come that a source has to send more than a\n"
	 "few packets first, so that forged ones take no memory; see 'sluice help newcomers'.\n"
	 "newcomers met: a packet counts once if its source is unknown, also if a list allows or\n"
	 "denies it, and once for each limit with another key (per 24, key dst) that is unknown.\n"
	 "insertions: ledgers and buckets together, more than one for a new source.\n"
	 "refused: insertions for which the kernel had no time or no room; such a packet is a\n"
	 "newcomer's. MEMORY is what the kernel sets aside for a map, or, where it does not,\n"
	 "what its entries take. newcomers: all maps by which these are met."},
	{"set", cmd_set, 0,
	 "set default|PREFIX [name NAME] rate RATE [burst BURST] [match MATCH]\n"
	 "                  [per LEN[/LEN6]] [key src|dst] [action drop|observe|block TIME]\n"
	 "                  [start full|empty] [inherit yes|no]\n"
	 "       sluice set PREFIX inherit yes|no",
	 "limit each source in a prefix",
	 "Each IPv4 address, and each IPv6 /64, has a token bucket of its own; so has each\n"
	 "address that is link-local or a translator's (fe80::/10, 64:ff9b::/96,\n"
	 "64:ff9b:1::/48). The longest prefix that covers a source decides; default covers all.\n"
	 "A prefix has up to 4 limits, each with a name: a packet passes when every limit that\n"
	 "matches it lets it.\n"
	 "NAME    which of them to set; all, unless it is said\n"
	 "RATE    500pps, 10kpps, 2mpps, 30/min, 5/h; 50mbit, 1gbit (of whole frames)\n"
	 "BURST   2000 packets, or 64kB of a bit rate, or a time, 250ms. Default: 250 ms at the\n"
	 "        rate, but at least 8 packets, or 128 kB\n"
	 "MATCH   any (default), tcp, udp, icmp (both families; in IPv6 neighbour discovery is a\n"
	 "        part of it), tcp-syn (SYN without ACK), fragment, proto N. Behind tcp, udp and\n"
	 "        tcp-syn: port 53, port 80,8000-8080 (the destination's, up to 8 ports and\n"
	 "        ranges). Behind any of them, or alone: vlan N.\n"
	 "        What cannot be read of a packet (headers too deep, or cut short) matches\n"
	 "per     how much of an address has a bucket together: 24 (IPv4), 56 (IPv6); for default\n"
	 "        both, 24/56. Default: 32/64\n"
	 "key     src (default), or dst: each destination of what is sent, on hook egress\n"
	 "action  of a packet that finds no credit: drop (default); observe counts it and lets it\n"
	 "        pass; block 30s drops it and all that the limit matches from there for 30 s\n"
	 "start   full (default) or empty: what the bucket of a new source holds\n"
	 "inherit  yes: the limits of the next shorter prefix hold here, too, but for those of "
	 "the\n"
	 "        same name, and its newcomers' budget where there is none; 4 limits in all.\n"
	 "        Default: yes where the prefix has no limits yet, else as it is"},
	{"newcomers", cmd_newcomers, 0,
	 "newcomers default|PREFIX rate RATE [burst BURST]\n       sluice newcomers "
	 "default|PREFIX none",
	 "limit all new sources in a prefix together",
	 "A newcomer is a source that has no bucket yet. As long as few come, each gets one with\n"
	 "its first packet. In a flood of them, as of forged addresses, a source gets one when it\n"
	 "has sent more than a few packets. Until then its packets are charged to this budget,\n"
	 "which all newcomers of the prefix share, and what finds no credit there is dropped:\n"
	 "over-budget. The prefix must have limits; with the last of them the budget goes.\n"
	 "RATE, BURST  as in 'sluice help set'\n"
	 "none         newcomers pass: the default"},
	{"allow", cmd_allow, TAKES(OPTION_FILE),
	 "allow default|PREFIX... [for TIME] [as NAME [replace]]\n"
	 "       sluice allow -f FILE [as NAME] [for TIME] [replace] [force]",
	 "let every packet of a prefix pass", LIST_DETAILS},
	{"deny", cmd_deny, TAKES(OPTION_FILE),
	 "deny default|PREFIX... [for TIME] [as NAME [replace]]\n"
	 "       sluice deny -f FILE [as NAME] [for TIME] [replace] [force]",
	 "drop every packet of a prefix", LIST_DETAILS},
	{"unallow", cmd_unallow, TAKES(OPTION_FILE),
	 "unallow default|PREFIX... [as NAME]\n       sluice unallow -f FILE",
	 "take back what allow said", UNLIST_DETAILS},
	{"undeny", cmd_undeny, TAKES(OPTION_FILE),
	 "undeny default|PREFIX... [as NAME]\n       sluice undeny -f FILE",
	 "take back what deny said", UNLIST_DETAILS},
	{"lists", cmd_lists, 0, "lists", "the lists, their entries and their ends", ""},
	{"del", cmd_del, TAKES(OPTION_FILE),
	 "del default|PREFIX [name NAME]\n       sluice del -f FILE",
	 "delete the limits of a prefix, or one of them",
	 "Without a name all limits of just this prefix go, and its newcomers' budget; where it\n"
	 "has none, its entry by hand. Where it has both, del refuses: see 'sluice help undeny'.\n"
	 "-f FILE takes all the list of that file, or of that name, back."},
	{"forgive", cmd_forgive, 0, "forgive ADDRESS", "give a source a full bucket, end its block",
	 "Under each limit that applies to it. A deny of its prefix stays: see 'sluice help "
	 "undeny'."},
	{"show", cmd_show, 0, "show", "the rules, as commands that make them", ""},
	{"apply", cmd_apply, TAKES(OPTION_RESIZE), "apply FILE [--resize]",
	 "make a file's rules those in force",
	 "Makes the gate if it is not there yet; 'sluice attach' then makes it filter.\n"
	 "The file is YAML or JSON, as 'sluice dump' writes it; - is standard input. All errors "
	 "in\n"
	 "it are said, with line and column, and then nothing is applied; else all of it is, in "
	 "one\n"
	 "step. Rules that the file does not have go. An entry whose 'until' has passed is left "
	 "out,\n"
	 "and that is said.\n"
	 "--resize  also make maps of the sizes that the file says, and carry over what they hold\n"
	 "Sizes are those of 'sluice help attach'."},
	{"diff", cmd_diff, 0, "diff FILE", "what apply would change",
	 "As the commands of 'sluice show', - before what would go and + before what would come.\n"
	 "Exit status 0: no difference; 1: there is one; 2: it cannot be told."},
	{"dump", cmd_dump, 0, "dump", "the rules, as a file for apply", ""},
	{"check", cmd_check, 0,
	 "check ADDRESS [proto NAME|N] [port N] [syn] [unread] [fragment first|later]\n"
	 "                     [vlan N] [size BYTES] [to ADDRESS] [hook xdp|ingress|egress]",
	 "what would happen to a packet now",
	 "Consumes nothing. The packet comes from ADDRESS; of what is not said it has nothing: no\n"
	 "port, no tag.\n"
	 "proto     tcp, udp, icmp, or the number of another protocol\n"
	 "port      the destination's\n"
	 "syn       a TCP packet with SYN and without ACK\n"
	 "unread    its headers are too deep, or cut short, to tell the rest: it matches each\n"
	 "          limit that asks for that\n"
	 "fragment  the first one, which has the ports, or a later one, which has not\n"
	 "vlan      of the outermost tag that is not 0\n"
	 "size      of the whole frame, which a bit rate charges; 1514 by default\n"
	 "to        the destination, for limits with key dst: the packet is sent, on hook egress\n"
	 "hook      where it is judged: all but key dst is the same everywhere"},
	{"stats", cmd_stats, 0, "stats", "what passed and what was dropped, and why", ""},
	{"sources", cmd_sources, 0,
	 "sources [ADDRESS|PREFIX] [top N] [sort busiest|passed|dropped|level]",
	 "the sources in memory, busiest first",
	 "Of one address or prefix, or of all. PASSED, DROPPED: packets since it is in memory.\n"
	 "top   only the first N\n"
	 "sort  busiest (default): by what it sent; passed; dropped; level: by the part of a "
	 "burst\n"
	 "      that it has left, those that are blocked first, those that no limit holds last"},
	{"export", cmd_export, 0, "export", "the counters in Prometheus's text format", ""},
	{"upgrade", cmd_upgrade, 0, "upgrade", "put this command's program under a running gate",
	 "Rules, buckets and counters stay, and no packet passes unfiltered. A gate of an older\n"
	 "version with other maps (from schema 4 on) is carried over to this one's; until then\n"
	 "only show, dump and diff can read it. An upgrade that was cut off: upgrade again."},
	{"version", cmd_version, 0, "version", "the version of this command", ""},
	{"help", cmd_help, 0, "help [COMMAND]", "this, or more about a command", ""},
};

#define COMMANDS ARRAY_SIZE(commands)

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void print_usage(FILE *out)
{
	fprintf(out, "usage: sluice [OPTION...] COMMAND ...\n");
	options_print(out);
	fprintf(out,
		"Options stand before or behind the command; a word that begins with - goes behind "
		"--.\n"
		"Without -g, check, dump, show, sources and stats look at the only gate there is; "
		"status\n"
		"and export tell of all.\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s  %s\n", commands[i].name, commands[i].brief);
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
	const char *names[COMMANDS], *nearly;

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	nearly = nearly_find(name, names, COMMANDS);
	return misuse("there is no command '%s': %s%s%s'sluice help'", name,
		      nearly ? "did you mean '" : "see ", nearly ?: "", nearly ? "'? See " : "");
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

static enum status run(const struct context *context, const struct command_line *line)
{
	const struct command *command = command_find(line->words[0]);
	enum status status;

	if (!command)
		return no_such_command(line->words[0]);
	if (line->option[OPTION_HELP] || (line->count == 2 && !strcmp(line->words[1], "help")))
		return print_help(command);
	status = options_check(line, command->name, command->takes);
	return status ? status : command->run(context, line->count, line->words);
}

static enum status run_line(const struct command_line *line)
{
	static char version[] = "version";
	const char *const *option = line->option;
	struct context context = {
		.gate = option[OPTION_GATE] ?: GATE_USUAL,
		.gate_given = option[OPTION_GATE],
		.json = option[OPTION_JSON],
		.file = option[OPTION_FILE],
		.resize = option[OPTION_RESIZE],
	};
	enum status status;

	if (option[OPTION_VERSION])
		return cmd_version(&context, 1, (char *[]){version});
	if (!line->count) {
		print_usage(option[OPTION_HELP] ? stdout : stderr);
		return option[OPTION_HELP] ? OK : MISUSED;
	}
	log_libbpf(option[OPTION_VERBOSE]);
	status = gate_check_name(context.gate);
	if (!status && option[OPTION_NETNS])
		status = netns_enter(option[OPTION_NETNS]);
	return status ? status : run(&context, line);
}

int main(int argc, char **argv)
{
	struct command_line line;
	enum status status = options_parse(argc, argv, &line);

	if (!status)
		status = run_line(&line);
	/* figures that did not reach their reader are a failure */
	if ((fflush(stdout) || ferror(stdout)) && !status)
		status = failure("cannot write the output: %s", strerror(errno));
	return status;
}

/* --- version -------------------------------------------------------------------------------- */

enum status cmd_version(const struct context *context, int argc, char **argv)
{
	if (argc > 1)
		return unexpected(argv[0], argv[1]);
	if (context->json)
		return json_print(
			json_pack("{s:s, s:i}", "version", SL_VERSION, "schema", SL_SCHEMA));
	printf("sluice %s, schema %d\n", SL_VERSION, SL_SCHEMA);
	return OK;
}
