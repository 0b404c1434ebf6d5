// SPDX-License-Identifier: GPL-2.0
#include "gate.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "bpffs.h"
#include "caps.h"
#include "sluice.skel.h"

/* How long to wait for another command that changes the gate. */
#define LOCK_WAIT_MS 3000
#define LOCK_POLL_MS 20

const char *const gate_map_names[GATE_MAPS] = {
	[MAP_GATE] = "gate",	     [MAP_PREFIXES] = "prefixes", [MAP_SPLITS] = "splits",
	[MAP_POLICIES] = "policies", [MAP_COUNTERS] = "counters", [MAP_LEDGERS4] = "ledgers4",
	[MAP_LEDGERS6] = "ledgers6", [MAP_BUCKETS4] = "buckets4", [MAP_BUCKETS6] = "buckets6",
};

/* LRU maps hand nodes to CPUs 128 at a time: below this they evict while almost empty. */
#define LRU_ENTRIES_PER_CPU 256

struct gate_sizes gate_sizes_default(const struct machine *machine)
{
	uint32_t least = machine->cpus * LRU_ENTRIES_PER_CPU;

	return (struct gate_sizes){
		.ledgers = least > 1 << 18 ? least : 1 << 18,
		.buckets = least > 1 << 14 ? least : 1 << 14,
	};
}

enum status gate_check_name(const char *name)
{
	size_t length = strlen(name);

	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
			length = 0;
	if (!length || length > GATE_NAME)
		return misuse("'%s' is not a name of a gate: letters, digits, - and _, at most %d",
			      name, GATE_NAME);
	return OK;
}

static const char *gate_path(const struct gate *gate, const char *below, char path[GATE_PATH])
{
	snprintf(path, GATE_PATH, "%s/%s%s%s", GATE_ROOT, gate->name, *below ? "/" : "", below);
	return path;
}

static enum status no_such_gate(const char *name)
{
	return fail("there is no gate '%s': make it with 'sluice -g %s attach DEV'", name, name);
}

/* --- The lock ------------------------------------------------------------------------------- */

/* Whether the directory that is open still has its name: detach may have removed it meanwhile. */
static bool lock_is_current(int fd, const char *path)
{
	struct stat open_dir, named;

	return !fstat(fd, &open_dir) && !stat(path, &named) && open_dir.st_ino == named.st_ino;
}

static enum status lock_wait(int fd, const char *name)
{
	struct timespec pause = {.tv_nsec = LOCK_POLL_MS * 1000000L};

	for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited += LOCK_POLL_MS) {
		if (errno != EWOULDBLOCK)
			return fail("cannot lock gate '%s': %s", name, why(errno));
		if (waited >= LOCK_WAIT_MS)
			return fail("gate '%s' is being changed by another sluice: try again",
				    name);
		nanosleep(&pause, NULL);
	}
	return OK;
}

/* Locks the gate's directory, making it first if told to. */
static enum status gate_lock(struct gate *gate, bool make)
{
	char path[GATE_PATH];
	enum status status;

	gate_path(gate, "", path);
	for (;;) {
		/* detach of another gate may just have removed the empty root */
		if (make && mkdir(GATE_ROOT, 0700) && errno != EEXIST)
			return fail("cannot make " GATE_ROOT ": %s", why(errno));
		if (make && mkdir(path, 0700) && errno != EEXIST && errno != ENOENT)
			return fail("cannot make %s: %s", path, why(errno));
		gate->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (gate->lock < 0 && errno == ENOENT && make)
			continue;
		if (gate->lock < 0 && errno == ENOENT)
			return no_such_gate(gate->name);
		if (gate->lock < 0)
			return fail("cannot open %s: %s", path, why(errno));
		status = lock_wait(gate->lock, gate->name);
		if (status || lock_is_current(gate->lock, path))
			return status;
		close(gate->lock);
	}
}

/* --- Opening -------------------------------------------------------------------------------- */

static struct bpf_map *skel_map(const struct sluice *skel, enum gate_map map)
{
	return bpf_object__find_map_by_name(skel->obj, gate_map_names[map]);
}

static enum status refuse_foreign(const struct gate *gate, const char *what)
{
	return fail("gate '%s': %s; remove it with 'sluice -g %s detach all' and attach again",
		    gate->name, what, gate->name);
}

