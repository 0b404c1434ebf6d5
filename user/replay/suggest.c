// SPDX-License-Identifier: GPL-2.0
#include "replay/suggest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "capture/capture.h"
#include "program/progress.h"
#include "replay/interrupt.h"
#include "replay/unchosen.h"
#include "replaying/command_suggest.h"
#include "report/parts.h"
#include "report/report_suggest.h"
#include "suggest/from_gate.h"
#include "suggest/suggest.h"

/* Update the progress after this many packets. */
#define PROGRESS_PACKETS 4096

/* A merged frame counts as several packets: its length divided by MERGED_BYTES, rounded up. */
#define MERGED_BYTES 1500

/* A capture, which is read twice. A pipe is copied first. */
struct input {
	const char *path, *name; /* name: path, or "standard input" */
	struct capture_choice choice;
	FILE *copy; /* copy of the pipe; NULL if the capture is a file */
	struct capture_totals totals;
	uint64_t cut; /* packets whose recorded part ends before the source address */
};

/* Returns whether a capture can be read only once. */
static bool is_pipe(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") || (!stat(path, &st) && S_ISFIFO(st.st_mode));
}

/* Copies a pipe to an unnamed temporary file, so that it can be read twice. */
static int input_copy(struct input *input)
{
	static char block[1 << 16];
	_cleanup_close_ int fd = !strcmp(input->path, "-")
					 ? dup(STDIN_FILENO)
					 : open(input->path, O_RDONLY | O_CLOEXEC);
	ssize_t size = 0;

	if (fd < 0)
		return error_misuse("capture-open", input->path, "cannot open it: %s",
				    strerror(errno));
	input->copy = tmpfile();
	if (!input->copy)
		return error_add(errno, "cannot-write", NULL, "no temporary file: %s",
				 strerror(errno));
	interrupt_begin(input->path);
	while (!is_interrupted() && (size = read(fd, block, sizeof(block))) > 0)
		if (write(fileno(input->copy), block, size) != size)
			return error_add(ENOSPC, "cannot-write", NULL,
					 "the temporary file of %s cannot be written", input->name);
	interrupt_end();
	if (size < 0 && !is_interrupted())
		return error_add(errno, "cannot-read", NULL, "%s: %s", input->name,
				 strerror(errno));
	return 0;
}

static int input_open(struct input *input, struct capture **ret)
{
	_cleanup_fclose_ FILE *stream = NULL;
	_cleanup_close_ int fd = -1;

	if (!input->copy)
		return capture_open(input->path, &input->choice, ret);
	fd = dup(fileno(input->copy));
	if (fd >= 0 && !lseek(fd, 0, SEEK_SET))
		stream = fdopen(fd, "r");
	if (!stream)
		return error_add(errno, "cannot-read", NULL, "%s: %s", input->name,
				 strerror(errno));
	steal_fd(&fd); /* the stream closes the fd */
	return capture_open_stream(steal_pointer(&stream), input->name, &input->choice, ret);
}

/*
 * Reads all packets, and gives them to suggest_add(), or the second time to suggest_try(). Returns
 * 0 or a negative errno.
 */
static int input_read(struct input *input, struct suggest *suggest, bool is_second)
{
	_cleanup_(capture_close) struct capture *capture = NULL;
	struct capture_packet packet;
	int err = input_open(input, &capture);

	while (!err && (err = capture_next(capture, &packet)) == 1) {
		const struct capture_totals *totals = capture_totals(capture);
		struct suggest_packet found = {
			.ns = packet.ns,
			.packets = packet.is_merged
					   ? (packet.length + MERGED_BYTES - 1) / MERGED_BYTES
					   : 1,
			.bytes = packet.length,
		};

		err = 0;
		if (totals->packets % PROGRESS_PACKETS == 0)
			progress_show(totals->offset, totals->file_size, totals->packets,
				      "packets");
		if (!suggest_read(packet.bytes, packet.size, &found)) {
			suggest->sourceless += !is_second;
			input->cut += !is_second && packet.is_cut;
			continue;
		}
		suggest->merged += !is_second && packet.is_merged;
		if (is_second)
			suggest_try(suggest, &found);
		else
			err = suggest_add(suggest, &found);
	}
	progress_end();
	if (capture)
		input->totals = *capture_totals(capture);
	suggest->left_out = input->totals.left_out;
	return err;
}

/* Returns an error if there is too little traffic to propose limits. */
static int suggest_check(const struct suggest *suggest, const char *capture,
			 const struct input *input)
{
	if (suggest->proposal[SUGGEST_ALL][SUGGEST_SOURCES].refusal == SUGGEST_PROPOSED)
		return 0;
	if (!suggest->packets && input->cut)
		return error_add(ENODATA, "too-little", capture,
				 "%" PRIu64 " packets have no source; capture with a larger -s",
				 input->cut);
	if (!input->totals.packets) {
		unchosen_explain(&input->totals, &input->choice, "too-little", capture);
		return -ENODATA;
	}
	return error_add(ENODATA, "too-little", capture,
			 "too little traffic to propose limits: %" PRIu64 " packets in %" PRIu64
			 " s; capture %u packets over %u s",
			 suggest->packets, suggest_span_ns(suggest) / NS_PER_SEC,
			 SUGGEST_PACKETS_MIN, (unsigned int)(SUGGEST_SPAN_MIN_NS / NS_PER_SEC));
}

