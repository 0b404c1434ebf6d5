// SPDX-License-Identifier: GPL-2.0
/*
 * Tests user/doctor/findings.h, which reports each finding only if all of its conditions are true.
 */
#include "test.h"
#include "config/config.h"
#include "doctor/findings.h"

#define HERE 4026531840ULL

/*
 * The facts from which the doctor derives findings. The initial facts describe a gate in native XDP
 * mode, and cause no finding.
 */
struct world {
	struct asked asked;
	struct doctor_facts facts;
	struct named_facts named;
	struct gate_facts gate;
	struct device_facts device[2];
	struct traffic traffic[3];
	struct rule rule;
};

static void world_make(struct world *w)
{
	*w = (struct world){
		.asked = {.watch_ns = 2 * SEC_NS},
		.facts = {.asked = &w->asked,
			  .netns = HERE,
			  .host = {.jit = 1},
			  .host_is_read = true,
			  .has_gates = true,
			  .gates = &w->gate,
			  .count = 1,
			  .named = &w->named,
			  .traffic = w->traffic,
			  .traffic_count = 1},
		.gate = {.name = "edge",
			 .is_examined = true,
			 .devices = w->device,
			 .count = 1,
			 .rules = {.rules = &w->rule, .count = 1},
			 .after = {.all = 50}},
		.traffic = {{.netns = HERE,
			     .received = 50,
			     .is_filtered = true,
			     .link = {.ifindex = 2,
				      .name = "eth0",
				      .is_ethernet = true,
				      .is_hardware = true,
				      .is_up = true,
				      .has_carrier = true,
				      .mtu = 1500}}},
	};
	for (int i = 0; i < 2; i++)
		w->device[i] = (struct device_facts){
			.at = {.hook = HOOK_XDP,
			       .mode = MODE_NATIVE,
			       .netns = HERE,
			       .ifindex = 2,
			       .device = "eth0",
			       .program_id = 1},
			.is_asked = true,
			.traffic = &w->traffic[0],
			.nic = {.driver = "ice",
				.queues = 8,
				.queues_max = 16,
				.combined = true,
				.knows_xdp = true,
				.xdp = XDP_NATIVE},
		};
}

/* Returns whether a command contains a placeholder, such as DEV or {0}. */
static bool has_placeholder(const char *command)
{
	size_t upper = 0;

	for (; *command; command++) {
		upper = *command >= 'A' && *command <= 'Z' ? upper + 1 : 0;
		if (upper > 2)
			return true;
	}
	return strchr(command, '{');
}

/*
 * Checks the findings. `found` has the form "id: object; id: object". `advice` is the expected
 * advice of the first finding, or NULL if any advice is accepted.
 */
static void expect(struct world *w, const char *name, const char *found, const char *advice)
{
	struct findings findings;
	char text[1024] = "";
	size_t length = 0;

	assert_int_equal(doctor_find(&w->facts, &findings), 0);
	for (unsigned int i = 0; i < findings.count; i++) {
		const struct finding *finding = &findings.list[i];

		if (!*finding->text || strchr(finding->text, '{') || !*finding->advice ||
		    has_placeholder(finding->advice))
			fail_msg("%s: %s: '%s': '%s'", name, finding->id, finding->text,
				 finding->advice);
		length += snprintf(text + length, sizeof(text) - length, "%s%s: %s", i ? "; " : "",
				   finding->id, finding->object);
	}
	if (strcmp(text, found))
		fail_msg("%s: found '%s', not '%s'", name, text, found);
	if (advice && strcmp(findings.list[0].advice, advice))
		fail_msg("%s: advised '%s'", name, findings.list[0].advice);
	findings_free(&findings);
}

