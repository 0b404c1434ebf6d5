// SPDX-License-Identifier: GPL-2.0
#include "attach/published.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/owner.h"
#include "base/text.h"

#define PUBLISHED_DIR	  "/run/sluice"
#define PUBLISHED_VERSION 1

/* Room for ATTACHMENTS_MAX of them, twice. */
#define PUBLISHED_BYTES (128 << 10)

/* "GATE.json", and while it is written ".GATE.json.PID". */
#define FILE_NAME (GATE_NAME + 32)

const char *published_path(const struct gate *gate, char path[PUBLISHED_PATH])
{
	snprintf(path, PUBLISHED_PATH, PUBLISHED_DIR "/%s.json", gate->name);
	return path;
}

/* --- Whom to believe ------------------------------------------------------------------------ */

/* Whether a file or directory is root's or the gate owner's, and only its owner may write to it. */
static bool is_believed(const struct gate *gate, const struct stat *st)
{
	struct stat of_gate;

	return !fstat(gate->dir.fd, &of_gate) && (!st->st_uid || st->st_uid == of_gate.st_uid) &&
	       !(st->st_mode & 0022);
}

/* Opens the directory. -ENOENT: there is none; -EPERM: it is not to be believed. */
static int dir_open(const struct gate *gate)
{
	_cleanup_close_ int fd =
		open(PUBLISHED_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	return !fstat(fd, &st) && is_believed(gate, &st) ? steal_fd(&fd) : -EPERM;
}

/* --- The file ------------------------------------------------------------------------------- */

/* One attachment. A device's name may hold any bytes: JSON takes it as hexadecimal digits. */
static json_t *attachment_pack(const struct attachment *a, time_t since)
{
	char device[2 * IF_NAMESIZE + 1] = "", *to = device;

	for (const char *c = a->device; *c; c++)
		to += snprintf(to, 3, "%02x", (unsigned char)*c);
	return json_pack("{s:s, s:I, s:I, s:s, s:s, s:I, s:b, s:I}", "device_hex", device,
			 "ifindex", (json_int_t)a->ifindex, "netns", (json_int_t)a->netns, "hook",
			 hook_names[a->hook], "mode", mode_names[a->mode], "program_id",
			 (json_int_t)a->program_id, "device_gone", a->device_gone, "since",
			 (json_int_t)since);
}

static bool device_unpack(const char *hex, char device[IF_NAMESIZE])
{
	size_t length = strlen(hex) / 2;

	if (strlen(hex) % 2 || !length || length >= IF_NAMESIZE)
		return false;
	memset(device, 0, IF_NAMESIZE);
	for (size_t i = 0; i < length; i++) {
		char digits[3] = {hex[2 * i], hex[2 * i + 1]};

		if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
			return false;
		device[i] = strtoul(digits, NULL, 16);
		if (!device[i])
			return false;
	}
	return true;
}

static bool attachment_unpack(json_t *object, struct attachment *ret, time_t *ret_since)
{
	json_int_t ifindex, netns, program, since;
	const char *device, *hook, *mode;
	struct attachment a = {0};
	int gone, hook_found, mode_found;

	if (json_unpack(object, "{s:s, s:I, s:I, s:s, s:s, s:I, s:b, s:I !}", "device_hex", &device,
			"ifindex", &ifindex, "netns", &netns, "hook", &hook, "mode", &mode,
			"program_id", &program, "device_gone", &gone, "since", &since))
		return false;
	hook_found = word_find(hook_names, HOOKS, hook);
	mode_found = word_find(mode_names, MODES, mode);
	if (hook_found < 0 || mode_found <= MODE_AUTO || !device_unpack(device, a.device) ||
	    ifindex <= 0 || ifindex > INT32_MAX || netns < 0 || program < 0 ||
	    program > UINT32_MAX || since < 0)
		return false;
	a.hook = hook_found;
	a.mode = mode_found;
	a.ifindex = ifindex;
	a.netns = netns;
	a.program_id = program;
	a.device_gone = gone;
	a.pinned.netns = a.netns;
	a.pinned.ifindex = a.ifindex;
	memcpy(a.pinned.device, a.device, sizeof(a.device));
	*ret = a;
	*ret_since = since;
	return true;
}

/* The inode of the gate's directory, which no later gate of its name has. */
static json_int_t directory_number(const struct gate *gate)
{
	struct stat st;

	return fstat(gate->dir.fd, &st) ? 0 : st.st_ino;
}

/* Returns what is wrong with it; NULL: nothing. */
static const char *document_unpack(const struct gate *gate, json_t *document, struct seen *ret)
{
	json_int_t version, directory, uptime;
	uint64_t now = uptime_ns();
	const char *name;
	json_t *list, *each;
	size_t i;

	if (json_unpack(document, "{s:I}", "version", &version))
		return "it is none of sluice's";
	if (version != PUBLISHED_VERSION)
		return "another version of sluice wrote it";
	if (json_unpack(document, "{s:I, s:s, s:I, s:I, s:o !}", "version", &version, "gate", &name,
			"directory", &directory, "uptime_ns", &uptime, "attachments", &list) ||
	    !json_is_array(list) || json_array_size(list) > ATTACHMENTS_MAX)
		return "it is none of sluice's";
	if (strcmp(name, gate->name) || directory != directory_number(gate) || uptime < 0 ||
	    (uint64_t)uptime > now)
		return "it is of an earlier gate";
	json_array_foreach(list, i, each)
	{
		if (!attachment_unpack(each, &ret->all[i], &ret->since[i]))
			return "an attachment in it makes no sense";
	}
	ret->count = json_array_size(list);
	ret->age_ns = now - uptime;
	return NULL;
}

/* Opens and checks the file. Returns an fd, or a negative errno. */
static int file_open(const struct gate *gate, int dir)
{
	_cleanup_close_ int fd = -1;
	char name[FILE_NAME];
	struct stat st;

	snprintf(name, sizeof(name), "%s.json", gate->name);
	/* O_NONBLOCK: a FIFO is opened at once, and refused */
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_believed(gate, &st) ||
	    st.st_size > PUBLISHED_BYTES)
		return -EPERM;
	return steal_fd(&fd);
}

