// SPDX-License-Identifier: GPL-2.0
#include "gate/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

#include "base/array.h"
#include "base/netns.h"
#include "base/owner.h"

#define BPFFS_MAGIC 0xcafe4a11

#define SELF_FD	     "/proc/self/fd"
#define SELF_FD_PATH (sizeof(SELF_FD) + 16 + PIN_NAME)

/* --- Owners and modes ----------------------------------------------------------------------- */

static bool is_in_bpffs(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (unsigned long)fs.f_type == BPFFS_MAGIC;
}

/*
 * The one rule of readers: a directory below PINS_ROOT takes this from its parent, and PINS_ROOT
 * has it from its administrator (tmpfiles.d).
 */
bool pins_are_shared(const struct pins *pins)
{
	struct stat st;

	return !fstat(pins->fd, &st) && st.st_mode & 0010;
}

/* Says who may look into a directory. */
static int refuse_access(const char *path, const struct stat *st)
{
	if (!st)
		return failure("cannot look at %s: " BPFFS " lets only root through: run it as "
			       "root, or 'chmod 0711 " BPFFS "' first (RIGHTS in sluice(8))",
			       path);
	if (st->st_mode & 0010)
		return failure("cannot look at %s, which belongs to %s: this needs root, or "
			       "membership in group '%s'",
			       path, owner_name(st->st_uid), group_name(st->st_gid));
	return failure("cannot look at %s, which belongs to %s, mode %04o: run it as root (RIGHTS "
		       "in sluice(8) tells how a group may read)",
		       path, owner_name(st->st_uid), st->st_mode & 07777);
}

int pins_refuse_change(const struct pins *pins)
{
	struct stat st;

	if (fstat(pins->fd, &st))
		return failure("cannot look at %s: %s", pins->path, why(errno));
	if (!st.st_uid)
		return failure("only root may change what is in %s: run it as root", pins->path);
	return failure("only root and %s may change what is in %s: run it as one of them",
		       owner_name(st.st_uid), pins->path);
}

/*
 * Checks the root of bpffs. Other users may have names of their own in it, if they cannot rename
 * ours.
 */
static int root_check(int fd)
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

static int directory_check(const struct pins *pins)
{
	struct stat st;

	if (fstat(pins->fd, &st))
		return failure("cannot look at %s: %s", pins->path, why(errno));
	if (!is_in_bpffs(pins->fd))
		return failure("%s is on another file system than bpffs: unmount that", pins->path);
	if (owner_alone_writes(&st))
		return OK;
	return failure("%s belongs to %s, mode %04o, and so is not taken for pins of a gate: these "
		       "belong to root, to the caller or to user '" OWNER_USER "', and only their "
		       "owner can write there; remove it",
		       pins->path, owner_name(st.st_uid), st.st_mode & 07777);
}

/* --- Directories ---------------------------------------------------------------------------- */

