// SPDX-License-Identifier: GPL-2.0
#include "gate/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/netns.h"

#define BPFFS_MAGIC 0xcafe4a11
#define PINS_USER   "sluice"

#define SELF_FD	     "/proc/self/fd"
#define SELF_FD_PATH (sizeof(SELF_FD) + 16 + PIN_NAME)

/* --- Owners and modes ----------------------------------------------------------------------- */

static bool owner_is_trusted(uid_t owner)
{
	const struct passwd *user;

	if (!owner || owner == geteuid())
		return true;
	user = getpwnam(PINS_USER);
	return user && user->pw_uid == owner;
}

static bool is_in_bpffs(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (unsigned long)fs.f_type == BPFFS_MAGIC;
}

static const char *owner_name(uid_t owner)
{
	static char number[16];
	const struct passwd *user = getpwuid(owner);

	snprintf(number, sizeof(number), "%u", owner);
	return user ? user->pw_name : number;
}

/*
 * Checks the root of bpffs. Other users may have names of their own in it, if they cannot rename
 * ours.
 */
static enum status root_check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return failure("cannot look at " BPFFS ": %s", why(errno));
	if (owner_is_trusted(st.st_uid) && (!(st.st_mode & 0022) || st.st_mode & S_ISVTX))
		return OK;
	return failure(BPFFS
		       " belongs to %s, mode %04o: whoever may rename what is in it could pass "
		       "off pins as a gate's: make it root's, and its mode 0700 or 1777",
		       owner_name(st.st_uid), st.st_mode & 07777);
}

static enum status directory_check(const struct pins *pins)
{
	struct stat st;

	if (fstat(pins->fd, &st))
		return failure("cannot look at %s: %s", pins->path, why(errno));
	if (!is_in_bpffs(pins->fd))
		return failure("%s is on another file system than bpffs: unmount that", pins->path);
	if (owner_is_trusted(st.st_uid) && !(st.st_mode & 0022))
		return OK;
	return failure("%s belongs to %s, mode %04o, and so is not taken for pins of a gate: these "
		       "belong to root, to the caller or to user '" PINS_USER "', and only their "
		       "owner can write there; remove it",
		       pins->path, owner_name(st.st_uid), st.st_mode & 07777);
}

/* --- Directories ---------------------------------------------------------------------------- */

static enum status open_failed(const struct pins *parent, const char *path, const char *name)
{
	int err = errno;
	struct stat st;

	if (err != ENOTDIR && err != ELOOP)
		return failure("cannot open %s: %s", path, why(err));
	if (fstatat(parent->fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return failure("cannot look at %s: %s", path, why(errno));
	return failure("%s is %s of %s, and no directory with pins: remove it", path,
		       S_ISLNK(st.st_mode) ? "a symbolic link" : "a file", owner_name(st.st_uid));
}

enum status pins_open(const struct pins *parent, const char *name, struct pins *ret)
{
	struct pins pins = PINS_CLOSED;
	enum status status;

	*ret = pins;
	if (parent->fd < 0)
		return OK;
	if (snprintf(pins.path, sizeof(pins.path), "%s/%s", parent->path, name) >= PINS_PATH)
		return failure("%s/%s: the path is too long", parent->path, name);
	pins.fd = openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pins.fd < 0)
		return errno == ENOENT ? OK : open_failed(parent, pins.path, name);
	status = directory_check(&pins);
	if (status)
		pins_close(&pins);
	else
		*ret = pins;
	return status;
}

/* Opens the root of bpffs. `ret` is closed if bpffs is not mounted: then it holds nothing. */
static enum status bpffs_open(struct pins *ret)
{
	struct pins bpffs = {.path = BPFFS};
	enum status status = OK;

	/*
	 * pins are made by a path below /proc/self/fd: BPF_F_PATH_FD needs Linux 6.5 and libbpf 1.3
	 */
	if (access(SELF_FD, X_OK))
		return failure("cannot look at " SELF_FD ", by which pins are opened: %s; is /proc "
			       "mounted?",
			       strerror(errno));
	bpffs.fd = open(BPFFS, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (bpffs.fd < 0 && errno != ENOENT)
		return failure("cannot open " BPFFS ": %s", why(errno));
	if (bpffs.fd >= 0 && !is_in_bpffs(bpffs.fd))
		pins_close(&bpffs);
	if (bpffs.fd >= 0)
		status = root_check(bpffs.fd);
	if (status)
		pins_close(&bpffs);
	*ret = bpffs;
	return status;
}

enum status pins_open_root(bool make, struct pins *ret)
{
	struct pins bpffs;
	enum status status = bpffs_open(&bpffs);

