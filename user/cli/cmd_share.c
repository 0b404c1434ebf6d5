// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/netns.h"
#include "base/text.h"
#include "cli/command.h"
#include "gate/pins.h"
#include "rules/value.h"
#include "share/share.h"
#include "share/share_state.h"

/* A part of the boot id, of which 32 bits are enough to tell machines apart. */
#define BOOT_ID	     8
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

/* "HOST/GATE/BOOT", and a NUL */
#define SHARE_NODE (HOST_NAME_MAX + GATE_NAME + BOOT_ID + 3)

struct share_words {
	const char *store;
	const char *name;
	const char *node;
	const char *round;
	const char *on_loss;
	const char *most;
	const char *user;
	const char *password_file;
	const char *ca_file;
};

/* What lines count, in 32 bits, is read once a round: at 20 Mpps they wrap after 1.6 s. */
static const struct value_type round_time = VALUE_TIME(20 * NS_PER_MS, NS_PER_SEC);

/*
 * Of an IPv6 address without brackets nothing tells which part is the port. The store itself writes
 * its nodes so, with a port in any case; what a user writes may have none.
 */
static int store_check(const char *text)
{
	size_t size;

	for (const char *one = text;; one += size + 1) {
		const char *colon;

		size = strcspn(one, ",");
		colon = memchr(one, ':', size);
		if (*one != '[' && colon && memchr(colon + 1, ':', size - (colon + 1 - one)))
			return misuse("'%.*s' is no store: write an IPv6 address as [ADDR]:PORT",
				      (int)size, one);
		if (!one[size])
			break;
	}
	return store_address_is_valid(text)
		       ? OK
		       : misuse("'%s' is no store: write HOST:PORT, or up to 16 of them with "
				"commas between",
				text);
}

static int on_loss_read(const char *text, enum flow_on_loss *ret)
{
	*ret = FLOW_LOCAL;
	if (!text || !strcmp(text, "local"))
		return OK;
	*ret = FLOW_DIVIDE;
	return strcmp(text, "divide") ? misuse("--on-loss '%s': write local or divide", text) : OK;
}

static int most_read(const char *text, unsigned int *ret)
{
	const char *end;

	*ret = SHARE_MOST;
	end = text ? number_read(text, SHARE_MOST_MAX, ret) : "";
	return end && !*end && *ret && *ret <= SHARE_MOST_MAX
		       ? OK
		       : misuse("--most '%s': write a number, 1 to %d", text, SHARE_MOST_MAX);
}

/*
 * Nodes of one name count as one, and copies of one machine have one host name: the boot id, which
 * the kernel draws at random, tells these apart.
 */
static int node_default(const char *gate, char node[SHARE_NODE])
{
	char host[HOST_NAME_MAX + 1], boot[BOOT_ID + 1] = "";
	int fd;

	if (gethostname(host, sizeof(host)))
		return failure("cannot read the name of this machine: %s: give --node",
			       strerror(errno));
	fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, boot, BOOT_ID) != BOOT_ID)
		boot[0] = '\0';
	if (fd >= 0)
		close(fd);
	if (!*boot)
		return failure(BOOT_ID_PATH " cannot be read: give --node");
	snprintf(node, SHARE_NODE, "%s/%.*s/%s", host, GATE_NAME, gate, boot);
	return OK;
}

/* A node is a word that the store keeps. */
static int node_read(const char *text, const char *gate, char node[SHARE_NODE])
{
	if (!text)
		return node_default(gate, node);
	for (const char *c = text; *c; c++)
		if (!isgraph((unsigned char)*c))
			return misuse("--node '%s': write letters, digits and signs of ASCII, no "
				      "blanks",
				      text);
	if (!*text || strlen(text) >= SHARE_NODE)
		return misuse("--node '%s': write 1 to %d characters", text, SHARE_NODE - 1);
	strcpy(node, text);
	return OK;
}

/*
 * Reads the first line of a file that other users can neither write nor read. The group of root's
 * file may read it, because the user sluice does.
 */
static int password_read(const char *path, struct file *ret)
{
	bool is_there = false;
	int status = path ? file_read_own(path, ret, &is_there) : OK;

	if (status || !path)
		return status;
	if (!is_there)
		return failure("%s: there is no such file", path);
	if (ret->mode & (ret->owner ? 0077 : 0037)) {
		status = failure("%s: mode %04o lets others read the password; use 'chmod %s %s'",
				 path, ret->mode, ret->owner ? "600" : "640", word_typed(path));
		file_free(ret);
		return status;
	}
	ret->text[strcspn(ret->text, "\r\n")] = '\0';
	if (*ret->text)
		return OK;
	file_free(ret);
	return failure("%s: its first line is empty, and has to be the password", path);
}

