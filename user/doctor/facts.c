// SPDX-License-Identifier: GPL-2.0
#include "doctor/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "attach/published.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/netns.h"
#include "migrate/open.h"
#include "gate/policy.h"
#include "gate/rules.h"
#include "gate/gate.h"
#include "state/pressure.h"
#include "state/stats.h"

/* Removes the errors and notices from index `mark` on, and returns their texts, joined by "; ". */
static char *errors_take(unsigned int mark)
{
	char *joined = NULL;

	for (unsigned int i = mark; i < error_count(); i++) {
		_cleanup_free_ char *before = joined, *text = error_format(error_get(i));

		if (asprintf(&joined, "%s%s%s", before ?: "", before ? "; " : "", text ?: "") < 0)
			joined = NULL;
	}
	error_drop(mark);
	return joined ?: strdup("it cannot be read");
}

/* --- Host ----------------------------------------------------------------------------------- */

static bool line_read(const char *path, char *ret, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");

	return file && fgets(ret, size, file);
}

/* Returns when this program was installed: CLOCK_BOOTTIME in ns, or 0 if unknown. */
static uint64_t installed_at(void)
{
	struct timespec real, boot;
	struct stat installed;
	int64_t age;

	if (stat("/proc/self/exe", &installed) || clock_gettime(CLOCK_REALTIME, &real) ||
	    clock_gettime(CLOCK_BOOTTIME, &boot))
		return 0;
	age = (real.tv_sec - installed.st_ctim.tv_sec) * (int64_t)NS_PER_SEC + real.tv_nsec -
	      installed.st_ctim.tv_nsec;
	age = boot.tv_sec * (int64_t)NS_PER_SEC + boot.tv_nsec - age;
	return age > 0 ? age : 0;
}

/*
 * Reads facts about the host. If `is_probed` is not set, reads only has_systemd, missing and
 * installed_at.
 */
static struct host_facts host_read(bool is_probed)
{
	struct host_facts host = {.jit = -1, .installed_at = installed_at()};
	const char *missing = caps_missing();
	unsigned int mark = error_count();
	struct pins root = PINS_CLOSED;
	char line[128], *begin, *end;

	host.has_systemd = !access("/run/systemd/system", F_OK);
	host.missing = missing ? strdup(missing) : NULL;
	if (!is_probed)
		return host;
	if (!missing) {
		/* try the smallest map: if the kernel refuses it, the kernel refuses all maps */
		_cleanup_close_ int fd =
			bpf_map_create(BPF_MAP_TYPE_ARRAY, "sl_doctor", 4, 4, 1, NULL);

		host.bpf_err = fd < 0 ? fd : 0;
		host.has_own_users = in_user_namespace();
		if (bpffs_refuse_private() || pins_open_root(false, &root))
			host.bpffs = errors_take(mark);
		pins_close(&root);
	}
	/* the current mode is in brackets: "none [integrity] confidentiality" */
	if (line_read("/sys/kernel/security/lockdown", line, sizeof(line)) &&
	    (begin = strchr(line, '[')) && (end = strchr(begin, ']')))
		snprintf(host.lockdown, sizeof(host.lockdown), "%.*s", (int)(end - begin - 1),
			 begin + 1);
	if (line_read("/proc/sys/net/core/bpf_jit_enable", line, sizeof(line)))
		host.jit = atoi(line);
	return host;
}

/* --- Gates and attachments ------------------------------------------------------------------ */

/* Reads how many packets a gate has judged. Returns 0 or a negative errno. */
static int judged_read(const struct gate *gate, struct judged *ret)
{
	struct stats stats;
	const struct sl_cell *reason = stats.total.reason;
	int err = stats_read(gate, &stats);

	if (err)
		return err;
	ret->all = counters_passed(&stats.total).packets + counters_dropped(&stats.total).packets;
	ret->not_ip = reason[SL_PASS_NOT_IP].packets + reason[SL_PASS_SHORT].packets +
		      reason[SL_PASS_BAD_HEADER].packets;
	stats_free(&stats);
	return 0;
}

