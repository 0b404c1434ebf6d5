// SPDX-License-Identifier: GPL-2.0
#include "attach/attachment.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "attach/filter.h"
#include "base/netns.h"

const char *const hook_names[HOOKS] = {
	[HOOK_XDP] = "xdp",
	[HOOK_INGRESS] = "ingress",
	[HOOK_EGRESS] = "egress",
};

const char *const mode_names[MODES] = {
	[MODE_AUTO] = "auto", [MODE_NATIVE] = "native", [MODE_GENERIC] = "generic",
	[MODE_TCX] = "tcx",   [MODE_CLSACT] = "clsact",
};

/* --- Devices -------------------------------------------------------------------------------- */

static bool driver_is_tun(int fd, const struct device *device)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (void *)&info};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device->name);
	return !ioctl(fd, SIOCETHTOOL, &request) && !strcmp(info.driver, "tun");
}

static enum status device_query(int fd, struct device *device)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device->name);
	if (ioctl(fd, SIOCGIFHWADDR, &request))
		return failure("cannot read the type of %s: %s", device->name, why(errno));
	if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
	    request.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK)
		return failure("%s does not carry Ethernet frames, the only kind sluice reads",
			       device->name);
	device->is_tap = driver_is_tun(fd, device);
	return OK;
}

enum status device_find(const char *name, struct device *ret)
{
	struct device device = {.ifindex = strlen(name) < IF_NAMESIZE ? if_nametoindex(name) : 0};
	enum status status;
	int fd;

	if (!device.ifindex)
		return failure("there is no device '%s' in this network namespace: see 'ip link'",
			       name);
	snprintf(device.name, sizeof(device.name), "%s", name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return failure("cannot ask for %s: %s", name, why(errno));
	status = device_query(fd, &device);
	close(fd);
	if (!status)
		*ret = device;
	return status;
}

/* --- Hooks and modes ------------------------------------------------------------------------ */

static int name_find(const char *const names[], int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

bool hook_parse(const char *name, enum hook *ret)
{
	int found = name_find(hook_names, HOOKS, name);

	if (found < 0) {
		misuse("there is no hook '%s': xdp, ingress or egress", name);
		return false;
	}
	*ret = found;
	return true;
}

bool mode_parse(const char *name, enum mode *ret)
{
	int found = name_find(mode_names, MODES, name);

	if (found < 0) {
		misuse("there is no mode '%s': auto, native, generic, tcx or clsact", name);
		return false;
	}
	*ret = found;
	return true;
}

enum status mode_check(enum hook hook, enum mode mode)
{
	bool tc = mode == MODE_TCX || mode == MODE_CLSACT;

	if (mode == MODE_AUTO || tc == (hook != HOOK_XDP))
		return OK;
	return misuse("hook %s has no mode %s: %s", hook_names[hook], mode_names[mode],
		      hook == HOOK_XDP ? "auto, native or generic" : "auto, tcx or clsact");
}

/* --- Pins ----------------------------------------------------------------------------------- */

static void replace(char *text, char from, char to)
{
	for (; *text; text++)
		if (*text == from)
			*text = to;
}

static const char *pin_format(const struct attachment *a, const char *lead, char name[PIN_NAME])
{
	char device[IF_NAMESIZE];

	/* bpffs allows no '.', and a device's name has no ':' */
	snprintf(device, sizeof(device), "%s", a->pinned.device);
	replace(device, '.', ':');
	snprintf(name, PIN_NAME, "%s%s-%s-%" PRIu64 "-%u-%s", lead, hook_names[a->hook],
		 mode_names[a->mode], a->pinned.netns, a->pinned.ifindex, device);
	return name;
}

const char *attachment_pin(const struct attachment *a, char name[PIN_NAME])
{
	return pin_format(a, "", name);
}

/* No hook is named `next`, so attachment_of_pin() ignores this pin. */
const char *attachment_next_pin(const struct attachment *a, char name[PIN_NAME])
{
	return pin_format(a, "next-", name);
}

const char *attachment_qdisc_pin(const struct attachment *a, char name[PIN_NAME])
{
	snprintf(name, PIN_NAME, "qdisc-%" PRIu64 "-%u", a->pinned.netns, a->pinned.ifindex);
	return name;
}

bool attachment_of_pin(const char *name, struct attachment *ret)
{
	struct attachment a = {0};
	char hook[16], mode[16];
	int hook_found, mode_found;

	if (sscanf(name, "%15[a-z]-%15[a-z]-%" SCNu64 "-%u-%15s", hook, mode, &a.pinned.netns,
		   &a.pinned.ifindex, a.pinned.device) != 5)
		return false;
	hook_found = name_find(hook_names, HOOKS, hook);
	mode_found = name_find(mode_names, MODES, mode);
	if (hook_found < 0 || mode_found < 0)
		return false;
	a.hook = hook_found;
	a.mode = mode_found;
	replace(a.pinned.device, ':', '.');
	*ret = a;
	return true;
}

struct attachment attachment_of(const struct device *device, enum hook hook)
{
	struct attachment a = {.hook = hook, .netns = netns_current(), .ifindex = device->ifindex};

	memcpy(a.device, device->name, sizeof(a.device));
	a.pinned.netns = a.netns;
	a.pinned.ifindex = a.ifindex;
	memcpy(a.pinned.device, a.device, sizeof(a.device));
	return a;
}

/* --- Ids of programs ------------------------------------------------------------------------ */

uint32_t program_id_of(int program_fd)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(program_fd, &info, &size) ? 0 : info.id;
}

uint32_t program_id_pinned(const struct pins *pins, const char *name)
{
	int fd = pin_open(pins, name);
	uint32_t id = fd < 0 ? 0 : program_id_of(fd);

	if (fd >= 0)
		close(fd);
	return id;
}

/* --- Querying a device of the current namespace --------------------------------------------- */

/* The argument of call_query(): the attachment, and whether its device runs the program. */
struct run_query {
	const struct gate *gate;
	const struct attachment *attachment;
	unsigned int ifindex;
	uint32_t program_id;
	char device[IF_NAMESIZE]; /* the name of that ifindex; "": no such device */
	bool runs;		  /* the program runs on the attachment's hook */
};

static bool xdp_runs(unsigned int ifindex, uint32_t program_id)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	return !bpf_xdp_query(ifindex, 0, &query) &&
	       (query.drv_prog_id == program_id || query.skb_prog_id == program_id ||
		query.hw_prog_id == program_id || query.prog_id == program_id);
}

