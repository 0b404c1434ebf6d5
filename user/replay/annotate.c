// SPDX-License-Identifier: GPL-2.0
#include "replay/annotate.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"

/*
 * The pcapng blocks that are written, in the byte order of this machine. Their lengths are
 * multiples of 4 bytes.
 */
struct section_block {
	uint32_t type, size, magic;
	uint16_t major, minor;
	int64_t section_size; /* -1: unknown */
	uint32_t size_again;
} __attribute__((packed));

struct interface_block {
	uint32_t type, size;
	uint16_t link, reserved;
	uint32_t snap;
	uint16_t option, option_size; /* if_tsresol */
	uint8_t digits, pad[3];
	uint32_t end_of_options;
	uint32_t size_again;
} __attribute__((packed));

struct packet_block {
	uint32_t type, size, interface, time_high, time_low, captured, length;
} __attribute__((packed));

struct option_head {
	uint16_t option, size;
};

#define OPTION_COMMENT 1

static void put(struct annotated *annotated, const void *bytes, size_t size)
{
	fwrite(bytes, 1, size, annotated->file);
}

static void put_padded(struct annotated *annotated, const void *bytes, size_t size)
{
	put(annotated, bytes, size);
	put(annotated, "\0\0\0", -size & 3);
}

/* Returns whether the file at a path is an input of the command. input: NULL if it is not given. */
static bool is_input(const char *path, const char *input)
{
	struct stat in, out;

	if (!input || stat(path, &out))
		return false;
	if (strcmp(input, "-") ? stat(input, &in) : fstat(STDIN_FILENO, &in))
		return false;
	return in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

int annotated_open(const char *path, const struct replay_words *words, struct annotated *ret)
{
	const struct section_block section = {0x0a0d0d0a, sizeof(section), 0x1a2b3c4d, 1, 0,
					      -1,	  sizeof(section)};
	const struct interface_block interface = {1, sizeof(interface), 1, 0, 0, 9, 1, 9, {0},
						  0, sizeof(interface)};

	if (!strcmp(path, "-"))
		return error_misuse("unexpected", "-w",
				    "standard output has the report; write the name of a file");
	if (is_input(path, words->capture))
		return error_misuse("same-file", path, "the capture itself; -w needs another file");
	for (size_t i = 0; i < ARRAY_SIZE(words->rules); i++)
		if (is_input(path, words->rules[i]))
			return error_misuse("same-file", path,
					    "the rules file of -f; -w needs another file");
	*ret = (struct annotated){fopen(path, "we"), path};
	if (!ret->file)
		return error_add(errno, "cannot-write", path, "cannot write it: %s",
				 strerror(errno));
	put(ret, &section, sizeof(section));
	put(ret, &interface, sizeof(interface));
	return 0;
}

void annotated_write(struct annotated *annotated, const struct capture_packet *packet,
		     const char *comment)
{
	struct option_head option = {OPTION_COMMENT, strlen(comment)};
	uint32_t size = sizeof(struct packet_block) + ((packet->size + 3) & ~3U) + sizeof(option) +
			((option.size + 3) & ~3U) + sizeof(uint32_t) + sizeof(size);
	const struct packet_block block = {
		6, size, 0, packet->ns >> 32, (uint32_t)packet->ns, packet->size, packet->length};

	put(annotated, &block, sizeof(block));
	put_padded(annotated, packet->bytes, packet->size);
	put(annotated, &option, sizeof(option));
	put_padded(annotated, comment, option.size);
	put(annotated, &(uint32_t){0}, sizeof(uint32_t));
	put(annotated, &size, sizeof(size));
}

int annotated_close(struct annotated *annotated)
{
	bool has_failed;

	if (!annotated->file)
		return 0;
	has_failed = ferror(annotated->file);
	errno = 0;
	has_failed |= fclose(annotated->file) != 0;
	annotated->file = NULL;
	if (!has_failed)
		return 0;
	return error_add(errno ?: EIO, "cannot-write", annotated->path, "it is incomplete: %s",
			 strerror(errno ?: EIO));
}