/* Runs the statements in the last argument, which change facts, and checks the findings. */
#define CASE(name, found, advice, ...)                                                             \
	do {                                                                                       \
		struct world world, *w = &world;                                                   \
		struct gate_facts *gate = &w->gate;                                                \
		struct device_facts *device = &w->device[0];                                       \
		struct netdev *link = &w->traffic[0].link;                                         \
		struct host_facts *host = &w->facts.host;                                          \
                                                                                                   \
		(void)gate, (void)device, (void)link, (void)host;                                  \
		world_make(w);                                                                     \
		__VA_ARGS__;                                                                       \
		expect(w, name, found, advice);                                                    \
	} while (0)

TEST(test_host)
{
	CASE("nothing is wrong", "", NULL, (void)0);
	CASE("bpf(2) is refused", "bpf-refused: kernel", "grep Seccomp: /proc/self/status",
	     host->bpf_err = -1);
	CASE("a user namespace has no right to bpf(2)", "bpf-refused: kernel",
	     "cat /proc/self/uid_map", host->bpf_err = -1, host->has_own_users = true);
	CASE("lockdown refuses bpf(2)", "bpf-refused: kernel", "cat /sys/kernel/security/lockdown",
	     host->bpf_err = -1, strcpy(host->lockdown, "integrity"));
	CASE("lockdown refuses nothing", "", NULL, strcpy(host->lockdown, "none"));
	CASE("pins cannot be found", "bpffs: /sys/fs/bpf", NULL, host->bpffs = "hidden");
	CASE("no JIT", "no-jit: kernel", NULL, host->jit = 0);
	CASE("a capability is missing", "rights: process", NULL, host->missing = "CAP_BPF");
	CASE("the host was not read", "", NULL, host->missing = "CAP_BPF",
	     w->facts.host_is_read = false);
}

TEST(test_gates)
{
	CASE("no gate", "no-gate: main", "sluice attach eth0", w->facts.count = 0,
	     w->facts.has_gates = false);
	CASE("no gate of that name", "no-gate: lab", "sluice -g lab attach eth0 hook ingress",
	     w->facts.count = 0, w->facts.has_gates = false, w->asked.gate = "lab",
	     link->has_xdp = true);
	CASE("no gate, and two devices", "no-gate: main", "sluice attach eth1", w->facts.count = 0,
	     w->facts.has_gates = false, link->received = 1, w->facts.traffic_count = 2,
	     w->traffic[1] = w->traffic[0], strcpy(w->traffic[1].link.name, "eth1"),
	     w->traffic[1].link.received = 2);
	CASE("no gate, and no device is up", "no-gate: main", "ip link show", w->facts.count = 0,
	     w->facts.has_gates = false, link->is_up = false);
	CASE("no gate, and its file is not applied", "no-gate: main",
	     "sluice apply /etc/sluice/main.yaml", w->facts.count = 0, w->facts.has_gates = false,
	     w->facts.has_file = true);
	CASE("no gate, and its service is not enabled", "no-gate: main",
	     "systemctl enable --now sluice@main", w->facts.count = 0, w->facts.has_gates = false,
	     w->facts.has_file = host->has_systemd = true);
	CASE("an unreadable gate", "gate-unread: edge", "sluice -v status",
	     gate->unread = "schema 99", link->is_up = false);
	CASE("an interrupted resize", "resize-interrupted: edge", "sluice -g edge upgrade",
	     gate->resize_is_interrupted = true);
	CASE("no device", "no-device: edge", "sluice -g edge attach eth0", gate->count = 0);
	CASE("attachments are unknown", "unseen: edge", "sudo sluice doctor", gate->count = 0,
	     gate->hides_devices = true, gate->unseen = "unknown", host->missing = "CAP_BPF",
	     w->facts.host_is_read = false);
	CASE("a namespace cannot be entered", "unseen: eth0", NULL, device->traffic = NULL);
	CASE("a trial", "trial: edge", "sluice -g edge confirm", gate->trial_left_ns = 1);
	CASE("an older program", "older-program: edge", "sluice -g edge upgrade",
	     device->loaded_at = 5 * SEC_NS, host->installed_at = 7 * SEC_NS);
	CASE("a program that the installation loaded", "", NULL, device->loaded_at = 6 * SEC_NS,
	     host->installed_at = 7 * SEC_NS);
	CASE("no process keeps it", "not-kept: edge", "systemctl enable --now sluice@edge",
	     host->has_systemd = gate->has_file = true);
	CASE("a process keeps it", "", NULL, host->has_systemd = gate->has_file = true,
	     gate->kept = LOCK_HELD);
	CASE("a device with another XDP program is named", "not-attached: eth1",
	     "sluice -g edge attach eth1 hook ingress", w->asked.gate = "edge", w->asked.count = 1,
	     w->traffic[1].link.has_xdp = true,
	     w->named = (struct named_facts){"eth1", &w->traffic[1].link, {.program_id = 7}},
	     strcpy(w->traffic[1].link.name, "eth1"));
	CASE("a device that does not exist is named", "not-attached: eth7", "ip link show",
	     w->asked.count = 1, w->named.name = "eth7");
	CASE("a gate that cannot be read may have the named device", "gate-unread: edge", NULL,
	     w->asked.count = 1, w->named.name = "eth7", gate->hides_devices = true,
	     gate->unread = "schema 99");
	CASE("an attached device is named", "", NULL, w->asked.count = 1, w->named.name = "eth0");
	CASE("two gates", "no-rules: edge; no-rules: edge", NULL,
	     struct gate_facts gates[2] = {[0 ... 1] = w->gate};
	     gates[0].rules.count = gates[1].rules.count = 0; w->facts.gates = gates;
	     w->facts.count = 2);
}