static bool tcx_runs(unsigned int ifindex, bool ingress, uint32_t program_id)
{
	__u32 ids[TCX_PROGRAMS_MAX], count = TCX_PROGRAMS_MAX;

	/* bpf_prog_query takes an ifindex as target_fd: the kernel has both in one union */
	if (bpf_prog_query(ifindex, ingress ? TCX_INGRESS : TCX_EGRESS, 0, NULL, ids, &count))
		return false;
	for (__u32 i = 0; i < count; i++)
		if (ids[i] == program_id)
			return true;
	return false;
}

static bool device_runs(const struct run_query *query)
{
	bool ingress = query->attachment->hook == HOOK_INGRESS, found;

	switch (query->attachment->mode) {
	case MODE_CLSACT: /* a filter that cannot be read counts as gone */
		return !filter_find(query->ifindex, ingress, query->program_id, &found) && found;
	case MODE_TCX:
		return tcx_runs(query->ifindex, ingress, query->program_id);
	default:
		return xdp_runs(query->ifindex, query->program_id);
	}
}

static void call_query(void *data)
{
	struct run_query *query = data;

	if (!if_indextoname(query->ifindex, query->device))
		query->device[0] = '\0';
	query->runs = query->program_id && *query->device && device_runs(query);
}

/* --- Finding an attachment in all namespaces ------------------------------------------------ */

/*
 * Whether the device in the query belongs to another attachment of the gate: numbers repeat in
 * other namespaces.
 */
