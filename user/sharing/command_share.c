// SPDX-License-Identifier: GPL-2.0
#include "sharing/command_share.h"

#include "base/clock.h"

const char *const on_loss_words[] = {"local", "divide"};

static const struct value_type round_time = VALUE_TIME(20 * NS_PER_MS, NS_PER_SEC),
			       on_loss_choice =
				       VALUE_CHOICE("local|divide", on_loss_words, ON_LOSS_LOCAL),
			       most_number = {.name = "NUMBER",
					      .parse = number_parse,
					      .least = 1,
					      .most = SHARE_MOST_MAX};

static const struct word share_words[] = {
	{"STORE", OPERAND, VALUE_TEXT("STORE"), offsetof(struct share_words, store), NULL},
	{"--name", OPTION, VALUE_TEXT("NAME"), offsetof(struct share_words, name),
	 "nodes of this name share with each other; default: the name of the gate"},
	{"--node", OPTION, VALUE_TEXT("NODE"), offsetof(struct share_words, node),
	 "the name of this node, different on each node; default: HOST/GATE/BOOT-ID"},
	{"--round", OPTION, &round_time, offsetof(struct share_words, round_ns),
	 "interval of the exchanges with the store, 20ms to 1s; default: 110ms"},
	{"--on-loss", OPTION, &on_loss_choice, offsetof(struct share_words, on_loss),
	 "without the store or this process, limits apply to this node alone (default), or\n"
	 "are divided by the number of nodes seen last"},
	{"--most", OPTION, &most_number, offsetof(struct share_words, most),
	 "sources that are reported to the store at a time; default: 256"},
	{"--user", OPTION, VALUE_TEXT("USER"), offsetof(struct share_words, user),
	 "ACL user of the store"},
	{"--password-file", OPTION, VALUE_TEXT("FILE"), offsetof(struct share_words, password_file),
	 "its first line is the password; mode 0600, or 0640 if it is root's"},
	{"--tls", OPTION, VALUE_TEXT("CA-FILE"), offsetof(struct share_words, ca_file),
	 "use TLS; this CA must have signed a certificate for the store's host. Requires\n"
	 "hiredis_ssl"},
};

const struct command command_share = {
	.name = "share",
	.brief = "share limits with other machines, as a service",
	.details =
		"Shares the limits that say `shared yes` with other machines, through Redis or "
		"Valkey: STORE\n"
		"is HOST:PORT, or some nodes of a cluster separated by commas. It runs until "
		"SIGTERM or\n"
		"SIGHUP. No packet waits for the store. Without the store or this process, limits "
		"still apply.",
	.question = "which store?",
	COMMAND_WORDS(share_words, struct share_words),
	.package = "sluice-share",
};