TEST(test_numbers_of_gates)
{
	static const struct sl_prefix wide = {0}; /* default */

	CASE("a limit that observes", "observes: default dns:bits",
	     "sluice -g edge set default name dns rate 9pps burst 9",
	     struct limit limit = {.spec = {.name = "dns",
					    .rate = 9,
					    .burst = 9,
					    .action = SL_ACTION_OBSERVE,
					    .per = {32, 64}},
				   .match = {.fact = SL_FACT_ANY}};
	     w->rule.limit = &limit; w->rule.limits = gate->observing = 1;
	     strcpy(gate->first_observing.name, "dns:bits"); gate->first_observing.refused = 5);
	CASE("its policy is gone", "", NULL, gate->observing = 1, w->rule.prefix.bits = 100,
	     strcpy(gate->first_observing.name, "dns"));
	CASE("no budget", "no-budget: default", "sluice -g edge newcomers default rate 1kpps",
	     gate->unbudgeted = 1, gate->first_unbudgeted = wide);
	CASE("a flood passes", "flood-passes: default", NULL, gate->unbudgeted = 1,
	     gate->passing.policies = 1);
	CASE("twice the limit of one source", "no-budget: default",
	     "sluice -g edge newcomers default rate 40mbit",
	     struct limit limit = {.spec = {.rate = 20000000, .rate_unit = SL_RATE_BITS}};
	     w->rule.limit = &limit; w->rule.limits = gate->unbudgeted = 1);
	CASE("a spent budget", "budget-spent: default", NULL, gate->spent = 2,
	     gate->spent_dropped = 7);
	CASE("the table is short", "table-short: edge",
	     "sluice -g edge dump | sed -e '1i gate:\\n  sources: 20' "
	     "-e '/^gate:$/d; /^  sources: /d' | sluice -g edge apply - --resize",
	     gate->fill.sources = 10, gate->fill.sources_short = 20);
	CASE("the table cannot be larger", "table-short: edge", "sluice -g edge status",
	     gate->fill.sources_short = SIZE_MAX_ENTRIES);
}

static void share(struct world *w, enum sharer sharer)
{
	struct sharing *sharing = &w->gate.sharing;

	*sharing = (struct sharing){.is_wanted = true,
				    .sharer = sharer,
				    .pid = 47,
				    .name = "all",
				    .store = "[::1]:7000,b:1",
				    .state = {.nodes = 3, .rounds = 1}};
}

