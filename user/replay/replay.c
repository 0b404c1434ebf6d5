// SPDX-License-Identifier: GPL-2.0
#include "replay/replay.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "config/config.h"
#include "gate/maps.h"
#include "gate/rules.h"
#include "list_ends.h"
#include "program/progress.h"
#include "replay/interrupt.h"
#include "replay/rss.h"
#include "report/parts.h"
#include "rules/prefix.h"

/* Update the progress after this many packets. */
#define PROGRESS_PACKETS 4096

/* --- Opening -------------------------------------------------------------------------------- */

/*
 * Converts an expiry to the clock of the replay. now: the uptime of this host, which is the clock
 * of the expiry.
 */
static void until_shift(uint32_t *until, uint64_t now)
{
	uint64_t end = (uint64_t)*until << SL_UNTIL_SHIFT;

	if (*until)
		*until = until_after(end > now ? end - now : 0);
}

static void list_ends_shift(struct rule *rule, uint64_t now)
{
	struct list_end ends[LIST_ENDS];

	for (int i = 0; i < LIST_ENDS; i++) {
		ends[i] = list_end_get(rule->list_until, rule->timed, i);
		until_shift(&ends[i].until, now);
	}
	list_ends_set(ends[0], ends[1], &rule->list_until, &rule->timed);
}

/*
 * Sets the clock of this process to the start of the replay. Converts the expiries in the rules to
 * this clock.
 */
static void rules_shift(struct ruleset *rules)
{
	uint64_t now = uptime_ns();

	uptime_set(JUDGE_BEGUN_NS);
	for (unsigned int i = 0; i < rules->count; i++) {
		until_shift(&rules->rules[i].until, now);
		list_ends_shift(&rules->rules[i], now);
	}
	for (int place = 0; rules->lists && place < SL_LIST_PLACES; place++)
		until_shift(&rules->lists[place].until, now);
}

/* Makes a gate with the rules and sizes of the running gate. Does not change the running gate. */
static int judge_open_gate(struct replay *replay, const char *name, enum hook hook)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(ruleset_free) struct ruleset rules = {0};
	struct gate_sizes sizes;
	int err = gate_open_named(&gate, name)
			  ?: gate_sizes_read(&gate, &sizes) ?: rules_read(&gate, &rules);

	if (err)
		return err;
	rules_shift(&rules);
	replay->rules_name[0] = strdup(gate.name);
	return judge_open(&rules, &sizes, hook, &replay->judge[0]);
}

static int judge_open_file(struct replay *replay, const char *path, enum hook hook)
{
	_cleanup_(config_free) struct config config = {0};
	int err;

	uptime_set(JUDGE_BEGUN_NS); /* expiries in the file count from the start of the replay */
	err = config_read(path, &config);
	if (err)
		return err;
	replay->rules_name[replay->rules] = strdup(path);
	return judge_open(&config.rules, &config.sizes, hook, &replay->judge[replay->rules]);
}

static int judges_open(struct replay *replay, const char *gate)
{
	const struct replay_words *words = replay->words;
	enum hook hook = words->is_out ? HOOK_EGRESS : HOOK_XDP;
	unsigned int count = words->rules[1] ? 2 : 1;
	int err = 0;

	for (; !err && replay->rules < count; replay->rules++) {
		unsigned int i = replay->rules;

		err = words->rules[i] ? judge_open_file(replay, words->rules[i], hook)
				      : judge_open_gate(replay, gate, hook);
		err = err
			      ?: tally_open(&replay->judge[i].gate, hook == HOOK_EGRESS,
					    &replay->tally[i]);
	}
	return err;
}

/*
 * Selects CPUs that this process may use, from the current CPU on. Pins this thread to the first of
 * them, and starts a thread on each other CPU. Otherwise the kernel could move this thread to
 * another CPU, which has other buckets.
 */
