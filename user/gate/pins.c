// SPDX-License-Identifier: GPL-2.0
#include "gate/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/netns.h"
#include "base/owner.h"

#define BPFFS_MAGIC 0xcafe4a11

#define SELF_FD	     "/proc/self/fd"
#define SELF_FD_PATH (sizeof(SELF_FD) + 16 + PIN_NAME)

#define _cleanup_pins_ _cleanup_(pins_close)

/* --- Owners and modes ----------------------------------------------------------------------- */

static bool is_in_bpffs(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (unsigned long)fs.f_type == BPFFS_MAGIC;
}

/* An administrator sets the mode of PINS_ROOT (tmpfiles.d). Directories of gates inherit it. */
bool pins_are_shared(const struct pins *pins)
{
	struct stat st;

	return !fstat(pins->fd, &st) && st.st_mode & 0010;
}

static int stat_failed(const char *path)
{
	return error_add(errno, "pins-stat", path, "cannot access it: %s", why(errno));
}

int pins_refuse_change(const struct pins *pins)
{
	struct stat st;

	if (fstat(pins->fd, &st))
		return stat_failed(pins->path);
	if (!st.st_uid)
		return error_add(EACCES, "pins-rights", pins->path,
				 "only root may change what is in it; run it as root");
	return error_add(EACCES, "pins-rights", pins->path,
			 "only root and %s may change what is in it; run it as one of them",
			 owner_name(st.st_uid));
}

int pins_check_writable(const struct pins *pins)
{
	if (pins->fd < 0 || !faccessat(pins->fd, ".", W_OK | X_OK, AT_EACCESS))
		return 0;
	if (errno == EACCES)
		return pins_refuse_change(pins);
	return error_add(errno, "pins-rights", pins->path, "cannot change what is in it: %s",
			 why(errno));
}

static int directory_check(const struct pins *pins)
{
	struct stat st;

	if (fstat(pins->fd, &st))
		return stat_failed(pins->path);
	if (!is_in_bpffs(pins->fd))
		return error_add(EINVAL, "pins-no-bpffs", pins->path,
				 "is not in bpffs; unmount the file system that is mounted there");
	if (owner_alone_writes(&st))
		return 0;
	return error_add(
		EPERM, "pins-owner", pins->path,
		"belongs to %s, mode %04o; a directory of pins must belong to root, the caller or "
		"user '" OWNER_USER "', and be writable only by its owner; remove it",
		owner_name(st.st_uid), st.st_mode & 07777);
}

/* --- Directories ---------------------------------------------------------------------------- */

