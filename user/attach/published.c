// SPDX-License-Identifier: GPL-2.0
#include "attach/published.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/owner.h"
#include "base/text.h"

#define PUBLISHED_DIR	  "/run/sluice"
#define PUBLISHED_VERSION 1

/* Largest accepted file in bytes: twice what ATTACHMENTS_MAX attachments need. */
#define PUBLISHED_BYTES (128 << 10)

const char *published_path(const struct gate *gate, char path[PUBLISHED_PATH])
{
	snprintf(path, PUBLISHED_PATH, PUBLISHED_DIR "/%s.json", gate->name);
	return path;
}

/*
 * Returns 0 if PUBLISHED_DIR exists and only trusted users may write to it. Otherwise returns
 * -ENOENT or -EPERM.
 */
static int dir_check(void)
{
	struct stat st;

	if (lstat(PUBLISHED_DIR, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && owner_alone_writes(&st) ? 0 : -EPERM;
}

/* --- Reading -------------------------------------------------------------------------------- */

/* Parses the name of a device, which the file has in hexadecimal digits. */
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

static bool attachment_unpack(json_t *object, struct attachment *ret)
{
	json_int_t ifindex, netns, program, slot, priority;
	const char *device, *hook, *mode, *array;
	struct attachment a = {0};
	int gone, generic, hook_found, mode_found;

	if (json_unpack(object, "{s:s, s:I, s:I, s:s, s:s, s:b, s:I, s:b, s:s, s:I, s:I !}",
			"device_hex", &device, "ifindex", &ifindex, "netns", &netns, "hook", &hook,
			"mode", &mode, "generic", &generic, "program_id", &program, "device_gone",
			&gone, "array", &array, "slot", &slot, "priority", &priority))
		return false;
	hook_found = word_find(hook_names, HOOKS, hook);
	mode_found = word_find(mode_names, MODES, mode);
	if (hook_found < 0 || mode_found <= MODE_AUTO || !device_unpack(device, a.device) ||
	    ifindex <= 0 || ifindex > INT32_MAX || netns < 0 || program < 0 ||
	    program > UINT32_MAX || slot < 0 || slot > UINT16_MAX || priority < 0 ||
	    priority > PRIORITY_MAX || strlen(array) >= sizeof(a.slot.path))
		return false;
	a.hook = hook_found;
	a.mode = mode_found;
	a.is_generic = generic;
	strcpy(a.slot.path, array);
	a.slot.slot = slot;
	a.priority = priority;
	a.ifindex = ifindex;
	a.netns = netns;
	a.program_id = program;
	a.device_gone = gone;
	a.pinned.netns = a.netns;
	a.pinned.ifindex = a.ifindex;
	memcpy(a.pinned.device, a.device, sizeof(a.device));
	*ret = a;
	return true;
}

/* Returns the inode of the gate's directory. A later gate of the same name has another inode. */
static json_int_t directory_number(const struct gate *gate)
{
	struct stat st;

	return fstat(gate->dir.fd, &st) ? 0 : st.st_ino;
}

/*
 * Parses the published file. Returns NULL if it is valid, otherwise a text that says why it is not.
 */
static const char *document_unpack(const struct gate *gate, json_t *document, struct seen *ret)
{
	json_int_t version, directory, uptime;
	uint64_t now = uptime_ns();
	const char *name;
	json_t *list, *each;
	size_t i;

	if (json_unpack(document, "{s:I, s:s, s:I, s:I, s:o !}", "version", &version, "gate", &name,
			"directory", &directory, "uptime_ns", &uptime, "attachments", &list) ||
	    version != PUBLISHED_VERSION || !json_is_array(list) ||
	    json_array_size(list) > ATTACHMENTS_MAX)
		return "another version of sluice wrote it, or another program";
	if (strcmp(name, gate->name) || directory != directory_number(gate) || uptime < 0 ||
	    (uint64_t)uptime > now)
		return "it belongs to an earlier gate";
	json_array_foreach(list, i, each)
	{
		if (!attachment_unpack(each, &ret->all[i]))
			return "it has an invalid attachment";
	}
	ret->count = json_array_size(list);
	ret->age_ns = now - uptime;
	return NULL;
}

/* Reads the published file. Adds an error if the file does not exist or cannot be used. */
static int published_read(const struct gate *gate, struct seen *ret)
{
	char path[PUBLISHED_PATH];
	struct file file = {0};
	bool exists = false;
	json_t *document = NULL;
	const char *wrong = "its directory does not exist, or an untrusted user may write there";
	int err = dir_check() ? 0 : file_read_own(published_path(gate, path), &file, &exists);

	if (err)
		return err;
	if (exists) {
		if (file.size <= PUBLISHED_BYTES)
			document = json_loadb(file.text, file.size, JSON_REJECT_DUPLICATES, NULL);
		wrong = document ? document_unpack(gate, document, ret) : "it is not JSON";
		json_decref(document);
		file_free(&file);
	} else if (!dir_check()) {
		wrong = "it does not exist";
	}
	return wrong ? error_add(EPERM, "published", NULL, "%s", wrong) : 0;
}

/*
 * Adds a notice, and removes the errors from index `mark` on. A `%s` argument may be the text of a
 * removed error.
 */
#define notice_instead(mark, id, ...)                                                              \
	do {                                                                                       \
		error_notice(id, NULL, __VA_ARGS__);                                               \
		while (error_count() > (mark) + 1)                                                 \
			error_remove(mark);                                                        \
	} while (0)

int attachments_see(const struct gate *gate, struct seen *ret)
{
	unsigned int mark = error_count();
	char path[PUBLISHED_PATH];
	struct stat st;

	*ret = (struct seen){.sight = SIGHT_LINKS};
	if (!gate->dir.reads_only)
		return attachments_read(gate, ret->all, &ret->count);
	ret->sight = SIGHT_PUBLISHED;
	if (!published_read(gate, ret))
		return 0;
	*ret = (struct seen){.sight = SIGHT_NONE};
	if (fstat(gate->dir.fd, &st))
		st.st_uid = 0;
	notice_instead(
		mark, "attachments-unseen",
		"gate '%s': its devices cannot be read: only root%s%s may open links, and %s "
		"cannot be used: %s",
		gate->name, st.st_uid ? " and " : "", st.st_uid ? owner_name(st.st_uid) : "",
		published_path(gate, path), error_last(mark)->text);
	return 0;
}

/* --- Publishing ----------------------------------------------------------------------------- */

/*
 * Converts an attachment to JSON. Writes the device's name in hexadecimal, because a name may
 * contain bytes that are not UTF-8.
 */
static json_t *attachment_pack(const struct attachment *a)
{
	char device[2 * IF_NAMESIZE + 1] = "", *to = device;

	for (const char *c = a->device; *c; c++)
		to += snprintf(to, 3, "%02x", (unsigned char)*c);
	return json_pack("{s:s, s:I, s:I, s:s, s:s, s:b, s:I, s:b, s:s, s:I, s:I}", "device_hex",
			 device, "ifindex", (json_int_t)a->ifindex, "netns", (json_int_t)a->netns,
			 "hook", hook_names[a->hook], "mode", mode_names[a->mode], "generic",
			 a->is_generic, "program_id", (json_int_t)a->program_id, "device_gone",
			 a->device_gone, "array", a->slot.path, "slot", (json_int_t)a->slot.slot,
			 "priority", (json_int_t)a->priority);
}

static json_t *document_pack(const struct gate *gate, const struct seen *seen)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < seen->count; i++)
		json_array_append_new(list, attachment_pack(&seen->all[i]));
	return json_pack("{s:i, s:s, s:I, s:I, s:o}", "version", PUBLISHED_VERSION, "gate",
			 gate->name, "directory", directory_number(gate), "uptime_ns",
			 (json_int_t)uptime_ns(), "attachments", list);
}