/* 0: it is no map. */
static uint32_t map_id(int fd)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

/* A pin may be anything by now: checks that it is of the shape that this binary would have made. */
static enum status map_check(const struct gate *gate, const struct sluice *skel, enum gate_map map)
{
	const struct bpf_map *want = skel_map(skel, map);
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	char what[128];

	if (!bpf_obj_get_info_by_fd(gate->map[map], &info, &size) &&
	    info.type == bpf_map__type(want) && info.key_size == bpf_map__key_size(want) &&
	    info.value_size == bpf_map__value_size(want))
		return OK;
	snprintf(what, sizeof(what), "what is pinned as '%s' is not that map of this version",
		 gate_map_names[map]);
	return refuse_foreign(gate, what);
}

/* And that it is the very map that the programs use, and not one of the same shape. */
static enum status maps_check_identity(const struct gate *gate)
{
	char what[128];

	for (int map = 0; map < GATE_MAPS; map++) {
		if (map_id(gate->map[map]) == gate->state->map_ids[map])
			continue;
		snprintf(what, sizeof(what),
			 "what is pinned as '%s' is not the map that it filters with",
			 gate_map_names[map]);
		return refuse_foreign(gate, what);
	}
	return OK;
}

static enum status map_open(struct gate *gate, const struct sluice *skel, enum gate_map map)
{
	char path[GATE_PATH], what[128];

	gate->map[map] = bpf_obj_get(gate_path(gate, gate_map_names[map], path));
	if (gate->map[map] >= 0)
		return map_check(gate, skel, map);
	if (errno != ENOENT)
		return fail("cannot open %s: %s", path, why(errno));
	snprintf(what, sizeof(what), "the pin of its map '%s' is gone", gate_map_names[map]);
	return refuse_foreign(gate, what);
}

