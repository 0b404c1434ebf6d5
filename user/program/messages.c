// SPDX-License-Identifier: GPL-2.0
#include "program/messages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "program/writer.h"

/* Priorities of sd-daemon(3) and syslog(3). */
static const int priorities[] = {
	[SL_ERROR] = 3,
	[SL_WARNING] = 4,
	[SL_NOTICE] = 5,
	[SL_INFO] = 6,
};

bool journal_reads(const char *stream, const struct stat *st)
{
	unsigned long long device, inode;
	int length = 0;

	if (!stream || sscanf(stream, "%llu:%llu%n", &device, &inode, &length) != 2)
		return false;
	return !stream[length] && device == st->st_dev && inode == st->st_ino;
}

static bool last_is_misuse; /* of the last printed error */
static bool has_failed;

void message_print(const struct sl_error *error)
{
	static int is_journal = -1;
	char *text = error_format(error), priority[8] = "";
	struct stat st;

	if (is_journal < 0)
		is_journal =
			!fstat(STDERR_FILENO, &st) && journal_reads(getenv("JOURNAL_STREAM"), &st);
	if (is_journal)
		snprintf(priority, sizeof(priority), "<%d>", priorities[error->severity]);
	fflush(stdout);
	fprintf(stderr, "%ssluice: %s\n", priority, text ?: "out of memory");
	free(text);
	if (error->severity == SL_ERROR) {
		has_failed = true;
		last_is_misuse = error->is_misuse;
	}
}

int messages_exit_status(int err, bool json)
{
	bool is_wanted = err && json && !print_is_begun();

	/* the first error of the list is the cause of those that follow */
	for (unsigned int i = 0; is_wanted && i < error_count(); i++) {
		const struct sl_error *error = error_get(i);

		if (error->severity != SL_ERROR)
			continue;
		print_object(NULL);
		print_object("error");
		print_string("id", NULL, error->id);
		print_string("object", NULL, error->object ?: "");
		print_string("text", NULL, error->text);
		print_string("hint", NULL, error->hint ?: "");
		print_end();
		print_end();
		break;
	}
	error_flush();
	if (!err)
		return 0;
	return (has_failed ? last_is_misuse : err == -EINVAL) ? 2 : 1;
}