/* Reads the gate's attachments from its links or its published file. Returns 0 or -ENOMEM. */
static int attachments_find(const struct asked *asked, struct gate_facts *gate)
{
	_cleanup_free_ struct seen *seen = calloc(1, sizeof(*seen));
	unsigned int mark = error_count();

	if (!seen)
		return -ENOMEM;
	if (attachments_see(&gate->gate, seen) || seen->sight == SIGHT_NONE) {
		gate->unseen = errors_take(mark);
		gate->hides_devices = true;
		return 0;
	}
	error_drop(mark);
	if (seen->sight == SIGHT_PUBLISHED &&
	    asprintf(&gate->unseen,
		     "this process may not read its attachments; they were published %" PRIu64
		     " s ago",
		     seen->age_ns / NS_PER_SEC) < 0)
		return -ENOMEM;
	gate->devices = calloc(seen->count + 1, sizeof(*gate->devices));
	if (!gate->devices)
		return -ENOMEM;
	for (; gate->count < seen->count; gate->count++) {
		struct device_facts *device = &gate->devices[gate->count];

		device->at = seen->all[gate->count];
		device->is_asked = !asked->count;
		for (unsigned int i = 0; i < asked->count; i++)
			device->is_asked |= !strcmp(asked->devices[i], device->at.device) &&
					    device->at.netns == netns_current();
	}
	return 0;
}

/* Appends an element for a gate, without facts. Returns NULL if there is no memory. */
static struct gate_facts *gate_append(struct doctor_facts *facts, const char *name)
{
	struct gate_facts *gate;

	if (!array_grow(facts->gates, facts->count, facts->room))
		return NULL;
	gate = &facts->gates[facts->count++];
	*gate = (struct gate_facts){0};
	gate->gate = GATE_CLOSED;
	snprintf(gate->name, sizeof(gate->name), "%s", name);
	return gate;
}

/*
 * Callback of gates_for_each(): reads a gate. If the user asked about another gate, reads only the
 * attachments of this gate.
 */
static int gate_read(const char *name, void *data)
{
	struct doctor_facts *facts = data;
	const struct asked *asked = facts->asked;
	struct gate_facts *gate = gate_append(facts, name);
	unsigned int mark = error_count(), wanted = 0;

	if (!gate)
		return -ENOMEM;
	gate->is_examined = !asked->gate || !strcmp(name, asked->gate);
	facts->has_gates |= gate->is_examined;
	if (gate_open(&gate->gate, name, GATE_READ, NULL) ||
	    (gate->is_examined && judged_read(&gate->gate, &gate->before))) {
		gate->unread = errors_take(mark);
		gate->hides_devices = true;
	} else if (attachments_find(asked, gate)) {
		return -ENOMEM;
	}
	gate->after = gate->before;
	facts->hides_devices |= gate->hides_devices;
	for (unsigned int i = 0; i < gate->count; i++)
		wanted += gate->devices[i].is_asked;
	if (asked->count && !wanted && !gate->hides_devices)
		gate->is_examined = false; /* this gate has none of the named devices */
	return 0;
}

static int gates_read(struct doctor_facts *facts)
{
	const char *wanted = facts->asked->gate;
	unsigned int mark = error_count();
	struct gate_facts *gate;
	int err = gates_for_each(gate_read, NULL, facts);

	if (!err || err == -ENOMEM)
		return err;
	facts->hides_devices = true;
	if (wanted && facts->has_gates) {
		error_drop(mark); /* ignore the error: asked->gate was read */
		return 0;
	}
	gate = gate_append(facts, wanted ?: BPFFS);
	if (!gate)
		return -ENOMEM;
	gate->unread = errors_take(mark);
	gate->is_examined = gate->hides_devices = true;
	facts->has_gates = true; /* the gates could not be listed, so one may exist */
	return 0;
}

/* --- Traffic -------------------------------------------------------------------------------- */

/* Returns the devices of a namespace, or none after an error. The caller calls netdevs_free(). */
static struct netdevs netdevs_of(uint64_t netns)
{
	unsigned int mark = error_count();
	_cleanup_netns_ int back = -1;
	struct netdevs devices = {0};

	if (!netns_visit(netns, &back))
		netdevs_read(&devices);
	error_drop(mark);
	return devices;
}

/*
 * Adds the devices of a namespace to facts->traffic, if they are not there yet. Returns 0 or
 * -ENOMEM.
 */
static int traffic_add(struct doctor_facts *facts, uint64_t netns)
{
	struct netdevs links;
	int err = 0;

	for (unsigned int i = 0; i < facts->traffic_count; i++)
		if (facts->traffic[i].netns == netns)
			return 0;
	links = netdevs_of(netns);
	for (unsigned int i = 0; !err && i < links.count; i++) {
		if (array_grow(facts->traffic, facts->traffic_count, facts->traffic_room))
			facts->traffic[facts->traffic_count++] =
				(struct traffic){.netns = netns, .link = links.list[i]};
		else
			err = -ENOMEM;
	}
	netdevs_free(&links);
	return err;
}

