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
#include "base/array.h"
#include "base/netns.h"
#include "base/text.h"

/* --- Devices -------------------------------------------------------------------------------- */

static void driver_look(int fd, struct device *device)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (void *)&info};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device->name);
	if (ioctl(fd, SIOCETHTOOL, &request))
		return;
	device->is_tap = !strcmp(info.driver, "tun");
	device->is_veth = !strcmp(info.driver, "veth");
}

/* The kernel's number for the kind of frames; -1: errno says why it is not known. */
static int device_type(int fd, const char *name)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(fd, SIOCGIFHWADDR, &request) ? -1 : request.ifr_hwaddr.sa_family;
}

static bool type_is_ethernet(int type)
{
	return type == ARPHRD_ETHER || type == ARPHRD_LOOPBACK;
}

static int device_socket(void)
{
	return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

int device_exists(const char *name, bool *ret)
{
	struct ifreq request = {0};
	int fd = device_socket(), err;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	err = fd < 0 || ioctl(fd, SIOCGIFINDEX, &request) ? errno : 0;
	if (fd >= 0)
		close(fd);
	*ret = !err;
	return !err || err == ENODEV ? OK : failure("cannot ask for %s: %s", name, why(err));
}

int device_carries_ethernet(const char *name, bool *ret)
{
	int fd = device_socket(), type;

	if (fd < 0)
		return failure("cannot ask for %s: %s", name, why(errno));
	type = device_type(fd, name);
	close(fd);
	*ret = type_is_ethernet(type); /* one that has gone meanwhile does not */
	return OK;
}

static int device_query(int fd, struct device *device)
{
	int type = device_type(fd, device->name);

	if (type < 0)
		return failure("cannot read the type of %s: %s", device->name, why(errno));
	if (!type_is_ethernet(type))
		return failure("%s does not carry Ethernet frames, the only kind sluice reads",
			       device->name);
	driver_look(fd, device);
	return OK;
}

int device_find(const char *name, struct device *ret)
{
	struct device device = {.ifindex = if_nametoindex(name)};
	int status;
	int fd;

	if (strlen(name) >= IF_NAMESIZE)
		return failure("a device's name has at most %d letters: 'ip link show %s' tells "
			       "the name of a device with such an altname",
			       IF_NAMESIZE - 1, operand_typed(name));
	if (!device.ifindex)
		return failure("there is no device '%s' in this network namespace: see 'ip link'",
			       name);
	snprintf(device.name, sizeof(device.name), "%s", name);
	fd = device_socket();
	if (fd < 0)
		return failure("cannot ask for %s: %s", name, why(errno));
	status = device_query(fd, &device);
	close(fd);
	if (!status)
		*ret = device;
	return status;
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

#define PROGRAM_LEAD "program-"
#define NEXT_LEAD    "next-"

/* No hook is named `program` or `next`, so attachment_of_pin() ignores these pins. */
const char *attachment_program_pin(const struct attachment *a, char name[PIN_NAME])
{
	return pin_format(a, a->mode == MODE_CLSACT ? "" : PROGRAM_LEAD, name);
}

const char *attachment_next_pin(const struct attachment *a, char name[PIN_NAME])
{
	return pin_format(a, NEXT_LEAD, name);
}

const char *attachment_qdisc_pin(const struct attachment *a, char name[PIN_NAME])
{
	snprintf(name, PIN_NAME, "qdisc-%" PRIu64 "-%u", a->pinned.netns, a->pinned.ifindex);
	return name;
}

/* Parses the name of a pin. False: it is no attachment's. */
static bool attachment_of_pin(const char *name, struct attachment *ret)
{
	struct attachment a = {0};
	char hook[16], mode[16];
	int hook_found, mode_found;

	if (sscanf(name, "%15[a-z]-%15[a-z]-%" SCNu64 "-%u-%15s", hook, mode, &a.pinned.netns,
		   &a.pinned.ifindex, a.pinned.device) != 5)
		return false;
	hook_found = word_find(hook_names, HOOKS, hook);
	mode_found = word_find(mode_names, MODES, mode);
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
	int err;		  /* a negative errno: the device could not be asked */
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

static bool device_runs(struct run_query *query)
{
	bool ingress = query->attachment->hook == HOOK_INGRESS, found = false;

	switch (query->attachment->mode) {
	case MODE_CLSACT:
		query->err = filter_find(query->ifindex, ingress, query->program_id, &found);
		return found;
	case MODE_TCX:
		return tcx_runs(query->ifindex, ingress, query->program_id);
	default:
		return xdp_runs(query->ifindex, query->program_id);
	}
}

static void call_query(void *data)
{
	struct run_query *query = data;

	query->err = 0;
	if (!if_indextoname(query->ifindex, query->device)) {
		query->device[0] = '\0';
		query->err = errno == ENXIO ? 0 : -errno;
	}
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
 * link was attached, then in all namespaces. 0, or a negative errno.
 */
static int link_look(const struct gate *gate, struct attachment *a, int link_fd)
{
	struct run_query query = {.gate = gate, .attachment = a};
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);
	uint64_t netns;

	if (bpf_obj_get_info_by_fd(link_fd, &info, &size))
		return -errno;
	if (!info.xdp.ifindex) /* tcx has its ifindex at the same offset */
		return 0;
	query.program_id = a->program_id = info.prog_id;
	query.ifindex = a->ifindex = info.xdp.ifindex;
	netns = a->pinned.netns;
	netns_run_in(netns, call_query, &query);
	if (!query.runs)
		netns = netns_find(call_query_for, &query);
	if (netns)
		attachment_is_at(a, netns, &query);
	return 0;
}

/* Asks in the attachment's namespace. A namespace that is gone has no device. */
static int query_at_place(struct run_query *query)
{
	if (netns_run_in(query->attachment->netns, call_query, query))
		return query->err;
	return errno == ENOENT ? 0 : -errno;
}

/*
 * Looks up a filter. It is in the recorded namespace or gone, because a move of the device removes
 * its filters. It runs the program of the pin that is open here, or of the next pin. If the caller
 * may not enter the namespace, the filter is assumed to exist. Returns 0 or a negative errno.
 */
static int filter_look(const struct gate *gate, struct attachment *a, int program_fd)
{
	struct run_query query = {.gate = gate, .attachment = a, .ifindex = a->ifindex};
	char name[PIN_NAME];
	int err;

	query.program_id = program_id_of(program_fd);
	if (!query.program_id)
		return -errno;
	err = query_at_place(&query);
	if (err == -EPERM) {
		a->program_id = query.program_id;
		return 0;
	}
	if (!err && !query.runs) {
		query.program_id = program_id_pinned(&gate->links, attachment_next_pin(a, name));
		err = query_at_place(&query);
	}
	if (err)
		return err;
	if (query.runs) {
		a->program_id = query.program_id;
		attachment_is_at(a, a->netns, &query);
	}
	return 0;
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

int attachment_look(const struct gate *gate, struct attachment *a)
{
	char name[PIN_NAME];
	int fd = pin_open(&gate->links, attachment_pin(a, name)), err = 0;

	if (fd < 0 && fd != -ENOENT && fd != -ELOOP)
		return pin_failed("open", &gate->links, name, fd);
	a->program_id = 0;
	a->netns = a->pinned.netns;
	a->ifindex = a->pinned.ifindex;
	memcpy(a->device, a->pinned.device, sizeof(a->device));
	if (fd >= 0)
		err = a->mode == MODE_CLSACT ? filter_look(gate, a, fd) : link_look(gate, a, fd);
	if (fd >= 0)
		close(fd);
	if (err)
		return pin_failed("read", &gate->links, name, err);
	a->device_gone = !a->program_id && !device_is_there(a);
	return OK;
}

bool attachment_merges(const struct attachment *a, bool is_tap)
{
	return a->mode == MODE_GENERIC || (a->hook == HOOK_XDP && is_tap);
}

bool attachments_both_receive(const struct attachment *a, const struct attachment *b)
{
	return a->program_id && b->program_id && a->netns == b->netns && a->ifindex == b->ifindex &&
	       a->hook != b->hook && a->hook != HOOK_EGRESS && b->hook != HOOK_EGRESS;
}

const char *attachment_remedy(const struct attachment *a, const char *gate, char text[REMEDY_TEXT])
{
	char option[NETNS_OPTION];

	if (a->device_gone)
		snprintf(text, REMEDY_TEXT, "sluice -g %s detach %s", gate,
			 operand_typed(a->device));
	else
		snprintf(text, REMEDY_TEXT, "sluice %s-g %s attach %s hook %s",
			 netns_option(a->netns, netns_home(), option), gate,
			 operand_typed(a->device), hook_names[a->hook]);
	return text;
}

/* --- Attachments of a gate ------------------------------------------------------------------ */

static int is_pin(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The name of the attachment's pin that a program's pin belongs to; NULL: it is no such pin. */
static const char *owner_of(const char *name)
{
	static const char *const leads[] = {PROGRAM_LEAD, NEXT_LEAD};

	for (size_t i = 0; i < ARRAY_SIZE(leads); i++)
		if (!strncmp(name, leads[i], strlen(leads[i])))
			return name + strlen(leads[i]);
	return NULL;
}

int attachments_settle(const struct gate *gate)
{
	struct dirent **entries;
	int count;
	int status = pins_list(&gate->links, is_pin, &entries, &count);

	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name, *owner = owner_of(name);

		if (owner && !pin_exists(&gate->links, owner))
			pin_remove(&gate->links, name);
		free(entries[i]);
	}
	free(entries);
	return status;
}

int attachments_read(const struct gate *gate, struct attachment ret[ATTACHMENTS_MAX],
			     unsigned int *ret_count)
{
	struct dirent **entries;
	unsigned int count = 0;
	int found;
	int status = gate->dir.reads_only
				     ? pins_refuse_change(&gate->dir)
				     : pins_list(&gate->links, is_pin, &entries, &found);

	if (status)
		return status;
	for (int i = 0; i < found; i++) {
		if (!status && count < ATTACHMENTS_MAX &&
		    attachment_of_pin(entries[i]->d_name, &ret[count]))
			status = attachment_look(gate, &ret[count++]);
		free(entries[i]);
	}
	free(entries);
	*ret_count = count;
	return status;
}
