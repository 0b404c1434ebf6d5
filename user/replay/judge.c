// SPDX-License-Identifier: GPL-2.0
#include "replay/judge.h"

#include <errno.h>
#include <net/ethernet.h>
#include <string.h>
#include <sys/mman.h>
#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/host.h"
#include "gate/maps.h"
#include "gate/transaction.h"
#include "sluice.skel.h"

/*
 * Largest number of bytes of a frame that BPF_PROG_TEST_RUN gets. A longer frame is cut to this
 * size. An XDP frame has at most a page and 17 fragments. Some kernels do not support fragments for
 * TC: then a frame has at most a page.
 */
#define RUN_MAX	   (64 << 10)
#define RUN_MAX_TC 2048

/*
 * A longer time between two packets counts as this time, 4.5 years. All states are full and all
 * blocks are over after it. The packet path compares times as signed numbers, so it would misread a
 * time that is 18 years later. Captures have such times if the clock was set while they were
 * written.
 */
#define GAP_MAX_NS (2 * SL_BURST_TICKS_MAX / SL_TICKS_PER_NS)

/* --- Making --------------------------------------------------------------------------------- */

/* Makes the gate with room for all rules, and stores the rules in it. */
static int gate_fill(const struct ruleset *rules, const struct gate_sizes *sizes, struct gate *gate)
{
	const struct room room = room_needed(rules);
	const struct gate_sizes needed = room_sizes(&room);
	struct gate_sizes complete, grown;
	struct machine machine;
	__u32 first = 0;
	int err = machine_get(&machine);

	if (err)
		return err;
	complete = gate_sizes_complete(sizes, &machine);
	grown = sizes_grown(&complete, &needed, sizes_bits(sizes));
	err = gate_make_unpinned(gate, &grown, &machine);
	if (err)
		return err;
	snprintf(gate->name, sizeof(gate->name), "replay");
	/* a fixed secret: with a random secret, two replays would evict different states */
	for (int i = 0; i < SL_SECRETS; i++)
		gate->secret[i] = (i + 1) * 0x9e3779b97f4a7c15ULL;
	err = bpf_map_update_elem(gate->map[MAP_SECRET], &first, gate->secret, 0);
	return err ? gate_map_unread(gate, MAP_SECRET, err) : rules_change(gate, rules, NULL);
}

/* Loads the programs with the gate's maps, and maps the variables of the programs into memory. */
static int programs_open(struct judge *judge)
{
	static const char *const names[HOOKS] = {"sluice_xdp", "sluice_ingress", "sluice_egress"};
	struct bpf_object *object = judge->object = object_open();
	struct bpf_map *bss;
	int err = 0;

	if (!object)
		return -EIO;
	for (int hook = 0; hook < HOOKS; hook++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(object, names[hook]),
					  hook == HOOK_XDP || hook == (int)judge->hook);
	for (int map = 0; !err && map < GATE_MAPS; map++)
		err = bpf_map__reuse_fd(object_map(object, map), judge->gate.map[map]);
	err = err ?: bpf_object__load(object);
	if (err)
		return error_add(err, "programs-load", NULL,
				 "cannot load the BPF programs: %s (-v shows the kernel's log)",
				 why(err));
	for (int hook = 0; hook < HOOKS; hook++)
		judge->program[hook] =
			bpf_program__fd(bpf_object__find_program_by_name(object, names[hook]));
	bss = bpf_object__find_map_by_name(object, ".bss");
	judge->bss = mmap(NULL, sizeof(*judge->bss), PROT_READ | PROT_WRITE, MAP_SHARED,
			  bpf_map__fd(bss), 0);
	if (judge->bss == MAP_FAILED) {
		judge->bss = NULL;
		return error_add(errno, "programs-load", NULL,
				 "cannot map the variables of the BPF programs: %s", why(errno));
	}
	return 0;
}

int judge_open(const struct ruleset *rules, const struct gate_sizes *sizes, enum hook hook,
	       struct judge *ret)
{
	int err;

	*ret = (struct judge)JUDGE_CLOSED;
	ret->hook = hook;
	err = gate_fill(rules, sizes, &ret->gate) ?: programs_open(ret);
	if (err)
		judge_close(ret);
	return err;
}

void judge_close(struct judge *judge)
{
	if (judge->bss)
		munmap(judge->bss, sizeof(*judge->bss));
	bpf_object__close(judge->object);
	gate_close(&judge->gate);
	*judge = (struct judge)JUDGE_CLOSED;
}

/* --- Judging -------------------------------------------------------------------------------- */

static void clock_set(struct judge *judge, uint64_t ns)
{
	uint64_t gap = ns - judge->last_ns;

	if (!judge->now_ns)
		judge->now_ns = JUDGE_BEGUN_NS;
	else
		judge->now_ns += gap < GAP_MAX_NS ? gap : GAP_MAX_NS;
	judge->last_ns = ns;
	judge->bss->test_clock_ticks = judge->now_ns * SL_TICKS_PER_NS;
	judge->bss->test_jiffies = judge->now_ns / judge->gate.machine.jiffy_ns;
}

static int program_run(int program, const uint8_t *bytes, uint32_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = bytes, .data_size_in = size, .repeat = 1);

	return bpf_prog_test_run_opts(program, &opts);
}

/*
 * Runs the program of the hook. Returns a negative errno if the kernel does not run it on the
 * frame.
 */
static int frame_run(const struct judge *judge, const uint8_t *bytes, uint32_t size)
{
	int err = program_run(judge->program[judge->hook], bytes, size);

	if (err && judge->hook != HOOK_XDP && size > RUN_MAX_TC)
		return program_run(judge->program[judge->hook], bytes, RUN_MAX_TC);
	/*
	 * An skb needs a byte after the Ethernet header. A frame that ends there has no source, so
	 * all hooks have the same verdict.
	 */
	if (err && size == ETH_HLEN)
		return program_run(judge->program[HOOK_XDP], bytes, size);
	return err;
}

enum judge_result judge_packet(struct judge *judge, const struct capture_packet *packet,
			       struct sl_judged *ret)
{
	uint32_t size = packet->size < RUN_MAX ? packet->size : RUN_MAX;

	*ret = (struct sl_judged){.reason = SL_PASS_SHORT};
	if (packet->length < ETH_HLEN)
		return JUDGE_DONE; /* packet_parse() (bpf/packet.h) passes short packets, too */
	if (packet->size < ETH_HLEN)
		return JUDGE_CUT;
	clock_set(judge, packet->ns);
	judge->bss->test_length = packet->length;
	if (frame_run(judge, packet->bytes, size))
		return JUDGE_REFUSED;
	memcpy(ret, judge->bss->test_judged, sizeof(*ret));
	return packet->is_cut && ret->reason == SL_DROP_UNREADABLE ? JUDGE_CUT : JUDGE_DONE;
}