TEST(test_sharing)
{
	CASE("limits are shared", "", NULL, share(w, SHARER_LIVES));
	CASE("limits are not to be shared", "", NULL, share(w, SHARER_NONE),
	     gate->sharing.is_wanted = false);
	CASE("no process", "unshared: edge", "sluice -g edge share '[::1]:7000,b:1' --name all",
	     share(w, SHARER_NONE));
	CASE("no process ever shared them", "unshared: edge", "sluice -g edge share localhost:6379",
	     gate->sharing.is_wanted = true);
	CASE("the command of the last process is known", "unshared: edge", "sluice share x",
	     share(w, SHARER_NONE), strcpy(gate->sharing.command, "sluice share x"));
	CASE("the unit does not run", "unshared: edge",
	     "systemctl enable sluice-share@edge && systemctl restart sluice-share@edge",
	     share(w, SHARER_NONE), host->has_systemd = gate->has_share_file = true);
	CASE("the process is stopped", "unshared: edge", "kill -s cont 47",
	     share(w, SHARER_SILENT));
	CASE("the store is away, and limits are divided", "unshared: edge", "sluice -g edge status",
	     share(w, SHARER_LIVES), gate->sharing.state.store_is_away = true,
	     gate->sharing.divided_by = 3);
}

TEST(test_devices)
{
	CASE("the device is gone", "device-gone: eth0", "sluice -g edge detach eth0",
	     device->at.program_id = 0, device->at.device_gone = true, device->traffic = NULL);
	CASE("the filter is gone", "filter-gone: eth0", "sluice -g edge attach eth0 hook xdp",
	     device->at.program_id = 0);
	CASE("the filter of mode generic is gone", "filter-gone: eth0",
	     "sluice -g edge attach eth0 hook xdp mode generic", device->at.program_id = 0,
	     device->traffic = NULL, device->at.mode = MODE_GENERIC);
	CASE("the filter of hook ingress is gone", "filter-gone: eth0",
	     "sluice -g edge attach eth0 hook ingress", device->at.program_id = 0,
	     device->traffic = NULL, device->at.hook = HOOK_INGRESS, device->at.mode = MODE_TCX);
	CASE("the filter of hook egress is gone", "filter-gone: eth0",
	     "sluice -g edge attach eth0 hook egress mode clsact", device->at.program_id = 0,
	     device->traffic = NULL, device->at.hook = HOOK_EGRESS, device->at.mode = MODE_CLSACT);
	CASE("the program of mode chain is gone", "filter-gone: eth0",
	     "sluice -g edge attach eth0 hook xdp mode chain", device->at.program_id = 0,
	     device->traffic = NULL, device->at.mode = MODE_CHAIN);
	CASE("the component of libxdp is gone", "filter-gone: eth0",
	     "sluice -g edge attach eth0 hook xdp mode libxdp priority 5",
	     device->at.program_id = 0, device->traffic = NULL, device->at.mode = MODE_LIBXDP,
	     device->at.priority = 5);
	CASE("the component with the default priority is gone", "filter-gone: eth0",
	     "sluice -g edge attach eth0 hook xdp mode libxdp", device->at.program_id = 0,
	     device->traffic = NULL, device->at.mode = MODE_LIBXDP,
	     device->at.priority = PRIORITY_DEFAULT);
	CASE("the slot is empty", "filter-gone: eth0",
	     "sluice -g edge attach eth0 hook xdp array '/sys/fs/bpf/root array' 1",
	     device->at.program_id = 0, device->traffic = NULL, device->at.mode = MODE_ARRAY,
	     device->at.slot = ((struct array_slot){"/sys/fs/bpf/root array", 1}));
	CASE("a device that the user did not name", "", NULL, device->is_asked = false,
	     link->is_up = false);
	CASE("the device is down", "device-down: eth0", "ip link set dev eth0 up",
	     link->is_up = link->has_carrier = false);
	CASE("no carrier", "no-carrier: eth0", NULL, link->has_carrier = false);
	CASE("hook ingress", "not-native: eth0",
	     "sluice -g edge attach eth0 hook xdp mode native && sluice -g edge detach eth0 hook "
	     "ingress",
	     device->at.hook = HOOK_INGRESS, device->at.mode = MODE_TCX);
	CASE("generic mode", "not-native: eth0; merged: eth0",
	     "sluice -g edge attach eth0 hook ingress && sluice -g edge detach eth0 hook xdp && "
	     "sluice -g edge attach eth0 hook xdp mode native && sluice -g edge detach eth0 hook "
	     "ingress",
	     device->at.mode = MODE_GENERIC);
	CASE("no native mode", "merged: eth0", NULL, device->at.mode = MODE_GENERIC,
	     device->nic.xdp = 0);
	CASE("the XDP features are unknown", "merged: eth0", NULL, device->at.mode = MODE_GENERIC,
	     device->nic.knows_xdp = false);
	CASE("a tap", "merged: eth0", NULL, strcpy(link->kind, "tun"));
	CASE("another XDP program", "other-xdp: eth0", "bpftool prog show id 7",
	     device->at.hook = HOOK_INGRESS, device->owner.program_id = 7);
	CASE("libxdp", "other-xdp: eth0", "xdp-loader status eth0", device->at.hook = HOOK_INGRESS,
	     device->owner = (struct xdp_owner){.program_id = 7, .name = "xdp_dispatcher"});
	CASE("another XDP program in mode chain", "shared-xdp: eth0", "sluice -g edge status",
	     device->at.mode = MODE_CHAIN,
	     device->order = ((struct xdp_order){.count = 2, .program = {{.id = 1}, {.id = 7}}}));
	CASE("mode chain without another program", "", NULL, device->at.mode = MODE_CHAIN,
	     device->order.count = 1);
	CASE("another gate on hook xdp", "", NULL, device->at.hook = HOOK_INGRESS,
	     device->owner = (struct xdp_owner){.program_id = 7, .gate = "lab"});
	CASE("a device name that a shell would execute", "merged: a;$(id)",
	     "sluice -g edge attach 'a;$(id)' hook ingress && sluice -g edge detach 'a;$(id)' hook "
	     "xdp",
	     device->at.mode = MODE_GENERIC, device->nic.xdp = 0,
	     strcpy(device->at.device, "a;$(id)"));
}