static void *map_memory(int fd, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static enum status gate_map_memory(struct gate *gate)
{
	gate->state = map_memory(gate->map[MAP_GATE], sizeof(*gate->state));
	gate->policies =
		map_memory(gate->map[MAP_POLICIES], SL_RECORDS_MAX * sizeof(*gate->policies));
	if (!gate->state || !gate->policies)
		return fail("cannot map the rules of gate '%s': %s", gate->name, why(errno));
	return OK;
}

static struct sluice *skel_open(void)
{
	struct sluice *skel = sluice__open();

	if (!skel)
		fail("cannot read the BPF programs in this binary: %s", why(errno));
	return skel;
}

static bool directory_is_empty(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	bool empty = true;

	while (dir && empty && (entry = readdir(dir)))
		empty = entry->d_name[0] == '.';
	if (dir)
		closedir(dir);
	return empty;
}

/*
 * A gate exists when `gate` is pinned: that comes last. One without that pin but with links has
 * lost it, and still filters; one without both was cut off while it was made.
 */
static bool gate_exists(const struct gate *gate)
{
	char path[GATE_PATH];

	return !access(gate_path(gate, gate_map_names[MAP_GATE], path), F_OK) ||
	       !directory_is_empty(gate_path(gate, "links", path));
}

static enum status gate_open_maps(struct gate *gate, const struct sluice *skel)
{
	enum status status = map_open(gate, skel, MAP_GATE);
	char what[128];

	for (int map = MAP_GATE + 1; !status && map < GATE_MAPS; map++)
		status = map_open(gate, skel, map);
	if (!status)
		status = gate_map_memory(gate);
	if (!status && gate->state->schema != SL_SCHEMA) {
		snprintf(what, sizeof(what),
			 "it was made by a version with schema %u, this one has %d",
			 gate->state->schema, SL_SCHEMA);
		return refuse_foreign(gate, what);
	}
	return status ? status : maps_check_identity(gate);
}

static enum status gate_begin(struct gate *gate, const char *name)
{
	enum status status = gate_check_name(name);

	*gate = GATE_CLOSED;
	if (status)
		return status;
	snprintf(gate->name, sizeof(gate->name), "%s", name);
	return machine_get(&gate->machine);
}

enum status gate_open(struct gate *gate, const char *name)
{
	enum status status = gate_begin(gate, name);
	struct sluice *skel;
	char path[GATE_PATH];

	if (status)
		return status;
	if (access(gate_path(gate, "", path), R_OK | X_OK) && errno == EACCES)
		return fail("cannot read %s: %s", path, why(errno));
	if (!gate_exists(gate))
		return no_such_gate(name);
	skel = skel_open();
	status = skel ? gate_open_maps(gate, skel) : FAILED;
	sluice__destroy(skel);
	return status;
}

enum status gate_lock_only(struct gate *gate, const char *name)
{
	enum status status = gate_begin(gate, name);

	return status ? status : gate_lock(gate, false);
}

enum status gate_open_to_change(struct gate *gate, const char *name)
{
	enum status status = gate_lock_only(gate, name);
	struct sluice *skel;

	if (status)
		return status;
	if (!gate_exists(gate))
		return no_such_gate(name);
	skel = skel_open();
	status = skel ? gate_open_maps(gate, skel) : FAILED;
	sluice__destroy(skel);
	return status;
}

/* --- Making --------------------------------------------------------------------------------- */

static void skel_set_sizes(struct sluice *skel, const struct gate_sizes *sizes)
{
	bpf_map__set_max_entries(skel->maps.ledgers4, sizes->ledgers);
	bpf_map__set_max_entries(skel->maps.ledgers6, sizes->ledgers);
	bpf_map__set_max_entries(skel->maps.buckets4, sizes->buckets);
	bpf_map__set_max_entries(skel->maps.buckets6, sizes->buckets);
}

/* Loads the skeleton and takes its maps over. */
static enum status gate_make_maps(struct gate *gate, struct sluice *skel,
				  const struct gate_sizes *sizes)
{
	enum status status;
	int err;

	skel_set_sizes(skel, sizes);
	err = sluice__load(skel);
	if (err)
		return fail("cannot make the maps of gate '%s': %s", gate->name, why(err));
	for (int map = 0; map < GATE_MAPS; map++) {
		gate->map[map] = fcntl(bpf_map__fd(skel_map(skel, map)), F_DUPFD_CLOEXEC, 0);
		if (gate->map[map] < 0)
			return fail("cannot keep a map open: %s", why(errno));
	}
	status = gate_map_memory(gate);
	if (status)
		return status;
	*gate->state = (struct sl_gate){
		.schema = SL_SCHEMA,
		.generation = 1,
		.next_limit = 1,
		.next_policy = SL_POLICY_FIRST,
	};
	for (int map = 0; map < GATE_MAPS; map++)
		gate->state->map_ids[map] = map_id(gate->map[map]);
	return OK;
}

static enum status gate_pin(struct gate *gate)
{
	char path[GATE_PATH];

	if (mkdir(gate_path(gate, "links", path), 0700))
		return fail("cannot make %s: %s", path, why(errno));
	for (int map = GATE_MAPS - 1; map >= 0; map--)
		if (bpf_obj_pin(gate->map[map], gate_path(gate, gate_map_names[map], path)))
			return fail("cannot pin %s: %s", path, why(errno));
	return OK;
}

static enum status gate_remove_pins(struct gate *gate, const char *below);

void gate_undo(struct gate *gate)
{
	if (gate->made)
		gate_remove(gate);
	gate->made = false;
}

static enum status gate_make(struct gate *gate, struct sluice *skel)
{
	struct gate_sizes sizes = gate_sizes_default(&gate->machine);
	enum status status;

	gate->made = true;
	status = gate_remove_pins(gate, ""); /* what a killed command left half made */
	if (!status)
		status = gate_make_maps(gate, skel, &sizes);
	if (!status)
		status = gate_pin(gate);
	return status;
}

enum status gate_open_or_make(struct gate *gate, const char *name)
{
	enum status status = gate_begin(gate, name);
	struct sluice *skel;

	if (!status)
		status = caps_require();
	if (!status)
		status = bpffs_mount();
	if (!status)
		status = gate_lock(gate, true);
	if (status)
		return status;
	skel = skel_open();
	if (!skel)
		status = FAILED;
	else if (gate_exists(gate))
		status = gate_open_maps(gate, skel);
	else
		status = gate_make(gate, skel);
	sluice__destroy(skel);
	if (status)
		gate_undo(gate);
	return status;
}

enum status gate_make_unpinned(struct gate *gate, const struct gate_sizes *sizes,
			       const struct machine *machine)
{
	enum status status = gate_begin(gate, "unpinned");
	struct sluice *skel;

	if (status)
		return status;
	gate->machine = *machine;
	skel = skel_open();
	status = skel ? gate_make_maps(gate, skel, sizes) : FAILED;
	sluice__destroy(skel);
	return status;
}

/* --- Removing ------------------------------------------------------------------------------- */

/* Unlinks what is in the directory; a directory in it must be empty by then. */
static enum status gate_remove_pins(struct gate *gate, const char *below)
{
	char path[GATE_PATH];
	struct dirent *entry;
	enum status status = OK;
	DIR *dir = opendir(gate_path(gate, below, path));

	if (!dir)
		return errno == ENOENT ? OK : fail("cannot read %s: %s", path, why(errno));
	while (!status && (entry = readdir(dir))) {
		int fd = dirfd(dir);

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!unlinkat(fd, entry->d_name, 0))
			continue;
		if (errno == EISDIR || errno == EPERM)
			status = gate_remove_pins(gate, entry->d_name);
		if (!status && unlinkat(fd, entry->d_name, AT_REMOVEDIR))
			status = fail("cannot remove %s/%s: %s", path, entry->d_name, why(errno));
	}
	closedir(dir);
	return status;
}