static int published_write(const struct gate *gate, const char *path)
{
	_cleanup_free_ char *text = NULL;
	json_t *document;
	struct seen seen;
	struct stat st;
	int err = attachments_read(gate, seen.all, &seen.count);

	if (err)
		return err;
	if (fstat(gate->dir.fd, &st))
		return error_add(errno, "publish", NULL, "%s", strerror(errno));
	document = document_pack(gate, &seen);
	text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	json_decref(document);
	return text ? file_replace(path, text, strlen(text), 0640, st.st_gid)
		    : error_add(ENOMEM, "publish", NULL, "out of memory");
}

void attachments_publish(const struct gate *gate)
{
	unsigned int mark = error_count();
	char path[PUBLISHED_PATH];
	int err = dir_check();

	if (err == -ENOENT || !pins_are_shared(&gate->dir))
		return;
	err = err ? error_add(err, "publish", NULL, "an untrusted user may write to the directory")
		  : published_write(gate, published_path(gate, path));
	if (err)
		notice_instead(mark, "publish", "gate '%s': cannot write %s for readers: %s",
			       gate->name, published_path(gate, path), error_last(mark)->text);
}

void attachments_unpublish(const struct gate *gate)
{
	char path[PUBLISHED_PATH];

	if (!dir_check())
		file_remove(published_path(gate, path));
}