TEST(test_what_keeps_a_driver_from_native_xdp)
{
	static const char down[] = "not-native: eth0";

#define INGRESS device->at.hook = HOOK_INGRESS, device->at.mode = MODE_TCX
	CASE("LRO", down, "ethtool -K eth0 lro off", INGRESS, device->nic.lro = true);
	CASE("MTU", down, "ip link set dev eth0 mtu 1500", INGRESS, link->mtu = 9000);
	CASE("MTU, but packets may be in several buffers", down,
	     "sluice -g edge attach eth0 hook xdp mode native && sluice -g edge detach eth0 hook "
	     "ingress",
	     INGRESS, link->mtu = 9000, device->nic.xdp |= XDP_FRAGS);
	CASE("queues", down, "ethtool -L eth0 combined 8", INGRESS, device->nic.queues = 16);
	CASE("an unknown driver with LRO", down, NULL, INGRESS, device->nic.lro = true,
	     device->nic.knows_xdp = false);
	CASE("the peer of a veth has more queues", down, "ethtool -L eth0 rx 16", INGRESS,
	     device->nic.xdp = 0, strcpy(link->kind, "veth"));
	CASE("the peer of a veth has more queues than the veth can have", down, "ethtool -l eth0",
	     INGRESS, device->nic.xdp = 0, device->nic.queues = 16, strcpy(link->kind, "veth"));
	CASE("native mode with an obstacle", "", NULL, device->nic.lro = true);
#undef INGRESS
}