/* Returns why nothing is published that can be believed; NULL: `ret` is filled. */
static const char *published_read(const struct gate *gate, struct seen *ret)
{
	_cleanup_close_ int dir = dir_open(gate), fd = dir < 0 ? dir : file_open(gate, dir);
	_cleanup_free_ char *text = NULL;
	const char *wrong = "it is no JSON";
	json_t *document;
	ssize_t size;

	ret->count = 0;
	if (fd == -ENOENT)
		return "it is not there";
	if (fd == -EPERM || fd == -ELOOP)
		return "it is not to be believed: root or the owner of the gate writes it, and "
		       "nobody else may write there";
	if (fd < 0)
		return strerror(-fd);
	text = malloc(PUBLISHED_BYTES);
	size = text ? read(fd, text, PUBLISHED_BYTES) : -1;
	document = size < 0 ? NULL : json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	if (document)
		wrong = document_unpack(gate, document, ret);
	json_decref(document);
	return wrong;
}

/* --- Reading -------------------------------------------------------------------------------- */

int attachments_see(const struct gate *gate, struct seen *ret)
{
	char path[PUBLISHED_PATH];
	const char *wrong;
	struct stat st;

	*ret = (struct seen){.sight = SIGHT_LINKS};
	if (!gate->dir.reads_only)
		return attachments_read(gate, ret->all, &ret->count);
	wrong = published_read(gate, ret);
	ret->sight = wrong ? SIGHT_NONE : SIGHT_PUBLISHED;
	if (!wrong)
		return 0;
	ret->count = 0;
	if (fstat(gate->dir.fd, &st))
		return error_add(errno, "gate-read", NULL, "cannot look at %s: %s", gate->dir.path,
				 why(errno));
	error_notice("attachments-unseen", NULL,
		     "gate '%s': what it is attached to is not to be seen: links are open to "
		     "root%s%s only, and %s, which tells others, cannot be used: %s",
		     gate->name, st.st_uid ? " and " : "", st.st_uid ? owner_name(st.st_uid) : "",
		     published_path(gate, path), wrong);
	return 0;
}