/* Reads the counters of all devices a second time. If a device is gone, sets its ifindex to 0. */
static void traffic_compare(struct doctor_facts *facts)
{
	struct netdevs links = {0};
	uint64_t netns = 0;

	for (unsigned int i = 0; i < facts->traffic_count; i++) {
		struct traffic *traffic = &facts->traffic[i];
		const struct netdev *now;

		if (traffic->netns != netns) {
			netdevs_free(&links);
			netns = traffic->netns;
			links = netdevs_of(netns);
		}
		now = netdevs_find(&links, traffic->link.ifindex);
		if (!now) {
			traffic->link.ifindex = 0;
			continue;
		}
		/* ignore a smaller counter, because a driver that restarts resets its counters */
		if (now->received > traffic->link.received)
			traffic->received = now->received - traffic->link.received;
		if (now->sent > traffic->link.sent)
			traffic->sent = now->sent - traffic->link.sent;
		traffic->link = *now;
	}
	netdevs_free(&links);
}

/*
 * Reads the counters of a gate again. Opens the gate by its name, because a resize replaces the
 * maps that contain the counters. If the gate was removed or replaced, `after` stays equal to
 * `before`.
 */
static void judged_compare(struct gate_facts *gate)
{
	unsigned int mark = error_count();
	struct gate again = GATE_CLOSED;
	struct judged after;

	if (!gate_open(&again, gate->name, GATE_READ, NULL) && !judged_read(&again, &after) &&
	    after.all >= gate->before.all && after.not_ip >= gate->before.not_ip)
		gate->after = after;
	error_drop(mark);
	gate_close(&again);
}

/*
 * Counts the packets of devices and gates during a pause of asked->watch_ns. A gate's interval
 * contains the interval of its devices, so the gate counts each packet that a device counts.
 * Returns 0 or -ENOMEM.
 */
static int traffic_read(struct doctor_facts *facts)
{
	struct timespec left = {
		.tv_sec = facts->asked->watch_ns / NS_PER_SEC,
		.tv_nsec = facts->asked->watch_ns % NS_PER_SEC,
	};
	int err = traffic_add(facts, facts->netns);
	bool is_watched = false;

	for (unsigned int i = 0; i < facts->count; i++)
		for (unsigned int j = 0; !err && j < facts->gates[i].count; j++) {
			const struct device_facts *device = &facts->gates[i].devices[j];

			if (!facts->gates[i].is_examined)
				continue;
			is_watched |= device->is_asked;
			if (device->at.program_id)
				err = traffic_add(facts, device->at.netns);
		}
	if (err || !is_watched || !facts->asked->watch_ns)
		return err;
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left))
		;
	traffic_compare(facts);
	for (unsigned int i = 0; i < facts->count; i++)
		if (facts->gates[i].is_examined && !facts->gates[i].unread)
			judged_compare(&facts->gates[i]);
	return 0;
}

/* --- Devices -------------------------------------------------------------------------------- */

static void devices_read(struct doctor_facts *facts, struct gate_facts *gate)
{
	unsigned int mark = error_count();

	for (unsigned int i = 0; i < gate->count; i++) {
		struct device_facts *device = &gate->devices[i];
		const struct attachment *a = &device->at;
		struct bpf_prog_info info = {0};
		_cleanup_netns_ int back = -1;
		_cleanup_close_ int fd = -1;
		__u32 size = sizeof(info);

		for (unsigned int j = 0; a->program_id && j < facts->traffic_count; j++) {
			struct traffic *traffic = &facts->traffic[j];

			if (traffic->netns != a->netns || traffic->link.ifindex != a->ifindex)
				continue;
			device->traffic = traffic;
			traffic->is_filtered = true;
		}
		if (!gate->is_examined || !device->is_asked || !device->traffic)
			continue;
		fd = bpf_prog_get_fd_by_id(a->program_id);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
			device->loaded_at = info.load_time;
		if (netns_visit(a->netns, &back))
			continue;
		device->nic = nic_read(device->traffic->link.name, a->ifindex);
		device->owner = xdp_owner_find(a->ifindex);
		xdp_order_read(&gate->gate, a, &device->order);
	}
	error_drop(mark);
}

static int named_read(struct doctor_facts *facts)
{
	unsigned int mark = error_count();

	facts->named = calloc(facts->asked->count + 1, sizeof(*facts->named));
	if (!facts->named)
		return -ENOMEM;
	for (unsigned int i = 0; i < facts->asked->count; i++) {
		struct named_facts *named = &facts->named[i];

		named->name = facts->asked->devices[i];
		for (unsigned int j = 0; !named->link && j < facts->traffic_count; j++) {
			const struct traffic *traffic = &facts->traffic[j];

			if (traffic->netns != facts->netns ||
			    strcmp(traffic->link.name, named->name))
				continue;
			named->link = &traffic->link;
			named->owner = xdp_owner_find(traffic->link.ifindex);
		}
	}
	error_drop(mark);
	return 0;
}