TEST(test_vlans)
{
#define VLAN7 gate->rule.vlans[0] = 1 << 7
	CASE("a card removes the tag", "vlan-hidden: eth0", "ethtool -K eth0 rxvlan off", VLAN7,
	     device->nic.vlan_strip = true);
	CASE("no limit matches a VLAN", "", NULL, device->nic.vlan_strip = true);
	CASE("the card keeps the tag", "", NULL, VLAN7);
	CASE("hook ingress sees it, so native XDP is not advised", "", NULL, VLAN7,
	     device->nic.vlan_strip = true, device->at.hook = HOOK_INGRESS);
	CASE("a veth", "vlan-hidden: eth0",
	     "sluice -g edge attach eth0 hook ingress && sluice -g edge detach eth0 hook xdp",
	     VLAN7, device->nic.vlan_strip = true, strcpy(link->kind, "veth"));
	CASE("the device of the VLAN", "vlan-hidden: eth0", "ip -d link show dev eth0", VLAN7,
	     link->vlan = 7);
	CASE("the device of the VLAN, and its parent", "vlan-hidden: eth0",
	     "sluice -g edge attach eth1 && sluice -g edge detach eth0 hook xdp", VLAN7,
	     link->vlan = 7, link->parent = 3, w->facts.traffic_count = 2,
	     w->traffic[1] = w->traffic[0], w->traffic[1].link.ifindex = 3,
	     strcpy(w->traffic[1].link.name, "eth1"));
	CASE("the device of another VLAN", "", NULL, VLAN7, link->vlan = 8);
#undef VLAN7
}

/* --- Traffic -------------------------------------------------------------------------------- */

enum on { XDP, EGRESS, GENERIC };
#define RECEIVED(index, packets)                                                                   \
	{                                                                                          \
		.netns = HERE, .received = packets, .link = {                                      \
			.ifindex = index,                                                          \
			.name = "eth1",                                                            \
			.is_ethernet = true                                                        \
		}                                                                                  \
	}
static const struct {
	const char *name;
	enum on on;
	uint64_t judged, not_ip, received, sent;
	struct traffic other;
	const char *found;
} flows[] = {
	{"nothing moves", XDP, 0, 0, 0, 0, {0}, ""},
	{"packets are judged", XDP, 50, 0, 50, 0, RECEIVED(3, 90), ""},
	{"packets are not judged", XDP, 0, 0, 20, 0, {0}, "nothing-judged: eth0"},
	{"so few packets are not judged that ARP may be all of them", XDP, 0, 0, 19, 0,
	 RECEIVED(3, 19), ""},
	{"packets arrive on another device", XDP, 0, 0, 0, 0, RECEIVED(3, 50), "elsewhere: eth1"},
	{"less than three quarters are judged", XDP, 74, 0, 100, 0, {0}, "nothing-judged: eth0"},
	{"three quarters are judged", XDP, 75, 0, 100, 0, {0}, ""},
	{"generic XDP counts merged packets as one", GENERIC, 3, 0, 99, 0, {0}, "merged: eth0"},
	{"generic XDP judges no packet",
	 GENERIC,
	 0,
	 0,
	 99,
	 0,
	 {0},
	 "nothing-judged: eth0; merged: eth0"},
	{"some packets bypass hook egress", EGRESS, 3, 0, 0, 99, {0}, "nothing-judged: eth0"},
	{"the gate judges 1 in 100 packets of another device", XDP, 4, 0, 4, 0, RECEIVED(3, 400),
	 ""},
	{"the gate judges less than 1 in 100 packets of another device", XDP, 4, 0, 4, 0,
	 RECEIVED(3, 401), "elsewhere: eth1"},
	{"a gate on egress, and another device receives", EGRESS, 4, 0, 0, 4, RECEIVED(3, 401), ""},
	{"half of the packets are not IP", XDP, 2000, 1000, 2000, 0, {0}, "not-ip: edge"},
	{"less than half of the packets are not IP", XDP, 2001, 1000, 2001, 0, {0}, ""},
	{"too few packets are not IP", XDP, 999, 999, 999, 0, {0}, ""},
};

