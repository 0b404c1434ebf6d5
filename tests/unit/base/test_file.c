// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/base/file.h, which reads files, and refuses binary files and files that change during
 * the read.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include "test.h"
#include "base/error.h"
#include "base/file.h"
#include "scratch.h"

/*
 * Writes the first `size` bytes of `text` to a temporary file. Returns the result of file_read()
 * for this file.
 */
static int bytes_read(const char *text, size_t size, struct file *ret)
{
	int status;

	file_make("file", text, size);
	status = file_read("file", ret);
	unlink("file");
	return status;
}

/* Clears the list of errors. Returns the id of the last error, or "" if the list is empty. */
static const char *error_taken(void)
{
	const struct sl_error *error = error_last(0);
	const char *id = error ? error->id : "";

	error_drop(0);
	return id;
}

/* Checks that file_read() fails with this error, and leaves `ret` unchanged. */
static void expect_refused(const char *path, int err, const char *id)
{
	struct file file = {.size = 42};

	assert_int_equal(file_read(path, &file), err);
	assert_int_equal(file.size, 42);
	assert_string_equal(error_taken(), id);
}

/* --- Bytes ---------------------------------------------------------------------------------- */

TEST(test_any_bytes_but_nul_are_read)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *error;
		size_t skipped; /* length of the byte order mark, which file_read() skips */
	} cases[] = {
		{"", 0, "", 0},
		{"a\n\tb", 4, "", 0},
		{"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 19,
		 "", 0},
		{"\xff", 1, "", 0},
		{"\xef\xbb\xbfxy", 5, "", 3},
		{"a\0b", 3, "nul-byte", 0},
		{"\0", 1, "nul-byte", 0},
		{"a\0", 2, "nul-byte", 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct file file = {0};
		int err = bytes_read(cases[i].bytes, cases[i].size, &file);

		assert_string_equal(error_taken(), cases[i].error);
		assert_int_equal(err, *cases[i].error ? -EINVAL : 0);
		if (err)
			continue;
		assert_int_equal(file.size, cases[i].size - cases[i].skipped);
		assert_memory_equal(file.text, cases[i].bytes + cases[i].skipped, file.size);
		assert_int_equal(file.text[file.size], '\0');
		file_free(&file);
	}
}

TEST(test_all_bytes_of_any_size_are_read)
{
	static char text[3 << 20];
	static const size_t sizes[] = {1, 4095, 65534, 65535, 65536, 65537, 131071, sizeof(text)};

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct file file;

		assert_int_equal(bytes_read(text, sizes[i], &file), 0);
		assert_int_equal(file.size, sizes[i]);
		assert_memory_equal(file.text, text, sizes[i]);
		file_free(&file);
	}
}

/* --- Refused files -------------------------------------------------------------------------- */

TEST(test_what_is_no_regular_file_is_refused)
{
	assert_int_equal(mkfifo("fifo", 0600), 0);
	expect_refused("fifo", -EINVAL, "not-a-file");
	unlink("fifo");
	expect_refused(".", -EINVAL, "not-a-file");
	expect_refused("/dev/zero", -EINVAL, "not-a-file");
	expect_refused("none", -ENOENT, "file-open");
	expect_refused("", -ENOENT, "file-open");
}

TEST(test_a_file_above_90_mib_is_refused)
{
	int fd = open("large", O_WRONLY | O_CREAT, 0600);
	struct file file;

	assert_int_equal(ftruncate(fd, 100 << 20), 0);
	expect_refused("large", -EINVAL, "file-too-large");
	close(fd);
	unlink("large");
	assert_int_equal(bytes_read("", 0, &file), 0);
	file_free(&file);
}

/* Standard input can be a pipe or a device. The maximum size of a file also applies to it. */
TEST(test_standard_input_may_be_of_any_kind)
{
	int kept = dup(STDIN_FILENO), ends[2];
	struct file file;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "from a pipe", 11), 11);
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	assert_int_equal(file_read("-", &file), 0);
	assert_string_equal(file.text, "from a pipe");
	file_free(&file);
	ends[0] = open("/dev/zero", O_RDONLY);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	expect_refused("-", -EINVAL, "file-too-large");
	dup2(kept, STDIN_FILENO);
	close(kept);
}

/* --- A file that changes -------------------------------------------------------------------- */

/* A file is read even if a writer has it open, or if its mtime is in the future. */
TEST(test_a_file_that_is_open_or_from_the_future_is_read)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) + 3600}};
	int fd = open("file", O_WRONLY | O_CREAT, 0600);
	struct file file;

	assert_int_equal(write(fd, "whole", 5), 5);
	for (int future = 0; future < 2; future++) {
		if (future)
			assert_int_equal(utimensat(AT_FDCWD, "file", times, 0), 0);
		assert_int_equal(file_read("file", &file), 0);
		assert_string_equal(file.text, "whole");
		file_free(&file);
	}
	close(fd);
	unlink("file");
}

struct writer {
	int fd;
	char letter; /* byte that the writer stores at offset 0; 0: the writer appends a byte */
	atomic_uint writes;
	atomic_bool stop;
};

static void *writer_run(void *data)
{
	struct writer *writer = data;

	for (unsigned int i = 0; !writer->stop; i++) {
		char letter = 'a' + i % 26;

		assert_int_equal(writer->letter ? pwrite(writer->fd, &letter, 1, 0)
						: write(writer->fd, &letter, 1),
				 1);
		writer->writes++;
		usleep(5000);
	}
	return NULL;
}

/*
 * Repeats file_read() until the writer changes the file during a call. Returns the id of the error.
 */
static const char *refusal_amid(struct writer *writer)
{
	for (int attempts = 500; attempts; attempts--) {
		unsigned int before = writer->writes;
		struct file file = {0};
		int err = file_read("file", &file);

		file_free(&file);
		if (err || writer->writes > before + 2)
			return error_taken();
		usleep(20000);
	}
	return "the writer did not get to write";
}

/* A file is refused if a writer changes it during the read. */
TEST(test_a_file_that_changes_is_refused)
{
	for (int over = 0; over < 2; over++) {
		struct writer writer = {.fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600),
					.letter = over};
		pthread_t thread;

		assert_int_equal(write(writer.fd, "text", 4), 4);
		assert_int_equal(pthread_create(&thread, NULL, writer_run, &writer), 0);
		assert_string_equal(refusal_amid(&writer), "file-changing");
		writer.stop = true;
		pthread_join(thread, NULL);
		close(writer.fd);
	}
	unlink("file");
}

/* Appends a byte, and sets the file's mtime to `when`, in seconds. */
static void append_at(int fd, time_t when)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = when}};

	assert_int_equal(write(fd, "a", 1), 1);
	assert_int_equal(futimens(fd, times), 0);
}

static void *append_later(void *data)
{
	usleep(500000);
	append_at(*(int *)data, time(NULL) - 1);
	return NULL;
}

/*
 * file_read() detects that a file changes during the read, even if the file system rounds mtimes
 * down.
 */
TEST(test_a_file_with_a_rounded_time_that_changes_is_refused)
{
	int fd = open("file", O_WRONLY | O_CREAT, 0600);
	pthread_t thread;

	append_at(fd, time(NULL));
	assert_int_equal(pthread_create(&thread, NULL, append_later, &fd), 0);
	expect_refused("file", -EINVAL, "file-changing");
	pthread_join(thread, NULL);
	close(fd);
	unlink("file");
}

TESTS(scratch_make, scratch_remove)