static void attack_warn(const struct suggest_attack *attack, const char *capture)
{
	if (attack->few_sources)
		error_warn("attack", capture,
			   "this looks like an attack: %u %% of the packets are from %u of the "
			   "sources; capture usual traffic",
			   attack->busiest_share, attack->busiest);
	if (attack->one_shape)
		error_warn(
			"attack", capture,
			"this looks like an attack: %u %% of the packets (%s) are alike; capture "
			"usual traffic",
			attack->shape_share, suggest_words[attack->shape_class].match);
}

static int choice_make(const struct suggest_args *words, struct capture_choice *ret)
{
	*ret = (struct capture_choice){
		.direction = words->is_out ? CAPTURE_OUT : CAPTURE_IN,
		.interface = words->interface,
		.has_to = words->to,
	};
	if (words->is_in && words->is_out)
		ret->direction = CAPTURE_ANY;
	return words->to ? mac_parse(words->to, ret->to) : 0;
}

static int suggest_capture(const struct suggest_args *words, struct suggest *suggest)
{
	_cleanup_fclose_ FILE *copy = NULL;
	bool is_stdin = !strcmp(words->capture, "-");
	struct input input = {
		.path = words->capture,
		.name = is_stdin ? "standard input" : words->capture,
	};
	unsigned int mark;
	int err = choice_make(words, &input.choice), damaged;

	if (!err && is_pipe(input.path))
		err = input_copy(&input);
	copy = input.copy;
	if (err)
		return err;
	damaged = input_read(&input, suggest, false);
	if (damaged && !suggest->packets)
		return damaged;
	err = suggest_propose(suggest) ?: suggest_check(suggest, words->capture, &input);
	if (err)
		return err;
	mark = error_count();
	if (suggest_must_try(suggest))
		err = input_read(&input, suggest, true);
	if (err && !damaged)
		return err;
	error_drop(mark); /* the first reading has already added this error */
	suggest_finish(suggest);
	report_suggest(suggest, words->capture);
	attack_warn(&suggest->attack, words->capture);
	return damaged;
}

/* Proposes limits from the counters of a gate, and prints the proposals. */
static int suggest_gate(const char *name, const struct suggest_settings *settings)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	_cleanup_(gate_proposals_free) struct gate_proposals proposals = {0};
	uint64_t packets = 0, seconds = 0;
	int err = gate_open_named(&gate, name) ?: gate_propose(&gate, settings, &proposals);

	if (err)
		return err;
	for (unsigned int i = 0; i < proposals.count; i++) {
		packets += proposals.items[i].packets;
		seconds += proposals.items[i].seconds;
	}
	if (!proposals.count)
		return error_add(ENODATA, "too-little", gate.name,
				 "it has no policy; set one: 'sluice %sset default rate 10kpps "
				 "action observe'",
				 gate_option(gate.name));
	if (!proposals.proposed)
		return error_add(ENODATA, "too-little", gate.name,
				 "too little traffic to propose limits: %" PRIu64
				 " packets in %" PRIu64
				 " source-seconds; a policy needs %u packets over %u s",
				 packets, seconds, SUGGEST_PACKETS_MIN,
				 (unsigned int)(SUGGEST_SPAN_MIN_NS / NS_PER_SEC));
	report_suggest_gate(&proposals, settings, gate.name);
	return 0;
}

int suggest_command(const struct context *context, const void *args)
{
	const struct suggest_args *words = args;
	const struct suggest_settings settings = {
		.quantile = words->quantile ?: SUGGEST_QUANTILE,
		.headroom = words->headroom ? words->headroom - 1 : SUGGEST_HEADROOM,
		.most = POPULATION_MAX,
	};
	_cleanup_(suggest_free) struct suggest suggest = {0};
	int err = 0;

	if (!words->capture && !words->from_gate)
		err = error_misuse("no-capture", NULL,
				   "no capture is given; write a file, - or --from-gate");
	else if (words->capture && words->from_gate)
		err = error_misuse("unexpected", "--from-gate",
				   "it reads a gate and no capture; omit %s",
				   word_typed(words->capture));
	else if (words->from_gate &&
		 (words->is_in || words->is_out || words->to || words->interface))
		err = error_misuse("unexpected", "--from-gate",
				   "it reads a gate and no capture; omit --in, --out, --to and "
				   "--interface");
	if (!err && words->from_gate)
		return suggest_gate(context->gate_given ? context->gate : NULL, &settings);
	return err ?: suggest_begin(&suggest, &settings) ?: suggest_capture(words, &suggest);
}