TEST(test_traffic)
{
	for (size_t i = 0; i < ARRAY_SIZE(flows); i++) {
		struct world w;

		world_make(&w);
		w.gate.after = (struct judged){flows[i].judged, flows[i].not_ip};
		w.traffic[0].received = flows[i].received;
		w.traffic[0].sent = flows[i].sent;
		w.traffic[1] = flows[i].other;
		w.facts.traffic_count = 2;
		if (flows[i].on == EGRESS)
			w.device[0].at.hook = HOOK_EGRESS;
		if (flows[i].on == GENERIC) {
			w.device[0].at.mode = MODE_GENERIC;
			w.device[0].nic.xdp = 0;
		}
		expect(&w, flows[i].name, flows[i].found, NULL);
	}
}

TEST(test_more_traffic)
{
	CASE("another gate filters that device", "", NULL, gate->after.all = 0,
	     w->facts.traffic_count = 2, w->traffic[0].received = 0,
	     w->traffic[1] = (struct traffic)RECEIVED(3, 50), w->traffic[1].is_filtered = true);
	CASE("another gate may filter that device", "", NULL,
	     gate->after.all = w->traffic[0].received = 0, w->facts.traffic_count = 2,
	     w->traffic[1] = (struct traffic)RECEIVED(3, 50), w->facts.hides_devices = true);
	CASE("a long watch with few packets a second", "", NULL, w->asked.watch_ns = 3600 * SEC_NS,
	     gate->after.all = 0, w->traffic[0].received = 35999);
	CASE("another XDP program may drop packets before hook ingress", "other-xdp: eth0", NULL,
	     device->at.hook = HOOK_INGRESS, device->owner.program_id = 7, link->has_xdp = true,
	     w->traffic[0].received = 100);
	CASE("packets were not IP before the watch", "", NULL,
	     gate->before = gate->after = ((struct judged){2000, 2000}),
	     w->traffic[0].received = 0);
	CASE("traffic was not watched", "", NULL, w->asked.watch_ns = 0, gate->after = gate->before,
	     w->traffic[0].received = 0);
	CASE("another device with an XDP program", "elsewhere: eth1",
	     "sluice -g edge attach eth1 hook ingress",
	     gate->after.all = w->traffic[0].received = 0, w->facts.traffic_count = 2,
	     w->traffic[1] = (struct traffic)RECEIVED(3, 50), w->traffic[1].link.has_xdp = true);
	CASE("native XDP misses packets", "nothing-judged: eth0",
	     "sluice -g edge attach eth0 hook ingress && sluice -g edge detach eth0 hook xdp",
	     gate->after.all = 0);
}

/* --- Rules ---------------------------------------------------------------------------------- */

#define LIMIT(prefix, words) "  - prefix: " prefix "\n    limits: [{" words "}]\n"