static int words_read(const struct context *context, const struct share_words *words,
			      char node[SHARE_NODE], struct share_args *args)
{
	uint64_t round_ns = 0;
	int status = store_check(words->store);

	if (!status && words->round)
		status = value_parse(&round_time, "--round", words->round, &round_ns);
	args->round_ms = round_ns ? round_ns / NS_PER_MS : SHARE_ROUND_MS;
	if (!status)
		status = on_loss_read(words->on_loss, &args->on_loss);
	if (!status)
		status = most_read(words->most, &args->most);
	if (!status)
		status = node_read(words->node, context->gate, node);
	if (!status && words->name && !gate_name_is_valid(words->name))
		status = misuse("--name '%s': write letters, digits, - and _, at most %d",
				words->name, GATE_NAME);
	if (!status && words->user && !words->password_file)
		status = misuse("--user '%s': it takes --password-file, too", words->user);
	return status;
}

static const struct word share_words[] = {
	{"STORE", OPERAND, VALUE_TEXT("STORE"), offsetof(struct share_words, store), NULL},
	{"--name", OPTION, VALUE_TEXT("NAME"), offsetof(struct share_words, name),
	 "nodes of this name share with each other; default: the name of the gate"},
	{"--node", OPTION, VALUE_TEXT("NODE"), offsetof(struct share_words, node),
	 "how the others count this node, each by another name; default: HOST/GATE/BOOT-ID"},
	{"--round", OPTION, VALUE_TEXT("TIME", .extent = VALUE_NUMBERS), offsetof(struct share_words, round),
	 "interval of the exchanges with the store, 20ms to 1s; default: 110ms"},
	{"--on-loss", OPTION, VALUE_TEXT("local|divide"), offsetof(struct share_words, on_loss),
	 "without the store, or this process, limits are this node's alone (default), or\n"
	 "divided by the nodes seen last"},
	{"--most", OPTION, VALUE_TEXT("NUMBER"), offsetof(struct share_words, most),
	 "sources that are reported to the store at a time; default: 256"},
	{"--user", OPTION, VALUE_TEXT("USER"), offsetof(struct share_words, user),
	 "of the store's access list"},
	{"--password-file", OPTION, VALUE_TEXT("FILE"), offsetof(struct share_words, password_file),
	 "its first line is the password; mode 0600, or 0640 if it is root's"},
	{"--tls", OPTION, VALUE_TEXT("CA-FILE"), offsetof(struct share_words, ca_file),
	 "use TLS; the store needs a certificate for its host from this authority. Needs "
	 "hiredis_ssl"},
};

/*
 * The command that was typed, to be typed again: with its namespace, its gate and its options. "":
 * it is too long.
 */
static void command_write(const struct context *context, const struct share_words *words,
			  char text[SHARE_COMMAND])
{
	int length = snprintf(text, SHARE_COMMAND, "sluice %s%sshare", netns_typed(),
			      gate_option(context->gate));

	for (size_t i = 0; i < ARRAY_SIZE(share_words); i++) {
		const struct word *word = &share_words[i];
		const char *value = *(const char *const *)((const char *)words + word->field);
		const char *name = word->kind == OPTION ? word->name : "";

		if (!value)
			continue;
		if (strlen(value) <= WORD_TYPED) /* else it is cut */
			length += snprintf(text + length, SHARE_COMMAND - length, "%s%s %s",
					   *name ? " " : "", name, word_typed(value));
		if (strlen(value) > WORD_TYPED || length >= SHARE_COMMAND) {
			*text = '\0';
			return;
		}
	}
}

static int share_command_run(const struct context *context, const void *data)
{
	const struct share_words *words = data;
	char node[SHARE_NODE];
	char command[SHARE_COMMAND];
	struct file password = {0};
	struct share_args args = {
		.gate = context->gate,
		.name = words->name ?: context->gate,
		.node = node,
		.command = command,
		.store = {.address = words->store,
			  .user = words->user,
			  .tls = words->ca_file,
			  .ca_file = words->ca_file},
	};
	int status = words_read(context, words, node, &args);

	if (!status)
		status = password_read(words->password_file, &password);
	args.store.password = password.text;
	command_write(context, words, command);
	if (!status)
		status = share_run(&args);
	if (password.text)
		explicit_bzero(password.text, password.size);
	file_free(&password);
	return status;
}

static const char share_details[] =
	"Shares the limits that say `shared yes` with other machines, through Redis or Valkey: "
	"STORE\n"
	"is HOST:PORT, or some nodes of a cluster with commas between. It stays until SIGTERM or\n"
	"SIGHUP. No packet waits for the store; without this process, or the store, limits go on.";

const struct command command_share = {
	.name = "share",
	.brief = "share limits with other machines, as a service",
	.details = share_details,
	.question = "which store?",
	COMMAND_WORDS(share_words, struct share_words),
	.run = share_command_run,
};
