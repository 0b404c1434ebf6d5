// SPDX-License-Identifier: GPL-2.0
/* Tests the sockets that user/serve opens. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "test.h"
#include "base/error.h"
#include "serve/listen.h"

/* Makes a name in a new directory. */
static void name_make(char *directory, char *path, size_t room)
{
	assert_non_null(mkdtemp(directory));
	snprintf(path, room, "%s/name", directory);
}

TEST(test_a_file_that_is_no_socket_stays)
{
	char directory[] = "/tmp/sluice-XXXXXX", path[64];
	struct listeners listeners;
	struct stat st;
	int fd;

	name_make(directory, path, sizeof(path));
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(listeners_open(NULL, path, false, getegid(), &listeners), -EADDRINUSE);
	assert_string_equal(error_last(0)->id, "no-socket");
	error_drop(0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	unlink(path);
	rmdir(directory);
}

TEST(test_the_socket_of_an_ended_process_is_replaced)
{
	char directory[] = "/tmp/sluice-XXXXXX", path[64];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct listeners listeners;
	struct stat st;

	name_make(directory, path, sizeof(path));
	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_int_equal(listeners_open(NULL, path, false, getegid(), &listeners), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	listeners_close(&listeners);
	assert_int_equal(access(path, F_OK), -1);
	rmdir(directory);
}

TESTS(NULL, NULL)
