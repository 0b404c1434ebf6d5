// SPDX-License-Identifier: GPL-2.0
/*
 * verifier_counts OBJECT: loads each program of a BPF object. Prints its name and the number of
 * instructions that the verifier processed. If the kernel refuses a program, prints the end of the
 * verifier's log to stderr.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Maximum entries of a map. Smaller maps save time, and do not change the verifier's counts. */
#define MAP_ENTRIES 64

#define LOG_SIZE  (1 << 24)
#define LOG_LINES 20 /* lines at the end of a log that are printed */

static void maps_shrink(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		if (!bpf_map__is_internal(map) && bpf_map__max_entries(map) > MAP_ENTRIES)
			bpf_map__set_max_entries(map, MAP_ENTRIES);
	}
}

/* Returns the last `lines` lines of a verifier's log, which contain the reason of a refusal. */
static const char *log_tail(const char *log, int lines)
{
	const char *tail = log + strlen(log);

	for (; tail > log; tail--)
		if (tail[-1] == '\n' && !lines--)
			break;
	return tail;
}

static void refusal_print(const char *name, int err, const char *log)
{
	struct utsname kernel = {0};

	uname(&kernel);
	fprintf(stderr, "verifier_counts: %s: Linux %s refuses it (%s)%s\n%s", name, kernel.release,
		strerror(-err), *log ? "; the verifier's last lines:" : "",
		log_tail(log, LOG_LINES));
}

static int program_print(struct bpf_object *object, const char *name, const char *log)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);
	int err = bpf_object__load(object);

	if (err) {
		refusal_print(name, err, log);
		return 1;
	}
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size)) {
		fprintf(stderr,
			"verifier_counts: %s: loaded, but the kernel has no information about it\n",
			name);
		return 1;
	}
	printf("%s %u\n", name, info.verified_insns);
	return 0;
}

static int program_count(const char *path, const char *name, char *log)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program;
	int failed;

	if (!object)
		return 1;
	log[0] = '\0';
	maps_shrink(object);
	bpf_object__for_each_program (program, object) {
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), name));
		bpf_program__set_log_buf(program, log, LOG_SIZE);
	}
	failed = program_print(object, name, log);
	bpf_object__close(object);
	return failed;
}

int main(int argc, char **argv)
{
	struct bpf_object *names = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	char *log = malloc(LOG_SIZE);
	struct bpf_program *program;
	int failed = 0;

	if (!names || !log) {
		fprintf(stderr, "usage: verifier_counts OBJECT\n");
		return 2;
	}
	libbpf_set_print(NULL);
	bpf_object__for_each_program (program, names)
		failed |= program_count(argv[1], bpf_program__name(program), log);
	bpf_object__close(names);
	free(log);
	return failed;
}