static int cpus_open(struct replay *replay)
{
	unsigned int wanted = replay->words->cpus ?: 1, selected = 0;
	cpu_set_t set, first;
	int err = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return error_add(errno, "no-cpus", NULL, "cannot read the CPUs: %s", why(errno));
	if (wanted > (unsigned int)CPU_COUNT(&set))
		return error_misuse("no-cpus", "--cpus",
				    "%u CPUs are more than the %d that this process may use",
				    wanted, CPU_COUNT(&set));
	replay->thread = calloc(wanted, sizeof(*replay->thread));
	if (!replay->thread)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory");
	CPU_ZERO(&first);
	for (int cpu = sched_getcpu(); !err && selected < wanted; cpu = (cpu + 1) % CPU_SETSIZE) {
		if (cpu < 0 || !CPU_ISSET(cpu, &set))
			continue;
		if (!selected++) {
			CPU_SET(cpu, &first);
			err = sched_setaffinity(0, sizeof(first), &first) ? -errno : 0;
			continue;
		}
		err = cpu_thread_start(&replay->thread[replay->threads], cpu);
		replay->threads += !err;
	}
	return err ? error_add(err, "no-cpus", NULL, "cannot use the CPUs: %s", why(err)) : 0;
}

/* Checks and stores the options that select packets. */
static int choice_make(struct replay *replay)
{
	const struct replay_words *words = replay->words;
	unsigned int from_stdin = !strcmp(words->capture, "-");

	if (words->is_in && words->is_out)
		return error_misuse("unexpected", "--out", "excludes --in");
	for (int i = 0; i < RULES_MAX; i++)
		from_stdin += words->rules[i] && !strcmp(words->rules[i], "-");
	if (from_stdin > 1)
		return error_misuse("unexpected", "-", "standard input is read only once");
	replay->choice = (struct capture_choice){
		.direction = words->is_out ? CAPTURE_OUT : CAPTURE_IN,
		.has_to = words->to,
		.interface = words->interface,
		.mtu = words->mtu,
	};
	return words->to ? mac_parse(words->to, replay->choice.to) : 0;
}

/* Parses the prefixes of an option, which are separated by commas. list: may be NULL. */
static int conditions_parse(struct replay *replay, const char *list, bool is_wanted)
{
	_cleanup_free_ char *copy = strdup(list ?: "");
	char *rest = copy, *text;

	if (!copy)
		return error_add(ENOMEM, "no-memory", NULL, "out of memory");
	while (list && (text = strsep(&rest, ","))) {
		struct condition condition = {.is_wanted = is_wanted};
		int err = prefix_parse(text, &condition.prefix);

		if (err)
			return err;
		if (!array_grow(replay->condition, replay->conditions, replay->condition_room))
			return error_add(ENOMEM, "no-memory", NULL, "out of memory");
		replay->condition[replay->conditions++] = condition;
	}
	return 0;
}

int replay_open(struct replay *replay, const struct replay_words *words, const char *gate)
{
	int err;

	*replay = (struct replay){.words = words};
	interrupt_begin(words->capture);
	for (int i = 0; i < RULES_MAX; i++)
		replay->judge[i] = (struct judge)JUDGE_CLOSED;
	err = choice_make(replay)
		      ?: conditions_parse(replay, words->if_dropped, false)
		      ?: conditions_parse(replay, words->unless_dropped, true)
		      ?: capture_open(words->capture, &replay->choice, &replay->capture)
		      ?: caps_require() ?: cpus_open(replay) ?: judges_open(replay, gate);
	if (!err && words->out)
		err = annotated_open(words->out, words, &replay->out);
	return err;
}

void replay_close(struct replay *replay)
{
	capture_close(&replay->capture);
	if (replay->out.file)
		fclose(replay->out.file);
	for (unsigned int i = 0; i < RULES_MAX; i++) {
		tally_close(&replay->tally[i]);
		judge_close(&replay->judge[i]);
		free(replay->rules_name[i]);
	}
	free(replay->differs.slot);
	free(replay->condition);
	while (replay->threads)
		cpu_thread_stop(&replay->thread[--replay->threads]);
	free(replay->thread);
}

/* --- Running -------------------------------------------------------------------------------- */

/* A packet that a thread judges. */
struct judge_call {
	struct judge *judge;
	const struct capture_packet *packet;
	struct sl_judged *judged;
	enum judge_result result;
};