	*ret = (struct pins)PINS_CLOSED;
	if (!status && make)
		status = pins_make(&bpffs, PINS_ROOT);
	if (!status)
		status = pins_open(&bpffs, PINS_ROOT, ret);
	pins_close(&bpffs);
	return status;
}

enum status pins_make(const struct pins *parent, const char *name)
{
	if (mkdirat(parent->fd, name, 0700) && errno != EEXIST && errno != ENOENT)
		return pin_failed("make", parent, name, errno);
	return OK;
}

bool pins_is_named(const struct pins *pins, const struct pins *parent, const char *name)
{
	struct stat open_dir, named;

	return !fstat(pins->fd, &open_dir) &&
	       !fstatat(parent->fd, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       open_dir.st_dev == named.st_dev && open_dir.st_ino == named.st_ino;
}

enum status pins_list(const struct pins *pins, int (*filter)(const struct dirent *entry),
		      struct dirent ***ret, int *ret_count)
{
	*ret = NULL;
	*ret_count = 0;
	if (pins->fd < 0)
		return OK;
	*ret_count = scandirat(pins->fd, ".", ret, filter, alphasort);
	if (*ret_count >= 0)
		return OK;
	*ret_count = 0;
	return failure("cannot read %s: %s", pins->path, why(errno));
}

static int is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

static enum status entry_remove(const struct pins *pins, const char *name)
{
	int err = pin_remove(pins, name);
	struct pins below;
	enum status status;

	if (!err || err == -ENOENT)
		return OK;
	if (err != -EISDIR && err != -EPERM)
		return pin_failed("remove", pins, name, err);
	status = pins_open(pins, name, &below);
	if (!status && below.fd >= 0)
		status = pins_clear(&below);
	pins_close(&below);
	return status ?: pins_remove(pins, name);
}

enum status pins_clear(const struct pins *pins)
{
	struct dirent **entries;
	int count;
	enum status status = pins_list(pins, is_entry, &entries, &count);

	for (int i = 0; i < count; i++) {
		status = status ?: entry_remove(pins, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return status;
}

enum status pins_remove(const struct pins *parent, const char *name)
{
	if (unlinkat(parent->fd, name, AT_REMOVEDIR) && errno != ENOENT)
		return pin_failed("remove", parent, name, errno);
	return OK;
}

void pins_remove_root(void)
{
	struct pins bpffs;

	if (!bpffs_open(&bpffs))
		unlinkat(bpffs.fd, PINS_ROOT, AT_REMOVEDIR);
	pins_close(&bpffs);
}

void pins_close(struct pins *pins)
{
	if (pins->fd >= 0)
		close(pins->fd);
	*pins = (struct pins)PINS_CLOSED;
}

/* --- Pins ----------------------------------------------------------------------------------- */

/*
 * Opens the file with O_PATH first, so that a symbolic link is not followed, and then the pin by
 * that fd.
 */
int pin_open(const struct pins *pins, const char *name)
{
	int file = openat(pins->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd;
	char path[SELF_FD_PATH];
	struct stat st;

	if (file < 0)
		return pins->fd < 0 ? -ENOENT : -errno;
	snprintf(path, sizeof(path), SELF_FD "/%d", file);
	if (fstat(file, &st))
		fd = -errno;
	else
		fd = S_ISLNK(st.st_mode) ? -ELOOP : bpf_obj_get(path);
	close(file);
	return fd;
}

int pin_make(const struct pins *pins, const char *name, int fd)
{
	char path[SELF_FD_PATH];

	snprintf(path, sizeof(path), SELF_FD "/%d/%s", pins->fd, name);
	return bpf_obj_pin(fd, path);
}

int pin_remove(const struct pins *pins, const char *name)
{
	return unlinkat(pins->fd, name, 0) ? -errno : 0;
}

int pin_rename(const struct pins *from, const char *name, const struct pins *to,
	       const char *new_name)
{
	return renameat(from->fd, name, to->fd, new_name) ? -errno : 0;
}

bool pin_exists(const struct pins *pins, const char *name)
{
	return pins->fd >= 0 && !faccessat(pins->fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

enum status pin_failed(const char *what, const struct pins *pins, const char *name, int err)
{
	return failure("cannot %s %s/%s: %s", what, pins->path, name,
		       abs(err) == ELOOP ? "it is a symbolic link, which is not followed"
					 : why(err));
}

/* --- bpffs ---------------------------------------------------------------------------------- */

/* The parent process; 0: none, or it cannot be read. */
static int parent_of(int pid)
{
	char path[32], line[128];
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && !parent && fgets(line, sizeof(line), file))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	if (file)
		fclose(file);
	return parent;
}

static uint64_t mounts_of(int pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/*
 * Finds an ancestor in another mount namespace. `ip netns exec` makes a mount namespace that ends
 * with the command, and the pins and the filter would end with it. Returns the ancestor's pid; 0:
 * none.
 */
static int mounts_outside(void)
{
	uint64_t own = mounts_of(getpid());

	for (int pid = getppid(); pid > 0; pid = parent_of(pid)) {
		uint64_t theirs = mounts_of(pid);

		if (theirs && theirs != own)
			return pid;
	}
	return 0;
}

static bool bpffs_is_mounted(void)
{
	struct statfs fs;

	return !statfs(BPFFS, &fs) && (unsigned long)fs.f_type == BPFFS_MAGIC;
}

enum status bpffs_refuse_private(void)
{
	char option[NETNS_OPTION];
	int outside;

	if (bpffs_is_mounted())
		return OK;
	outside = mounts_outside();
	if (!outside)
		return OK;
	netns_option(netns_home(), netns_of_process(outside), option);
	if (*option)
		return failure("no bpffs in this mount namespace, and pins made in it would vanish "
			       "with it: write 'sluice %s...' outside of 'ip netns exec'",
			       option);
	return failure(
		"no bpffs in this mount namespace, and pins made in it would vanish with it: "
		"write 'nsenter -t %d -m sluice ...', or mount bpffs before it is made",
		outside);
}

enum status bpffs_mount(void)
{
	enum status status = bpffs_refuse_private();

	if (status || bpffs_is_mounted())
		return status;
	if (mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return failure("cannot mount bpffs at " BPFFS ": %s",
			       errno == EPERM ? "this needs CAP_SYS_ADMIN: run it as root"
					      : why(errno));
	return OK;
}
