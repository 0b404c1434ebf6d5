// SPDX-License-Identifier: GPL-2.0
/* Runs a command or a separate program, and prints errors and messages. */
#include "program/program.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/netns.h"
#include "base/text.h"
#include "gate/gate.h"
#include "program/writer.h"

const struct command *command_find(const struct program *program, const char *name)
{
	for (unsigned int i = 0; i < program->count; i++)
		if (!strcmp(program->commands[i]->name, name))
			return program->commands[i];
	return NULL;
}

int no_such_command(const struct program *program, const char *name)
{
	const char *names[program->count], *nearly;

	for (unsigned int i = 0; i < program->count; i++)
		names[i] = program->commands[i]->name;
	nearly = nearly_find(name, names, program->count);
	return nearly ? error_misuse("no-command", NULL,
				     "there is no command '%s'; did you mean '%s'? See 'sluice "
				     "help'",
				     name, nearly)
		      : error_misuse("no-command", NULL,
				     "there is no command '%s'; see 'sluice help'", name);
}

/* --- Other programs ------------------------------------------------------------------------- */

int program_exec(const char *name, char **argv)
{
	char path[PATH_MAX + NAME_MAX + sizeof("/sluice-")];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
	char *file;

	if (!isalpha((unsigned char)*name) || strlen(name) > NAME_MAX - strlen("sluice-"))
		return -ENOENT;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-')
			return -ENOENT;
	path[length < 0 ? 0 : length] = '\0';
	file = strrchr(path, '/');
	file = file ? file + 1 : path;
	sprintf(file, "sluice-%s", name);
	argv[0] = file;
	fflush(NULL);
	if (file > path && execv(path, argv) && errno == ENOENT)
		execvp(file, argv);
	/* EACCES may also mean that a directory of $PATH cannot be searched */
	if (errno == ENOENT || errno == EACCES || errno == ENOTDIR)
		return -ENOENT;
	return error_add(errno, "cannot-run", NULL, "cannot run %s: %s", file, strerror(errno));
}

/*
 * Executes the program of COMMAND, which is argv[at]. Its arguments are the other words of argv,
 * and also COMMAND if the program has several commands.
 */
static int command_exec(const struct program *program, char **argv, int at)
{
	const char *name = argv[at];
	const struct command *command = command_find(program, name);
	bool has_several = command && command->program;
	int err;

	for (char **word = &argv[at]; !has_several && *word; word++)
		word[0] = word[1];
	err = program_exec(has_several ? command->program : name, argv);
	if (err != -ENOENT)
		return err;
	if (!command)
		return no_such_command(program, name);
	return error_add(ENOENT, "not-installed", NULL,
			 "'%s' is in the package %s; install it: 'apt install %s'", name,
			 command->package, command->package);
}

/* --- Messages ------------------------------------------------------------------------------- */

/* priorities of messages by severity, as in sd-daemon(3) */
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

/* the last printed error was a wrong argument or a wrong file */
static bool last_is_misuse;
static bool has_failed; /* an error was printed */

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

/* --- Running -------------------------------------------------------------------------------- */

const struct value_type value_trial = VALUE_TIME(5 * NS_PER_SEC, 3600 * NS_PER_SEC);

/* Prints a message of libbpf on standard error, with option -v. */
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	return vfprintf(stderr, format, args);
}