static void call_judge(void *data)
{
	struct judge_call *call = data;

	call->result = judge_packet(call->judge, call->packet, call->judged);
}

/* Judges a packet on the CPU that would receive it. Returns the same as judge_packet(). */
static enum judge_result cpu_judge(struct replay *replay, struct judge *judge,
				   const struct capture_packet *packet, struct sl_judged *judged)
{
	struct judge_call call = {judge, packet, judged, JUDGE_DONE};
	unsigned int cpu = 0;

	if (replay->threads)
		cpu = rss_cpu(rss_hash(packet->bytes, packet->size), replay->threads + 1);
	if (cpu)
		cpu_thread_call(&replay->thread[cpu - 1], call_judge, &call);
	else
		call_judge(&call);
	return call.result;
}

/* Counts a packet if its fate differs between the two sets of rules. */
static void difference_add(struct replay *replay, const struct capture_packet *packet,
			   const struct sl_judged *judged, const enum fate fate[RULES_MAX])
{
	enum fate change = fate[1] == FATE_DROPPED   ? FATE_DROPPED
			   : fate[0] == FATE_DROPPED ? FATE_PASSED
						     : FATE_WOULD_DROP;
	const struct sl_prefix prefix = prefix_source(&judged->source);
	struct tally_source *source = NULL;

	if (fate[0] == fate[1])
		return;
	fates_add(&replay->differences, change, packet->length);
	if (judged->source.bits)
		source = tally_source(&replay->differs, &prefix);
	if (source)
		fates_add(&source->fates, change, packet->length);
}

/* Marks the conditions whose prefix covers the source of a dropped packet. */
static void conditions_mark(struct replay *replay, const struct sl_prefix *source)
{
	for (unsigned int i = 0; source->bits && i < replay->conditions; i++)
		replay->condition[i].is_dropped |=
			prefix_covers(&replay->condition[i].prefix, source);
}

static void packet_judge(struct replay *replay, const struct capture_packet *packet)
{
	enum fate fate[RULES_MAX] = {0};
	char comment[VERDICT_TEXT] = "";
	struct sl_judged judged = {0};

	for (unsigned int i = 0; i < replay->rules; i++) {
		enum judge_result result = cpu_judge(replay, &replay->judge[i], packet, &judged);

		if (result == JUDGE_DONE) {
			fate[i] = tally_add(&replay->tally[i], packet, &judged);
			if (fate[i] == FATE_DROPPED && !i)
				conditions_mark(replay, &judged.source);
			if (replay->out.file && !i)
				verdict_format(&replay->judge[i].gate, &judged, comment);
		} else if (!i) {
			replay->cut += result == JUDGE_CUT;
			replay->refused += result == JUDGE_REFUSED;
			strcpy(comment, result == JUDGE_CUT ? "not judged: its source was cut off"
							    : "not judged: refused by the kernel");
		}
	}
	if (replay->rules > 1)
		difference_add(replay, packet, &judged, fate);
	if (replay->out.file)
		annotated_write(&replay->out, packet, comment);
}

int replay_run(struct replay *replay)
{
	const struct capture_totals *totals = capture_totals(replay->capture);
	struct capture_packet packet;
	unsigned int mark = error_count();
	int more = 0, err;

	while (!is_interrupted() && (more = capture_next(replay->capture, &packet)) == 1) {
		if (totals->packets == 1)
			replay->first_ns = packet.ns;
		replay->last_ns = packet.ns;
		replay->bytes += packet.length;
		packet_judge(replay, &packet);
		if (!(packet.number % PROGRESS_PACKETS))
			progress_show(totals->offset, totals->file_size, packet.number, "packets");
	}
	progress_end();
	if (is_interrupted())
		error_drop(mark); /* drop the error of the read that the signal interrupted */
	err = is_interrupted() ? 0 : more;
	replay->is_complete = !err && !is_interrupted();
	for (unsigned int i = 0; i < replay->rules; i++)
		if (replay->judge[i].now_ns)
			uptime_set(replay->judge[i].now_ns);
	return annotated_close(&replay->out) ?: err;
}