static int open_failed(const struct pins *parent, const char *path, const char *name)
{
	int err = errno;
	struct stat st;
	bool is_known = !fstatat(parent->fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (err == EACCES && !is_known)
		return error_add(EACCES, "pins-rights", NULL,
				 "cannot access %s: only root may search " BPFFS "; run this as "
				 "root, or first 'chmod 0711 " BPFFS "' (RIGHTS in sluice(8))",
				 path);
	if (err == EACCES && st.st_mode & 0010)
		return error_add(EACCES, "pins-rights", path,
				 "belongs to %s; run this as root, or as a member of group '%s'",
				 owner_name(st.st_uid), group_name(st.st_gid));
	if (err == EACCES)
		return error_add(EACCES, "pins-rights", path,
				 "belongs to %s, mode %04o; run it as root (RIGHTS in sluice(8) "
				 "describes how a group may read)",
				 owner_name(st.st_uid), st.st_mode & 07777);
	if (err != ENOTDIR && err != ELOOP)
		return error_add(err, "pins-open", path, "cannot open it: %s", why(err));
	if (!is_known)
		return stat_failed(path);
	return error_add(err, "pins-no-directory", path,
			 "is %s of %s, not a directory of pins; remove it",
			 S_ISLNK(st.st_mode) ? "a symbolic link" : "a file", owner_name(st.st_uid));
}

int pins_open(const struct pins *parent, const char *name, struct pins *ret)
{
	_cleanup_pins_ struct pins pins = PINS_CLOSED;
	int err;

	*ret = (struct pins)PINS_CLOSED;
	if (parent->fd < 0)
		return 0;
	if (snprintf(pins.path, sizeof(pins.path), "%s/%s", parent->path, name) >= PINS_PATH)
		return error_add(ENAMETOOLONG, "pins-open", pins.path, "the path is too long");
	pins.fd = openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pins.fd < 0 && errno == EACCES) {
		/*
		 * a reader gets an O_PATH fd, which cannot lock the directory, so it delays no
		 * owner
		 */
		pins.fd = openat(parent->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		pins.reads_only = true;
		if (pins.fd >= 0 && faccessat(pins.fd, ".", X_OK, AT_EACCESS)) {
			errno = EACCES;
			return open_failed(parent, pins.path, name);
		}
	}
	if (pins.fd < 0)
		return errno == ENOENT ? 0 : open_failed(parent, pins.path, name);
	err = directory_check(&pins);
	if (err)
		return err;
	*ret = pins;
	pins.fd = -1;
	return 0;
}

static int bpffs_distrust(const struct stat *st)
{
	return error_add(
		EPERM, "pins-owner", BPFFS,
		"belongs to %s, mode %04o: another user could replace the pins of gates in "
		"it; make root its owner, and its mode 0700 or 1777",
		owner_name(st->st_uid), st->st_mode & 07777);
}

/*
 * Opens the root of bpffs. Returns 0 and a closed `ret` if bpffs is not mounted. Returns an error
 * if users other than root could rename root's files in it.
 */
static int bpffs_open(struct pins *ret)
{
	_cleanup_pins_ struct pins bpffs = {.fd = -1, .path = BPFFS};
	struct stat st;

	*ret = (struct pins)PINS_CLOSED;
	/* pin_make() needs SELF_FD, because Linux before 6.5 does not have BPF_F_PATH_FD */
	if (access(SELF_FD, X_OK))
		return error_add(errno, "no-proc", SELF_FD,
				 "cannot access it, which opening a pin requires: %s; mount /proc",
				 strerror(errno));
	bpffs.fd = open(BPFFS, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (bpffs.fd < 0 && errno != ENOENT)
		return error_add(errno, "pins-open", BPFFS, "cannot open it: %s", why(errno));
	if (bpffs.fd < 0 || !is_in_bpffs(bpffs.fd))
		return 0;
	if (fstat(bpffs.fd, &st))
		return stat_failed(BPFFS);
	if (!owner_is_trusted(st.st_uid) || (st.st_mode & 0022 && !(st.st_mode & S_ISVTX)))
		return host_users_require() ?: bpffs_distrust(&st);
	*ret = bpffs;
	bpffs.fd = -1;
	return 0;
}

int pins_open_root(bool make, struct pins *ret)
{
	_cleanup_pins_ struct pins bpffs = PINS_CLOSED;
	int err = bpffs_open(&bpffs);

	*ret = (struct pins)PINS_CLOSED;
	if (err)
		return err;
	if (make && mkdirat(bpffs.fd, PINS_ROOT, 0700) && errno != EEXIST)
		return pin_failed("make", &bpffs, PINS_ROOT, errno);
	return pins_open(&bpffs, PINS_ROOT, ret);
}

int pins_make(const struct pins *parent, const char *name, bool shared)
{
	mode_t mode = shared && pins_are_shared(parent) ? 0710 : 0700, before;
	struct owner self;
	int err;

	if (!faccessat(parent->fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
		return 0;
	err = owner_become(parent->fd, &self);
	if (err)
		return pin_failed("make", parent, name, err);
	before = umask(0);
	err = mkdirat(parent->fd, name, mode) ? -errno : 0;
	umask(before);
	owner_leave(&self);
	return err && err != -EEXIST && err != -ENOENT ? pin_failed("make", parent, name, err) : 0;
}

static int is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

int pins_list(const struct pins *pins, int (*filter)(const struct dirent *entry),
	      struct dirent ***ret, int *ret_count)
{
	*ret = NULL;
	*ret_count = 0;
	if (pins->fd < 0)
		return 0;
	*ret_count = scandirat(pins->fd, ".", ret, filter, alphasort);
	if (*ret_count >= 0)
		return 0;
	*ret_count = 0;
	return error_add(errno, "pins-list", pins->path, "cannot read it: %s", why(errno));
}

/* Empties a directory of pins: removes all files and directories in it. */
static int pins_clear(const struct pins *pins)
{
	struct dirent **entries;
	int count;
	int err = pins_list(pins, is_entry, &entries, &count);

	for (int i = 0; i < count; i++) {
		_cleanup_pins_ struct pins below = PINS_CLOSED;
		const char *name = entries[i]->d_name;
		int removed = err ? 0 : pin_remove(pins, name);

		if (removed == -EISDIR || removed == -EPERM)
			err = pins_open(pins, name, &below)
				      ?: pins_clear(&below) ?: pins_remove(pins, name);
		else if (removed && removed != -ENOENT)
			err = pin_failed("remove", pins, name, removed);
		free(entries[i]);
	}
	free(entries);
	return err;
}

int pins_remove(const struct pins *parent, const char *name)
{
	if (unlinkat(parent->fd, name, AT_REMOVEDIR) && errno != ENOENT)
		return pin_failed("remove", parent, name, errno);
	return 0;
}

void pins_close(struct pins *pins)
{
	close_fd(&pins->fd);
	*pins = (struct pins)PINS_CLOSED;
}

/* --- Pins ----------------------------------------------------------------------------------- */

/* bpf_obj_get_opts() follows symlinks, so check the pin by an O_PATH fd first. */
int pin_open(const struct pins *pins, const char *name)
{
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = pins->reads_only ? BPF_F_RDONLY : 0);
	_cleanup_close_ int file = openat(pins->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path[SELF_FD_PATH];
	struct stat st;

	if (file < 0)
		return pins->fd < 0 ? -ENOENT : -errno;
	snprintf(path, sizeof(path), SELF_FD "/%d", file);
	if (fstat(file, &st))
		return -errno;
	return S_ISLNK(st.st_mode) ? -ELOOP : bpf_obj_get_opts(path, &opts);
}

int pin_make(const struct pins *pins, const char *name, int fd)
{
	char path[SELF_FD_PATH];
	struct owner self;
	bool is_private = false;
	int err = owner_become(pins->fd, &self);

	if (err)
		return err;
	for (int map = 0; map < GATE_MAPS; map++)
		is_private |= gate_map_is_private(map) && !strcmp(name, gate_map_names[map]);
	snprintf(path, sizeof(path), SELF_FD "/%d/%s", pins->fd, name);
	err = bpf_obj_pin(fd, path);
	if (!err && pins_are_shared(pins) && !is_private && fchmodat(pins->fd, name, 0640, 0))
		err = -errno;
	owner_leave(&self);
	return err;
}

int pin_replace(const struct pins *pins, const char *name, int fd)
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

int pin_note(const struct pins *pins, const char *name, const char *text)
{
	struct owner self;
	int err = pin_remove(pins, name);

	err = err == -ENOENT ? 0 : err;
	err = err ?: owner_become(pins->fd, &self);
	if (err)
		return err;
	err = symlinkat(text, pins->fd, name) ? -errno : 0;
	owner_leave(&self);
	return err;
}

int pin_note_read(const struct pins *pins, const char *name, char *text, size_t size)
{
	ssize_t length = readlinkat(pins->fd, name, text, size);

	if (length < 0)
		return -errno;
	if ((size_t)length >= size)
		return -ENAMETOOLONG;
	text[length] = '\0';
	return 0;
}

bool pin_exists(const struct pins *pins, const char *name)
{
	return pins->fd >= 0 && !faccessat(pins->fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

int pin_failed(const char *what, const struct pins *pins, const char *name, int err)
{
	if (abs(err) == EACCES && pins->reads_only)
		return error_add(err, "pin-rights", NULL,
				 "cannot %s %s/%s: its group may not read it", what, pins->path,
				 name);
	if (abs(err) == EACCES)
		return pins_refuse_change(pins);
	return error_add(err, "pin-failed", NULL, "cannot %s %s/%s: %s", what, pins->path, name,
			 abs(err) == ELOOP ? "it is a symbolic link, which is not followed"
					   : why(err));
}

int pin_maps(const struct pins *pins, const int map[GATE_MAPS], uint32_t which)
{
	for (int i = GATE_MAPS - 1; i >= 0; i--) {
		int err = which >> i & 1 ? pin_make(pins, gate_map_names[i], map[i]) : 0;

		if (err)
			return pin_failed("pin", pins, gate_map_names[i], err);
	}
	return 0;
}

/* --- The directory of a gate ---------------------------------------------------------------- */

int gate_dir_open(struct gate *gate)
{
	_cleanup_pins_ struct pins root = PINS_CLOSED;
	int err = pins_open_root(false, &root) ?: pins_open(&root, gate->name, &gate->dir);

	/* a reader has no permission for directory links/ */
	return err || gate->dir.reads_only ? err : pins_open(&gate->dir, GATE_LINKS, &gate->links);
}

/* How long to wait for the lock of a gate, in ms. */
#define LOCK_WAIT_MS 3000
#define LOCK_POLL_MS 20

/*
 * Opens and locks the gate's directory. Returns 0 and a closed gate->dir if the directory does not
 * exist, or was removed by `detach` before it was locked.
 */
static int lock_try(struct gate *gate, const struct pins *root)
{
	struct timespec pause = {.tv_nsec = LOCK_POLL_MS * 1000000L};
	struct stat locked, named;
	int err = pins_open(root, gate->name, &gate->dir);

	if (err || gate->dir.fd < 0)
		return err;
	if (gate->dir.reads_only)
		return pins_refuse_change(&gate->dir);
	for (int waited = 0; flock(gate->dir.fd, LOCK_EX | LOCK_NB); waited += LOCK_POLL_MS) {
		if (errno != EWOULDBLOCK)
			return gate_error(gate, errno, "gate-lock", "cannot lock it: %s",
					  why(errno));
		if (waited >= LOCK_WAIT_MS)
			return gate_error(gate, EAGAIN, "gate-busy",
					  "another sluice is changing it; try again");
		nanosleep(&pause, NULL);
	}
	if (!fstat(gate->dir.fd, &locked) &&
	    !fstatat(root->fd, gate->name, &named, AT_SYMLINK_NOFOLLOW) &&
	    locked.st_dev == named.st_dev && locked.st_ino == named.st_ino)
		return pins_open(&gate->dir, GATE_LINKS, &gate->links);
	pins_close(&gate->dir);
	return 0;
}

int gate_dir_lock(struct gate *gate, bool make)
{
	do {
		_cleanup_pins_ struct pins root = PINS_CLOSED;
		/* make PINS_ROOT again if `detach` of another gate has removed it */
		int err = pins_open_root(make, &root);

		if (!err && make && root.fd >= 0)
			err = pins_make(&root, gate->name, true);
		err = err ?: lock_try(gate, &root);
		if (err)
			return err;
	} while (make && gate->dir.fd < 0);
	return gate->dir.fd < 0 ? gate_refuse_missing(gate->name) : 0;
}

int gate_dir_holds_gate(const struct gate *gate, bool *ret)
{
	struct dirent **links;
	int count;
	int err = pins_list(&gate->links, is_entry, &links, &count);

	*ret = count || pin_exists(&gate->dir, gate_map_names[MAP_GATE]);
	while (count)
		free(links[--count]);
	free(links);
	return err;
}

bool gate_resize_is_interrupted(const struct gate *gate)
{
	bool exists = pin_exists(&gate->dir, GATE_NEXT "/gate");

	if (!exists || (flock(gate->dir.fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK))
		return false;
	exists = pin_exists(&gate->dir, GATE_NEXT "/gate");
	flock(gate->dir.fd, LOCK_UN);
	return exists;
}

int gate_dir_clear(struct gate *gate)
{
	/* remove pin `gate` first, so that other commands see no gate */
	int err = pin_remove(&gate->dir, gate_map_names[MAP_GATE]);

	if (err && err != -ENOENT)
		return pin_failed("remove", &gate->dir, gate_map_names[MAP_GATE], err);
	pins_close(&gate->links);
	return pins_clear(&gate->dir);
}

int gate_dir_remove(struct gate *gate)
{
	_cleanup_pins_ struct pins bpffs = PINS_CLOSED, root = PINS_CLOSED;
	int err = gate_dir_clear(gate)
			  ?: bpffs_open(&bpffs)
			  ?: pins_open(&bpffs, PINS_ROOT, &root) ?: pins_remove(&root, gate->name);

	/*
	 * keep a PINS_ROOT that an administrator has shared; unlinkat() fails if it contains
	 * another gate
	 */
	if (!err && !pins_are_shared(&root))
		unlinkat(bpffs.fd, PINS_ROOT, AT_REMOVEDIR);
	return err;
}

/* --- Existing gates ------------------------------------------------------------------------- */

static int may_be_gate(const struct dirent *entry)
{
	return entry->d_type != DT_REG && gate_name_is_valid(entry->d_name);
}

int gate_exists(const char *name, bool *ret)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;

	*ret = false;
	snprintf(gate.name, sizeof(gate.name), "%s", name);
	return gate_dir_open(&gate) ?: gate_dir_holds_gate(&gate, ret);
}

int gates_for_each(int (*call)(const char *gate, void *data),
		   void (*unread)(const char *gate, void *data), void *data)
{
	_cleanup_pins_ struct pins root = PINS_CLOSED;
	struct dirent **names = NULL;
	int count = 0, bad = 0;
	int err = pins_open_root(false, &root) ?: pins_list(&root, may_be_gate, &names, &count);

	for (int i = 0; i < count; i++) {
		bool is_gate = false;
		int unreadable = err ? 0 : gate_exists(names[i]->d_name, &is_gate);

		if (unreadable && unread)
			unread(names[i]->d_name, data);
		else if (unreadable)
			bad = unreadable;
		if (is_gate)
			err = call(names[i]->d_name, data);
		free(names[i]);
	}
	free(names);
	return err ?: bad;
}

static int name_add(const char *gate, void *data)
{
	struct gate_names *names = data;
	size_t length = strlen(names->text);

	if (names->but && !strcmp(names->but, gate))
		return 0;
	if (!names->count)
		snprintf(names->first, sizeof(names->first), "%s", gate);
	if (names->count < GATES_SHOWN)
		snprintf(names->text + length, sizeof(names->text) - length, "%s'%s'",
			 length ? ", " : "", gate);
	else if (names->count == GATES_SHOWN)
		snprintf(names->text + length, sizeof(names->text) - length, " ...");
	names->count++;
	return 0;
}

int gates_list(const char *but, struct gate_names *ret)
{
	*ret = (struct gate_names){.but = but};
	return gates_for_each(name_add, NULL, ret);
}

int gate_refuse_missing(const char *name)
{
	struct gate_names names;
	int err = gates_list(NULL, &names);

	if (!err && !names.count)
		err = bpffs_refuse_private();
	if (err)
		return err;
	if (!names.count)
		return error_add(ENOENT, "no-gate", NULL,
				 "there is no gate '%s'; make it with 'sluice %s-g %s attach DEV'",
				 name, netns_typed(), name);
	return error_add(
		ENOENT, "no-gate", NULL,
		"there is no gate '%s', only %s; write 'sluice -g %s ...', or make it with "
		"'sluice %s-g %s attach DEV'",
		name, names.text, names.first, netns_typed(), name);
}

/* --- bpffs ---------------------------------------------------------------------------------- */

/* Returns the pid of the nearest ancestor in another mount namespace, or 0. */
static int ancestor_outside(void)
{
	struct stat own, theirs;
	char path[32], line[128];
	int pid = getppid();

	if (stat("/proc/self/ns/mnt", &own))
		return 0;
	while (pid > 0) {
		_cleanup_fclose_ FILE *file = NULL;
		int parent = 0;

		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
		if (!stat(path, &theirs) && theirs.st_ino != own.st_ino)
			return pid;
		snprintf(path, sizeof(path), "/proc/%d/status", pid);
		file = fopen(path, "re");
		while (file && !parent && fgets(line, sizeof(line), file))
			sscanf(line, "PPid: %d", &parent);
		pid = parent;
	}
	return 0;
}

int bpffs_refuse_private(void)
{
	_cleanup_close_ int bpffs = open(BPFFS, O_PATH | O_CLOEXEC);
	char option[NETNS_OPTION];
	int pid = is_in_bpffs(bpffs) ? 0 : ancestor_outside();

	if (!pid)
		return 0;
	netns_option(netns_home(), netns_of_process(pid), option);
	if (*option)
		return error_add(ENOENT, "bpffs-private", NULL,
				 "this mount namespace has no bpffs, and pins in a new bpffs would "
				 "be removed with it; outside of 'ip netns exec', write 'sluice "
				 "%s...'",
				 option);
	return error_add(
		ENOENT, "bpffs-private", NULL,
		"this mount namespace has no bpffs, and pins in a new bpffs would be removed with "
		"it; mount bpffs before the namespace is made, or write 'nsenter -t %d -m sluice "
		"...'",
		pid);
}

int bpffs_mount(void)
{
	int err = bpffs_refuse_private();
	struct statfs fs;

	if (err)
		return err;
	/* do not mount a second bpffs, which would hide all gates */
	if (statfs(BPFFS, &fs)) {
		if (errno != ENOENT)
			return stat_failed(BPFFS);
		return error_add(ENOENT, "bpffs-missing", BPFFS,
				 "does not exist; in a container, bind a bpffs of the host there");
	}
	if ((unsigned long)fs.f_type == BPFFS_MAGIC)
		return 0;
	if (mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return error_add(errno, "bpffs-mount", BPFFS, "cannot mount bpffs there: %s",
				 errno == EPERM ? "this needs CAP_SYS_ADMIN: run it as root, or "
						  "bind a bpffs of the host there"
						: why(errno));
	return 0;
}