static bool query_is_of_another(const struct run_query *query)
{
	struct attachment other = {.hook = query->attachment->hook};
	char name[PIN_NAME];

	other.pinned.netns = netns_current();
	other.pinned.ifindex = query->ifindex;
	memcpy(other.pinned.device, query->device, sizeof(query->device));
	for (other.mode = MODE_AUTO + 1; other.mode < MODES; other.mode++)
		if (pin_exists(&query->gate->links, attachment_pin(&other, name)))
			return true;
	return false;
}

static bool call_query_for(void *data)
{
	struct run_query *query = data;

	call_query(query);
	return query->runs && !query_is_of_another(query);
}

static void attachment_is_at(struct attachment *a, uint64_t netns, const struct run_query *query)
{
	a->netns = netns;
	a->ifindex = query->ifindex;
	memcpy(a->device, query->device, sizeof(a->device));
}

/*
 * Looks up a link, which has the device's number but not its namespace: it is searched where the
 * link was attached, then in all namespaces.
 */
static void link_look(const struct gate *gate, struct attachment *a, int link_fd)
{
	struct run_query query = {.gate = gate, .attachment = a};
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);
	uint64_t netns;

	if (bpf_obj_get_info_by_fd(link_fd, &info, &size) || !info.xdp.ifindex)
		return; /* tcx has its ifindex at the same offset */
	query.program_id = a->program_id = info.prog_id;
	query.ifindex = a->ifindex = info.xdp.ifindex;
	netns = a->pinned.netns;
	netns_run_in(netns, call_query, &query);
	if (!query.runs)
		netns = netns_find(call_query_for, &query);
	if (netns)
		attachment_is_at(a, netns, &query);
}

/*
 * Looks up a filter. A move of the device removes its filters, so it is at its place or gone. Its
 * program may be that of either pin.
 */
static void filter_look(const struct gate *gate, struct attachment *a)
{
	struct run_query query = {.gate = gate, .attachment = a, .ifindex = a->ifindex};
	const char *(*pins[])(const struct attachment *, char *) = {attachment_pin,
								    attachment_next_pin};
	char name[PIN_NAME];

	for (int i = 0; i < 2 && !query.runs; i++) {
		query.program_id = program_id_pinned(&gate->links, pins[i](a, name));
		netns_run_in(a->netns, call_query, &query);
	}
	if (query.runs) {
		a->program_id = query.program_id;
		attachment_is_at(a, a->netns, &query);
	}
}

/*
 * Whether the attached device still exists. A number is reused: with another name it is another
 * device.
 */
static bool device_is_there(const struct attachment *a)
{
	struct run_query query = {.attachment = a, .ifindex = a->pinned.ifindex};

	return netns_run_in(a->pinned.netns, call_query, &query) &&
	       !strcmp(query.device, a->pinned.device);
}

void attachment_look(const struct gate *gate, struct attachment *a)
{
	char name[PIN_NAME];
	int fd = pin_open(&gate->links, attachment_pin(a, name));

	a->program_id = 0;
	a->netns = a->pinned.netns;
	a->ifindex = a->pinned.ifindex;
	memcpy(a->device, a->pinned.device, sizeof(a->device));
	if (fd >= 0 && a->mode != MODE_CLSACT)
		link_look(gate, a, fd);
	else if (fd >= 0)
		filter_look(gate, a);
	if (fd >= 0)
		close(fd);
	a->device_gone = !a->program_id && !device_is_there(a);
}

/* --- Attachments of a gate ------------------------------------------------------------------ */

static int is_pin(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

enum status attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
			     unsigned int *ret_count)
{
	struct dirent **entries;
	unsigned int count = 0;
	int found;
	enum status status = pins_list(&gate->links, is_pin, &entries, &found);

	if (status)
		return status;
	for (int i = 0; i < found; i++) {
		if (count < ATTACHMENTS_MAX && attachment_of_pin(entries[i]->d_name, &ret[count]))
			attachment_look(gate, &ret[count++]);
		free(entries[i]);
	}
	free(entries);
	*ret_count = count;
	return OK;
}
