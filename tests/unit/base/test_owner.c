// SPDX-License-Identifier: GPL-2.0
/* Tests user/base/owner.h. Root creates a file with the permissions of the directory's owner. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "base/owner.h"

#define OWNER 4242
#define GROUP 4243

/* A directory of another user. `secret` is the path of root's file in a different directory. */
struct place {
	char directory[32], secret[32];
	int fd;
};

static int place_make(void **state)
{
	static struct place place;
	int fd;

	place = (struct place){"/tmp/sluice-owner-XXXXXX", "/tmp/sluice-secret-XXXXXX", -1};
	*state = &place;
	if (geteuid())
		return 0;
	fd = mkdtemp(place.directory) ? mkstemp(place.secret) : -1;
	if (fd < 0 || close(fd) || chown(place.directory, OWNER, GROUP))
		return -1;
	place.fd = open(place.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return place.fd < 0;
}

static int place_remove(void **state)
{
	struct place *place = *state;

	if (place->fd >= 0)
		unlinkat(place->fd, "made", 0);
	close(place->fd);
	unlink(place->secret);
	rmdir(place->directory);
	return 0;
}

static const struct place *place_or_skip(void **state)
{
	if (geteuid())
		skip_because("changing the owner takes root");
	return *state;
}

static struct stat make_file(const struct place *place)
{
	int fd = openat(place->fd, "made", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	struct stat st;

	assert_true(fd >= 0);
	assert_false(fstat(fd, &st));
	close(fd);
	assert_false(unlinkat(place->fd, "made", 0));
	return st;
}

static void test_what_is_made_is_the_owners(void **state)
{
	const struct place *place = place_or_skip(state);
	struct owner before;
	struct stat st;

	assert_int_equal(owner_become(place->fd, &before), 0);
	st = make_file(place);
	owner_leave(&before);
	assert_int_equal(st.st_uid, OWNER);
	assert_int_equal(st.st_gid, GROUP);
	st = make_file(place);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_gid, getegid());
}

/*
 * The directory's owner replaces the file by a symbolic link. Root must not write to the link's
 * target.
 */
static void test_it_has_the_rights_of_the_owner(void **state)
{
	const struct place *place = place_or_skip(state);
	struct owner before;

	assert_false(symlinkat(place->secret, place->fd, "made"));
	assert_int_equal(owner_become(place->fd, &before), 0);
	assert_int_equal(fchmodat(place->fd, "made", 0644, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(openat(place->fd, "made", O_RDONLY | O_CLOEXEC), -1);
	assert_int_equal(errno, EACCES);
	owner_leave(&before);
	assert_false(fchmodat(place->fd, "made", 0600, 0));
	assert_false(unlinkat(place->fd, "made", 0));
}

static void test_nobody_becomes_another(void **state)
{
	const struct place *place = place_or_skip(state);
	struct owner before;

	assert_false(seteuid(65534));
	assert_int_equal(owner_become(place->fd, &before), -EACCES);
	assert_false(seteuid(0));
	assert_int_equal(make_file(place).st_uid, 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)
	const struct CMUnitTest tests[] = {
		CASE(test_what_is_made_is_the_owners),
		CASE(test_it_has_the_rights_of_the_owner),
		CASE(test_nobody_becomes_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