static const struct {
	const char *name;
	const char *text;
	const char *found;
	const char *advice;
} rules[] = {
	{"no rule", "policies: []", "no-rules: edge", NULL},
	{"a limit", "policies:\n" LIMIT("default", "rate: 10kpps"), "", NULL},
	{"everything is allowed", "allow: [default]", "allowed-all: default",
	 "sluice -g edge unallow default"},
	{"one family is allowed", "allow: [\"::/0\"]", "", NULL},
	{"both families are allowed", "allow: [\"::/0\", 0.0.0.0/0]", "allowed-all: 0.0.0.0/0",
	 NULL},
	{"everything is allowed, but one source is denied", "allow: [default]\ndeny: [192.0.2.7]",
	 "", NULL},
	{"a list denies some of what a list allows",
	 "allow: [{list: all, prefixes: [default]}]\n"
	 "deny: [{list: drop, prefixes: [192.0.2.7]}]",
	 "", NULL},
	{"a list denies a source, but a runtime entry allows everything",
	 "allow: [default]\ndeny: [{list: drop, prefixes: [192.0.2.7]}]", "allowed-all: default",
	 NULL},
	{"everything is allowed, but a prefix is limited",
	 "allow: [default]\npolicies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps"), "", NULL},
	{"everything is allowed for a time", "allow: [{prefix: default, for: 1h}]", "", NULL},
	{"everything is allowed by a list", "allow: [{list: friends, prefixes: [default]}]",
	 "allowed-all: default", "sluice -g edge unallow -f friends"},
	{"everything is denied", "deny: [default]", "denied-all: default",
	 "sluice -g edge undeny default"},
	{"everything is denied, but a prefix is allowed", "deny: [default]\nallow: [192.0.2.0/24]",
	 "", NULL},
	{"everything is denied, but a prefix is limited",
	 "deny: [default]\npolicies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps"), "", NULL},
	{"everything is denied, also a prefix that is limited",
	 "deny: [default, 10.0.0.0/8]\npolicies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps"),
	 "denied-all: default", NULL},
	{"everything is denied for a time", "deny: [{prefix: default, for: 1h}]",
	 "denied-all: default", NULL},
	{"everything is denied by a list", "deny: [{list: all, for: 1h, prefixes: [default]}]",
	 "denied-all: default", "sluice -g edge undeny -f all"},
	{"IPv4 is denied by a list, and everything is allowed by a runtime entry",
	 "deny: [{list: all, prefixes: [0.0.0.0/0]}]\nallow: [default]", "allowed-all: default",
	 NULL},
	{"IPv6 is denied", "deny: [\"::/0\"]", "", NULL},
	{"an entry hides limits",
	 "policies:\n" LIMIT("192.0.2.0/24", "rate: 10kpps") "deny: [192.0.2.0/24]",
	 "entry-over-limits: 192.0.2.0/24", "sluice -g edge undeny 192.0.2.0/24"},
	{"an entry hides limits for a time",
	 "policies:\n" LIMIT("192.0.2.0/24", "rate: 10kpps") //
	 "deny: [{prefix: 192.0.2.0/24, for: 1h}]",
	 "", NULL},
	{"two halves cover a prefix",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps")
		 LIMIT("10.128.0.0/9", "rate: 5kpps"),
	 "covered: 10.0.0.0/8", "sluice -g edge del 10.0.0.0/8"},
	{"a half, and a prefix in that half, do not cover a prefix",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps")
		 LIMIT("10.0.0.0/10", "rate: 5kpps"),
	 "", NULL},
	{"limits that inherit cover nothing",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps")
		 LIMIT("10.128.0.0/9", "rate: 5kpps") "    inherit: true\n",
	 "", NULL},
	{"an entry that ends covers nothing",
	 "policies:\n" LIMIT("10.0.0.0/8", "rate: 10kpps") LIMIT("10.0.0.0/9", "rate: 5kpps") //
	 "deny: [{prefix: 10.128.0.0/9, for: 1h}]",
	 "", NULL},
	{"both families cover default",
	 "policies:\n" LIMIT("default", "rate: 10kpps") LIMIT("0.0.0.0/0", "rate: 5kpps")
		 LIMIT("\"::/0\"", "rate: 5kpps"),
	 "covered: default", NULL},
	{"two hosts cover a /127",
	 "policies:\n" LIMIT("\"2001:db8::/127\"", "rate: 10kpps") //
	 "deny: [\"2001:db8::\", \"2001:db8::1\"]",
	 "covered: 2001:db8::/127", NULL},
};

TEST(test_rules)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct config config;
		struct world w;

		world_make(&w);
		assert_int_equal(config_parse("rules.yaml", rules[i].text, strlen(rules[i].text),
					      false, &config),
				 0);
		w.gate.rules = config.rules;
		w.gate.rule = rule_facts_find(&config.rules);
		expect(&w, rules[i].name, rules[i].found, rules[i].advice);
		config_free(&config);
	}
}

TESTS(NULL, NULL)