/* --- Publishing ----------------------------------------------------------------------------- */

/* The moment at which an attachment was first published. */
static time_t since_of(const struct seen *before, const struct attachment *a, time_t now)
{
	for (unsigned int i = 0; i < before->count; i++) {
		const struct attachment *old = &before->all[i];

		if (old->hook == a->hook && old->mode == a->mode && old->netns == a->netns &&
		    old->ifindex == a->ifindex && !old->program_id == !a->program_id)
			return before->since[i];
	}
	return now;
}

static json_t *document_pack(const struct gate *gate, const struct seen *now,
			     const struct seen *before)
{
	json_t *list = json_array();
	time_t moment = time(NULL);

	for (unsigned int i = 0; i < now->count; i++)
		json_array_append_new(
			list,
			attachment_pack(&now->all[i], since_of(before, &now->all[i], moment)));
	return json_pack("{s:i, s:s, s:I, s:I, s:o}", "version", PUBLISHED_VERSION, "gate",
			 gate->name, "directory", directory_number(gate), "uptime_ns",
			 (json_int_t)uptime_ns(), "attachments", list);
}

/* Writes a new file and gives it the name. Returns 0 or a negative errno. */
static int published_write(const struct gate *gate, int dir, const json_t *document)
{
	char name[FILE_NAME], new[FILE_NAME];
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err = 0;

	snprintf(name, sizeof(name), "%s.json", gate->name);
	snprintf(new, sizeof(new), ".%s.json.%d", gate->name, getpid());
	unlinkat(dir, new, 0); /* of a killed process; in a container the numbers recur */
	fd = openat(dir, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (json_dumpfd(document, fd, JSON_COMPACT))
		err = errno ? -errno : -EIO;
	/* the group of the gate; a directory of another group keeps its own */
	if (!err && !fstat(gate->dir.fd, &st) && fchown(fd, -1, st.st_gid))
		errno = 0;
	if (!err && (fchmod(fd, 0640) || renameat(dir, new, dir, name)))
		err = -errno;
	if (err)
		unlinkat(dir, new, 0);
	return err;
}

void attachments_publish(const struct gate *gate)
{
	_cleanup_free_ struct seen *now = calloc(1, sizeof(*now));
	_cleanup_free_ struct seen *before = calloc(1, sizeof(*before));
	_cleanup_close_ int dir = pins_are_shared(&gate->dir) ? dir_open(gate) : -ENOENT;
	char path[PUBLISHED_PATH];
	json_t *document = NULL;
	struct owner self;
	int err = dir;

	if (dir == -ENOENT)
		return;
	if (dir >= 0 && now && before && !attachments_read(gate, now->all, &now->count)) {
		published_read(gate, before);
		document = document_pack(gate, now, before);
	}
	if (dir >= 0)
		err = document ? owner_become(dir, &self) : -ENOMEM;
	if (dir >= 0 && !err) {
		err = published_write(gate, dir, document);
		owner_leave(&self);
	}
	json_decref(document);
	if (err && err != -ENOENT)
		error_notice("publish", NULL,
			     "gate '%s': cannot tell readers what it is attached to, in %s: %s",
			     gate->name, published_path(gate, path),
			     err == -EPERM || err == -EACCES ? PUBLISHED_DIR
				     " is not the gate's owner's, or others may "
				     "write there"
							     : strerror(-err));
}

void attachments_unpublish(const struct gate *gate)
{
	_cleanup_close_ int dir = dir_open(gate);
	char name[FILE_NAME];

	snprintf(name, sizeof(name), "%s.json", gate->name);
	if (dir >= 0)
		unlinkat(dir, name, 0);
}