enum status gate_remove(struct gate *gate)
{
	char path[GATE_PATH];
	enum status status;

	/* first `gate`, by which others know that it exists */
	unlink(gate_path(gate, gate_map_names[MAP_GATE], path));
	status = gate_remove_pins(gate, "");
	if (status)
		return status;
	if (rmdir(gate_path(gate, "", path)))
		return fail("cannot remove %s: %s", path, why(errno));
	rmdir(GATE_ROOT); /* unless another gate is there */
	return OK;
}

static void memory_unmap(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}

void gate_close(struct gate *gate)
{
	memory_unmap(gate->state, sizeof(*gate->state));
	memory_unmap(gate->policies, SL_RECORDS_MAX * sizeof(*gate->policies));
	for (int map = 0; map < GATE_MAPS; map++)
		if (gate->map[map] >= 0)
			close(gate->map[map]);
	if (gate->lock >= 0)
		close(gate->lock);
	*gate = GATE_CLOSED;
}

/* --- Programs ------------------------------------------------------------------------------- */

enum status gate_load_programs(const struct gate *gate, struct programs *ret)
{
	struct sluice *skel = skel_open();
	int err = 0;

	if (!skel)
		return FAILED;
	for (int map = 0; !err && map < GATE_MAPS; map++)
		err = bpf_map__reuse_fd(skel_map(skel, map), gate->map[map]);
	if (!err)
		err = sluice__load(skel);
	if (!err) {
		ret->xdp = fcntl(bpf_program__fd(skel->progs.sluice_xdp), F_DUPFD_CLOEXEC, 0);
		ret->tc = fcntl(bpf_program__fd(skel->progs.sluice_tc), F_DUPFD_CLOEXEC, 0);
		if (ret->xdp < 0 || ret->tc < 0)
			err = -errno;
	}
	sluice__destroy(skel);
	return err ? fail("cannot load the BPF programs: %s (-v shows the kernel's log)", why(err))
		   : OK;
}

void programs_close(struct programs *programs)
{
	if (programs->xdp >= 0)
		close(programs->xdp);
	if (programs->tc >= 0)
		close(programs->tc);
	*programs = (struct programs){-1, -1};
}

/* --- All gates ------------------------------------------------------------------------------ */

/* Passes over one that is just being made, or was left half made. */
static int is_gate(const struct dirent *entry)
{
	struct gate gate = GATE_CLOSED;

	if (entry->d_name[0] == '.' || strlen(entry->d_name) > GATE_NAME)
		return 0;
	memcpy(gate.name, entry->d_name, strlen(entry->d_name));
	return gate_exists(&gate);
}

enum status gate_for_each(enum status (*call)(const char *name, void *data), void *data)
{
	struct dirent **entries = NULL;
	int count = scandir(GATE_ROOT, &entries, is_gate, alphasort);
	enum status status = OK;

	if (count < 0)
		return errno == ENOENT ? OK : fail("cannot read %s: %s", GATE_ROOT, why(errno));
	for (int i = 0; i < count; i++) {
		if (!status)
			status = call(entries[i]->d_name, data);
		free(entries[i]);
	}
	free(entries);
	return status;
}