static int run(struct context *context, struct command_line *line, int argc, char **argv)
{
	const struct program *program = context->program;
	const struct command *command = NULL;
	const char *const *option = line->option;
	_cleanup_free_ void *args = NULL;
	unsigned int mark = error_count();
	int err;

	/* look for -j first, so that errors in other options are also printed as JSON */
	for (char **word = argv + 1; *word && strcmp(*word, "--"); word++)
		context->json |= !strcmp(*word, "-j") || !strcmp(*word, "--json");
	print_begin(stdout, context->json);
	if (program->count == 1)
		line->words[line->count++] = (char *)program->commands[0]->name;
	err = options_parse(argc, argv, line);
	if (line->count)
		command = context->command = command_find(program, line->words[0]);
	if (line->count && !command) {
		/* ignore the unknown option, because the program sluice-COMMAND may have it */
		error_drop(mark);
		return command_exec(program, argv, line->first);
	}
	if (err)
		return err;
	context->json = option[OPTION_JSON];
	print_begin(stdout, context->json);
	if (option[OPTION_VERSION])
		return command_version.run(context, NULL);
	if (!command) {
		usage_print(program, !option[OPTION_HELP]);
		return option[OPTION_HELP] ? 0 : -EINVAL;
	}
	/* in `sluice complete ... help`, `help` is a word to complete, not the command */
	if (option[OPTION_HELP] || (line->count == 2 && !strcmp(line->words[1], "help") &&
				    strcmp(command->name, "complete"))) {
		command_print(command);
		return 0;
	}
	if (!command->run)
		return command_exec(program, argv, line->first);
	libbpf_set_print(option[OPTION_VERBOSE] ? print_libbpf : NULL);
	context->gate = option[OPTION_GATE] ?: GATE_USUAL;
	context->gate_given = option[OPTION_GATE];
	args = calloc(1, command->args_size ?: 1);
	if (!args)
		return error_add(ENOMEM, "no-memory", command->name, "out of memory");
	err = gate_check_name(context->gate);
	if (!err && option[OPTION_NETNS])
		err = netns_enter(option[OPTION_NETNS]);
	err = err ?: words_parse(context, line, args);
	if (err)
		return err;
	err = command->run(context, args);
	if (program->finish)
		program->finish(context, err);
	return err;
}

void error_print(const struct sl_error *error)
{
	print_object(NULL);
	print_object("error");
	print_string("id", NULL, error->id);
	print_string("object", NULL, error->object ?: "");
	print_string("text", NULL, error->text);
	print_string("hint", NULL, error->hint ?: "");
	print_end();
	print_end();
}

/*
 * Prints the errors, and returns the exit status. If a write to standard output failed earlier,
 * writes again to get the errno, and adds an error.
 */
static int output_end(const struct context *context, int result)
{
	int exit_failed = context->command ? context->command->exit_failed ?: 1 : 1;
	/* the first error is the cause of the later errors */
	const struct sl_error *first = NULL;
	int exit = result;
	bool failed;

	for (unsigned int i = error_count(); i--;)
		first = error_get(i)->severity == SL_ERROR ? error_get(i) : first;
	if (result < 0 && context->json && !print_is_begun() && first)
		error_print(first);
	error_flush();
	if (result < 0)
		exit = (has_failed ? last_is_misuse : result == -EINVAL) ? 2 : exit_failed;
	failed = fflush(stdout);
	if (failed || ferror(stdout)) {
		if (!failed)
			failed = putchar('\n') == EOF || fflush(stdout);
		error_add(errno, "cannot-write", NULL, "cannot write the output%s%s",
			  failed ? ": " : "", failed ? strerror(errno) : "");
		exit = exit_failed;
	} else if (!print_is_whole() && !exit) {
		error_add(ENOMEM, "no-memory", NULL, "the output is incomplete: %s", why(ENOMEM));
		exit = exit_failed;
	}
	error_flush();
	return exit;
}

int program_main(const struct program *program, int argc, char **argv)
{
	const struct option_table options = options_of(program->commands, program->count);
	/* small enough for the stack: the kernel limits argv to a quarter of the stack */
	char *words[argc + 2];
	struct command_line line = {.options = &options, .words = words};
	struct context context = {.program = program};
	int result;

	/*
	 * Opens /dev/null for each closed descriptor of 0, 1 and 2. Otherwise the next opened file
	 * could get descriptor 2, and error messages would go into it. Descriptor 0 is opened
	 * write-only, and 1 and 2 read-only, so that using them fails.
	 */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			exit(1);
	/* ignore SIGXFSZ, so that a write past the file size limit fails with EFBIG */
	signal(SIGXFSZ, SIG_IGN);
	error_set_printer(message_print);
	memset(words, 0, sizeof(words));
	result = run(&context, &line, argc, argv);
	return output_end(&context, result);
}