static int open_failed(const struct pins *parent, const char *path, const char *name)
{
	int err = errno;
	struct stat st;
	bool told = !fstatat(parent->fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (err == EACCES)
		return refuse_access(path, told ? &st : NULL);
	if (err != ENOTDIR && err != ELOOP)
		return failure("cannot open %s: %s", path, why(err));
	if (!told)
		return failure("cannot look at %s: %s", path, why(errno));
	return failure("%s is %s of %s, and no directory with pins: remove it", path,
		       S_ISLNK(st.st_mode) ? "a symbolic link" : "a file", owner_name(st.st_uid));
}

/*
 * Opens a directory that only its owner may list, for one who may look up names in it. Its fd can
 * be neither listed nor locked, and so does not hold up its owner.
 */
static int open_to_read(const struct pins *parent, const char *name)
{
	int fd = openat(parent->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && faccessat(fd, ".", X_OK, AT_EACCESS)) {
		close(fd);
		errno = EACCES;
		return -1;
	}
	return fd;
}

int pins_open(const struct pins *parent, const char *name, struct pins *ret)
{
	struct pins pins = PINS_CLOSED;
	int status;

	*ret = pins;
	if (parent->fd < 0)
		return OK;
	if (snprintf(pins.path, sizeof(pins.path), "%s/%s", parent->path, name) >= PINS_PATH)
		return failure("%s/%s: the path is too long", parent->path, name);
	pins.fd = openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pins.fd < 0 && errno == EACCES) {
		pins.fd = open_to_read(parent, name);
		pins.reads_only = true;
	}
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
static int bpffs_open(struct pins *ret)
{
	struct pins bpffs = {.path = BPFFS};
	int status = OK;

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

int pins_open_root(bool make, struct pins *ret)
{
	struct pins bpffs;
	int status = bpffs_open(&bpffs);

	*ret = (struct pins)PINS_CLOSED;
	if (!status && make && mkdirat(bpffs.fd, PINS_ROOT, 0700) && errno != EEXIST)
		status = pin_failed("make", &bpffs, PINS_ROOT, errno);
	if (!status)
		status = pins_open(&bpffs, PINS_ROOT, ret);
	pins_close(&bpffs);
	return status;
}

int pins_make(const struct pins *parent, const char *name, bool shared)
{
	mode_t mode = shared && pins_are_shared(parent) ? 0710 : 0700, before;
	struct owner self;
	int err;

	if (!faccessat(parent->fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
		return OK;
	err = owner_become(parent->fd, &self);
	if (err)
		return pin_failed("make", parent, name, err);
	before = umask(0);
	err = mkdirat(parent->fd, name, mode) ? -errno : 0;
	umask(before);
	owner_leave(&self);
	return err && err != -EEXIST && err != -ENOENT ? pin_failed("make", parent, name, err) : OK;
}

static int is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

/* Gives the entries of a directory of root's, and of those below it, to another owner. */
static int entries_give(int directory, uid_t user, gid_t group)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!entries)
		return -errno;
	while (!err && (entry = readdir(entries))) {
		int below;

		if (!is_entry(entry))
			continue;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0) {
			err = entries_give(below, user, group);
			close(below);
		}
		if (!err && fchownat(fd, entry->d_name, user, group, AT_SYMLINK_NOFOLLOW))
			err = -errno;
	}
	closedir(entries);
	return err;
}

/* `in_use`, `newcomers` and `host_shortcuts` contain hashes or parts of them, `sets` tags. */
bool pin_is_private(const char *name)
{
	static const char *const names[] = {"secret", "sets", "in_use", "newcomers",
					    "host_shortcuts"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Lets the group of a directory open the maps in it. Directories in it stay as they are. */
static int entries_share(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct stat st;

	if (!entries)
		return -errno;
	while (!err && (entry = readdir(entries)))
		if (!fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
		    fchmodat(fd, entry->d_name, pin_is_private(entry->d_name) ? 0600 : 0640, 0))
			err = -errno;
	closedir(entries);
	return err;
}

/*
 * Only what root has is given to another owner: nobody else can have put anything there. Modes are
 * changed with the owner's rights.
 */
void pins_adopt(const struct pins *root, const struct pins *gate)
{
	struct stat above, st;
	struct owner self;

	if (!pins_are_shared(root) || pins_are_shared(gate) || fstat(root->fd, &above) ||
	    fstat(gate->fd, &st))
		return;
	if (!st.st_uid && (above.st_uid || above.st_gid != st.st_gid) &&
	    (entries_give(gate->fd, above.st_uid, above.st_gid) ||
	     fchown(gate->fd, above.st_uid, above.st_gid)))
		return;
	if (owner_become(gate->fd, &self))
		return;
	if (!entries_share(gate->fd))
		fchmod(gate->fd, 0710);
	owner_leave(&self);
}

int pins_check_writable(const struct pins *pins)
{
	if (pins->fd < 0 || !faccessat(pins->fd, ".", W_OK | X_OK, AT_EACCESS))
		return OK;
	if (errno == EACCES)
		return pins_refuse_change(pins);
	return failure("cannot change what is in %s: %s", pins->path, why(errno));
}

bool pins_is_named(const struct pins *pins, const struct pins *parent, const char *name)
{
	struct stat open_dir, named;

	return !fstat(pins->fd, &open_dir) &&
	       !fstatat(parent->fd, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       open_dir.st_dev == named.st_dev && open_dir.st_ino == named.st_ino;
}

int pins_list(const struct pins *pins, int (*filter)(const struct dirent *entry),
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

static int entry_remove(const struct pins *pins, const char *name)
{
	int err = pin_remove(pins, name);
	struct pins below;
	int status;

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

int pins_clear(const struct pins *pins)
{
	struct dirent **entries;
	int count;
	int status = pins_list(pins, is_entry, &entries, &count);

	for (int i = 0; i < count; i++) {
		status = status ?: entry_remove(pins, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return status;
}

int pins_remove(const struct pins *parent, const char *name)
{
	if (unlinkat(parent->fd, name, AT_REMOVEDIR) && errno != ENOENT)
		return pin_failed("remove", parent, name, errno);
	return OK;
}

void pins_remove_root(void)
{
	struct pins bpffs, root = PINS_CLOSED;

	if (!bpffs_open(&bpffs) && !pins_open(&bpffs, PINS_ROOT, &root) && !pins_are_shared(&root))
		unlinkat(bpffs.fd, PINS_ROOT, AT_REMOVEDIR);
	pins_close(&root);
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
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = pins->reads_only ? BPF_F_RDONLY : 0);
	int file = openat(pins->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd;
	char path[SELF_FD_PATH];
	struct stat st;

	if (file < 0)
		return pins->fd < 0 ? -ENOENT : -errno;
	snprintf(path, sizeof(path), SELF_FD "/%d", file);
	if (fstat(file, &st))
		fd = -errno;
	else
		fd = S_ISLNK(st.st_mode) ? -ELOOP : bpf_obj_get_opts(path, &opts);
	close(file);
	return fd;
}

int pin_make(const struct pins *pins, const char *name, int fd)
{
	char path[SELF_FD_PATH];
	struct owner self;
	int err = owner_become(pins->fd, &self);

	if (err)
		return err;
	snprintf(path, sizeof(path), SELF_FD "/%d/%s", pins->fd, name);
	err = bpf_obj_pin(fd, path);
	if (!err && pins_are_shared(pins) && !pin_is_private(name) &&
	    fchmodat(pins->fd, name, 0640, 0))
		err = -errno;
	owner_leave(&self);
	return err;
}

int pin_make_anew(const struct pins *pins, const char *name, int fd)
{
	int err = pin_remove(pins, name);

	return err && err != -ENOENT ? err : pin_make(pins, name, fd);
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

int pin_failed(const char *what, const struct pins *pins, const char *name, int err)
{
	if (abs(err) == EACCES && pins->reads_only)
		return failure("cannot %s %s/%s: its group may not read it", what, pins->path,
			       name);
	if (abs(err) == EACCES)
		return pins_refuse_change(pins);
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

int bpffs_refuse_private(void)
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

int bpffs_mount(void)
{
	int status = bpffs_refuse_private();
	struct statfs fs;

	if (status)
		return status;
	if (statfs(BPFFS, &fs)) /* mounting a second bpffs over it would hide all gates */
		return failure("cannot look at " BPFFS ": %s", why(errno));
	if ((unsigned long)fs.f_type == BPFFS_MAGIC)
		return OK;
	if (mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return failure("cannot mount bpffs at " BPFFS ": %s",
			       errno == EPERM ? "this needs CAP_SYS_ADMIN: run it as root"
					      : why(errno));
	return OK;
}