/* --- Facts from maps and files -------------------------------------------------------------- */

/*
 * Counts limits with action observe that have refused packets. Users often forget to change such
 * limits to drop.
 */
static int observing_read(struct gate_facts *gate)
{
	struct stats stats;
	int err = stats_read(&gate->gate, &stats);

	for (unsigned int i = 0; !err && i < stats.count; i++)
		for (unsigned int j = 0; j < stats.lines[i].limits; j++) {
			const struct stats_line *line = &stats.lines[i];
			const struct stats_limit *limit = &line->limit[j];
			uint64_t refused = line->counters.refused[limit->slot].packets;

			if (limit->action != SL_ACTION_OBSERVE || !refused ||
			    prefix_parse(line->policy, &gate->first_observing.prefix) ||
			    gate->observing++)
				continue;
			gate->first_observing.refused = refused;
			memcpy(gate->first_observing.name, limit->name, sizeof(limit->name));
		}
	if (!err)
		stats_free(&stats);
	return err;
}

static int budgets_examine(struct gate_facts *gate)
{
	_cleanup_free_ const struct sl_policy **policies = NULL;
	_cleanup_free_ struct budget_use *uses = NULL;
	struct pressure pressure;
	unsigned int count;
	int err = pressure_read(&gate->gate, &pressure)
			  ?: table_fill_read(&gate->gate, &pressure, &gate->fill)
			  ?: passing_read(&gate->gate, &pressure, &gate->passing)
			  ?: rules_policies(&gate->gate, &policies, &count);

	if (err)
		return err;
	for (unsigned int i = 0; i < count; i++)
		if (policy_lacks_budget(policies[i]) && !gate->unbudgeted++)
			gate->first_unbudgeted = policies[i]->prefix;
	err = budgets_read(&gate->gate, &uses, &count);
	for (unsigned int i = 0; !err && i < count; i++)
		if (!uses[i].left && uses[i].dropped && !gate->spent++) {
			gate->first_spent = uses[i].policy->prefix;
			gate->spent_dropped = uses[i].dropped;
		}
	return err;
}

static bool file_exists(const char *gate, const char *suffix)
{
	char path[sizeof("/etc/sluice/.share") + GATE_NAME];

	snprintf(path, sizeof(path), "/etc/sluice/%s%s", gate, suffix);
	return !access(path, F_OK);
}

static void gate_examine(struct gate_facts *gate)
{
	unsigned int mark = error_count();
	struct lock_holder keeper;

	if (rules_read(&gate->gate, &gate->rules) || observing_read(gate) ||
	    budgets_examine(gate)) {
		gate->unread = errors_take(mark);
		return;
	}
	gate->rule = rule_facts_find(&gate->rules);
	gate->trial_left_ns = trial_left_ns(gate->gate.state);
	gate->resize_is_interrupted = gate_resize_is_interrupted(&gate->gate);
	gate->sharing = sharing_read(&gate->gate);
	gate->kept = lock_file_find(LOCK_KEEP, gate->name, &keeper);
	gate->has_file = file_exists(gate->name, ".yaml");
	gate->has_share_file = file_exists(gate->name, ".share");
	error_drop(mark);
}

/* --- All facts ------------------------------------------------------------------------------ */

int doctor_read(const struct asked *asked, bool has_host, struct doctor_facts *ret)
{
	int err;

	*ret = (struct doctor_facts){
		.asked = asked, .netns = netns_current(), .host_is_read = has_host};
	ret->has_file = file_exists(asked->gate ?: GATE_USUAL, ".yaml");
	ret->host = host_read(has_host);
	err = gates_read(ret) ?: traffic_read(ret) ?: named_read(ret);
	if (err) {
		doctor_free(ret);
		return error_add(err, "no-memory", NULL, "cannot examine the gates: %s", why(err));
	}
	for (unsigned int i = 0; i < ret->count; i++) {
		struct gate_facts *gate = &ret->gates[i];

		if (gate->unread)
			continue;
		devices_read(ret, gate);
		/* read the rules after the pause, because large lists take long to read */
		if (gate->is_examined)
			gate_examine(gate);
	}
	return 0;
}

void doctor_free(struct doctor_facts *facts)
{
	for (unsigned int i = 0; i < facts->count; i++) {
		struct gate_facts *gate = &facts->gates[i];

		free(gate->devices);
		free(gate->unread);
		free(gate->unseen);
		ruleset_free(&gate->rules);
		gate_close(&gate->gate);
	}
	free(facts->gates);
	free(facts->named);
	free(facts->traffic);
	free(facts->host.missing);
	free(facts->host.bpffs);
	*facts = (struct doctor_facts){0};
}
