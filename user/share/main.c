// SPDX-License-Identifier: GPL-2.0
/* The program sluice-share: reads the options of `share` (sharing/command_share.h). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/netns.h"
#include "base/text.h"
#include "program/program.h"
#include "rules/value.h"
#include "share/share.h"
#include "sharing/command_share.h"
#include "sharing/share_state.h"

/* Characters of the boot id: 32 bits are enough to tell machines apart. */
#define BOOT_ID	     8
#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

/* "HOST/GATE/BOOT", and a NUL */
#define SHARE_NODE (HOST_NAME_MAX + GATE_NAME + BOOT_ID + 3)

/*
 * An IPv6 address without brackets does not show which part is the port. The store reports its
 * nodes in this form, always with a port, but a user may omit the port.
 */
static int store_check(const char *text)
{
	size_t size;

	for (const char *one = text;; one += size + 1) {
		const char *colon;

		size = strcspn(one, ",");
		colon = memchr(one, ':', size);
		if (*one != '[' && colon && memchr(colon + 1, ':', size - (colon + 1 - one)))
			return error_misuse("bad-store", NULL,
					    "'%.*s' is no store; write an IPv6 address as "
					    "[ADDR]:PORT",
					    (int)size, one);
		if (!one[size])
			break;
	}
	if (store_address_is_valid(text))
		return 0;
	return error_misuse("bad-store", NULL,
			    "'%s' is no store; write HOST:PORT, or up to 16 of them with commas "
			    "between",
			    text);
}

/* Machines that are copies of one image have the same host name, but never the same boot id. */
static int node_default(const char *gate, char node[SHARE_NODE])
{
	char host[HOST_NAME_MAX + 1], boot[BOOT_ID + 1] = "";
	_cleanup_close_ int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);

	if (gethostname(host, sizeof(host)))
		return error_add(errno, "no-node", NULL,
				 "cannot read the name of this machine: %s; specify --node",
				 strerror(errno));
	if (fd < 0 || read(fd, boot, BOOT_ID) != BOOT_ID)
		return error_add(EIO, "no-node", BOOT_ID_PATH, "cannot be read; specify --node");
	snprintf(node, SHARE_NODE, "%s/%.*s/%s", host, GATE_NAME, gate, boot);
	return 0;
}

/* The store keeps the name of a node as a word. */
static int node_read(const char *text, const char *gate, char node[SHARE_NODE])
{
	if (!text)
		return node_default(gate, node);
	for (const char *c = text; *c; c++)
		if (!isgraph((unsigned char)*c))
			return error_misuse("bad-node", object_of("--node", text),
					    "it has other characters; write letters, digits and "
					    "signs of ASCII, no blanks");
	if (!*text || strlen(text) >= SHARE_NODE)
		return error_misuse("bad-node", object_of("--node", text),
				    "it is too short or too long; write 1 to %d characters",
				    SHARE_NODE - 1);
	strcpy(node, text);
	return 0;
}

/*
 * Reads the first line of a file that other users can neither write nor read. The group of root's
 * file may read it, because the user sluice is in it.
 */
static int password_read(const char *path, struct file *ret)
{
	bool exists = false;
	int err = file_read_own(path, ret, &exists);

	if (err)
		return err;
	if (!exists)
		return error_add(ENOENT, "no-file", path, "there is no such file");
	if (ret->mode & (ret->owner ? 0077 : 0037))
		return error_add(EPERM, "not-private", path,
				 "mode %04o lets others read the password; use 'chmod %s %s'",
				 ret->mode, ret->owner ? "600" : "640", word_typed(path));
	ret->text[strcspn(ret->text, "\r\n")] = '\0';
	if (!*ret->text)
		return error_add(EINVAL, "no-password", path,
				 "its first line is empty, and must be the password");
	return 0;
}

static void password_free(struct file *file)
{
	if (file->text)
		explicit_bzero(file->text, file->size);
	file_free(file);
}

/*
 * Formats the command that was typed, with its namespace, its gate and its options, so that it can
 * be typed again. "": it is too long.
 */
static void command_format(const char *gate, const struct share_words *words,
			   char text[SHARE_COMMAND])
{
	char round[UNITS_TEXT], most[16];
	const char *const options[][2] = {
		{"", words->store},
		{" --name", words->name},
		{" --node", words->node},
		{" --round", words->round_ns ? time_format(words->round_ns, round) : NULL},
		{" --on-loss", words->on_loss ? on_loss_words[words->on_loss] : NULL},
		{" --most", words->most ? most : NULL},
		{" --user", words->user},
		{" --password-file", words->password_file},
		{" --tls", words->ca_file},
	};
	int length =
		snprintf(text, SHARE_COMMAND, "sluice %s%sshare", netns_typed(), gate_option(gate));

	snprintf(most, sizeof(most), "%u", words->most);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const char *value = options[i][1];

		if (!value)
			continue;
		if (strlen(value) <= WORD_TYPED) /* otherwise it is cut */
			length += snprintf(text + length, SHARE_COMMAND - length, "%s %s",
					   options[i][0], word_typed(value));
		if (strlen(value) > WORD_TYPED || length >= SHARE_COMMAND) {
			*text = '\0';
			return;
		}
	}
}

static int share_command_run(const struct context *context, const void *data)
{
	const struct share_words *words = data;
	_cleanup_(password_free) struct file password = {0};
	char node[SHARE_NODE], command[SHARE_COMMAND];
	struct share_args args = {
		.gate = context->gate,
		.name = words->name ?: context->gate,
		.node = node,
		.command = command,
		.round_ms = words->round_ns ? words->round_ns / NS_PER_MS : SHARE_ROUND_MS,
		.most = words->most ?: SHARE_MOST,
		.on_loss = words->on_loss,
		.store = {.address = words->store, .user = words->user, .ca_file = words->ca_file},
	};
	int err = store_check(words->store);

	if (!err)
		err = node_read(words->node, context->gate, node);
	if (err)
		return err;
	if (words->name && !gate_name_is_valid(words->name))
		return error_misuse("bad-name", object_of("--name", words->name),
				    "it is no name; write letters, digits, - and _, at most %d",
				    GATE_NAME);
	if (words->user && !words->password_file)
		return error_misuse("no-password", object_of("--user", words->user),
				    "it needs a password; add --password-file");
	if (words->password_file) {
		err = password_read(words->password_file, &password);
		if (err)
			return err;
		args.store.password = password.text;
	}
	command_format(context->gate, words, command);
	return share_run(&args);
}

int main(int argc, char **argv)
{
	static struct command share;
	static const struct command *const commands[] = {&share};
	static const struct program program = {
		.name = "sluice-share", .commands = commands, .count = 1};

	share = command_share;
	share.run = share_command_run;
	share.package = NULL;
	return program_main(&program, argc, argv);
}
