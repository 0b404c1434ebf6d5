// SPDX-License-Identifier: GPL-2.0
/* The rules file and its lists. reconcile.h has their precedence over commands. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "attach/attachment.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "gate/maps.h"
#include "gate/rules.h"
#include "keep/apply.h"
#include "keep/keep.h"
#include "migrate/open.h"
#include "rules/ruleset.h"

/* --- Applying ------------------------------------------------------------------------------- */

/*
 * Adds the lists whose files are bad to the config: as they are in force, or else as they were
 * saved. Warns of each list.
 */
static int lists_complete(const struct keep *keep, const struct ruleset *in_force,
			  const struct ruleset *saved, struct config *config)
{
	int err = rules_complete(&config->rules, &config->files, in_force)
			  ?: rules_complete(&config->rules, &config->files, saved);

	for (unsigned int i = 0; !err && i < config->files.count; i++) {
		const char *name = config->files.list[i].list.name;
		int place = lists_find(config->rules.lists, name);
		char moment[MOMENT_TEXT];

		if (!config->files.list[i].is_left_out)
			continue;
		if (place < 0)
			error_warn("list-unread", keep->object,
				   "list %s is left out: its file is bad and there is no earlier "
				   "copy; everything else is in force",
				   name);
		else
			error_warn(
				"list-unread", keep->object,
				"list %s keeps the entries that its file had at %s", name,
				moment_format((time_t)config->rules.lists[place].replaced, moment));
	}
	return err;
}

/*
 * Reconciles the rules of the open gate. Restores runtime entries if the gate is new, or if another
 * process made it after a boot.
 */
static int rules_make(struct keep *keep, struct gate *gate, struct config *config, enum renew renew)
{
	const struct apply_may may = {.resize = keep->args->resize, .lack_fq = true};
	const struct ruleset *saved = keep->has_config ? &keep->config.rules : &keep->saved.entries;
	bool saved_now = keep->has_config || !strcmp(keep->boot, keep->saved.boot);
	const struct ruleset none = {0}, *was = saved_now && !gate->made ? saved : &none;
	_cleanup_(ruleset_free) struct ruleset in_force = {0};
	_cleanup_(config_free) struct config wanted = {.sizes = config->sizes};
	_cleanup_(apply_free) struct apply apply = {0};
	struct undone undone;
	int err = rules_read(gate, &in_force) ?: lists_complete(keep, &in_force, saved, config);

	if (!err && (gate->made || strcmp(keep->boot, keep->runtime.boot)))
		err = rules_join(&in_force, &keep->runtime.entries);
	if (!err)
		err = reconcile(&in_force, &config->rules, was, gate->made ? RENEW_ALL : renew,
				&wanted.rules, &undone)
			      ?: apply_prepare(gate, &wanted, &may, &apply)
			      ?: apply_make(gate, &apply);
	keep->rules_changed = !err && (apply_has_rules(&apply) || apply.resized);
	if (keep->rules_changed)
		error_inform("rules-changed", keep->object, "generation %u: %u %s changed%s",
			     gate->state->generation, apply.wanted.count,
			     plural(apply.wanted.count, "rule", "rules"),
			     apply.resized ? ", and resized" : "");
	if (!err && !gate->made && undone.count)
		error_notice("undone", keep->object,
			     "the file undoes what commands had changed: %u, %s", undone.count,
			     undone.names);
	return err;
}

/* Notes a gate without attachments if its file has no `attach`. */
static void unattached_note(const struct keep *keep, const struct gate *gate)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count, alive = 0;

	if (attachments_read(gate, all, &count))
		return;
	for (unsigned int i = 0; i < count; i++)
		alive += all[i].program_id != 0;
	if (!alive)
		error_notice(
			"not-attached", keep->object,
			"it filters nothing yet: %s has no 'attach', and no device is attached",
			keep->args->file);
}

int rules_apply(struct keep *keep, struct config *config, enum renew renew)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct mount mount;
	int err;

	if (gate_is_hidden(keep, &mount))
		return error_add(EBUSY, "gate-hidden", keep->object,
				 "it is hidden by a mount of type %s on %s: no rule is changed "
				 "until 'umount %s'",
				 mount.type, mount.point, mount.point);
	err = gate_open(&gate, keep->args->gate, GATE_MAKE, &config->sizes);
	if (!err) {
		if (gate.made)
			error_inform("gate-made", keep->object, "made, because there was none");
		err = rules_make(keep, &gate, config, renew);
		if (err)
			gate_undo(&gate);
	}
	if (!err && renew == RENEW_ALL && !config->places.specified)
		unattached_note(keep, &gate);
	if (gate.state)
		gate_snapshot_take(&gate, &keep->snapshot);
	if (err)
		return err;
	watch_gate(&keep->watch, keep->args->gate);
	step_at(keep, STEP_ATTACH, now_ms());
	step_soon(keep, STEP_SAVE, 0);
	return 0;
}

/* --- Reading files -------------------------------------------------------------------------- */

/* Returns whether both have the same unchanged files, and left out the same lists. */
static bool files_same(const struct list_paths *a, const struct list_paths *b)
{
	bool same = a->count == b->count;

	for (unsigned int i = 0; same && i < a->count; i++)
		same = stamp_equal(&a->list[i].stamp, &b->list[i].stamp) &&
		       a->list[i].is_left_out == b->list[i].is_left_out;
	return same;
}

/*
 * Takes over a config that is in force. Its files are checked once more, because they may have
 * changed before they were watched.
 */
static void config_take(struct keep *keep, struct config *config)
{
	keep->lists_are_new = true;
	state_file_free(&keep->saved);
	config_free(&keep->config);
	keep->config = *config;
	*config = (struct config){0};
	keep->has_config = true;
	keep->lists_are_bad = list_paths_left_out(&keep->config.files);
	watch_files(&keep->watch, keep->args->file, &keep->config.files);
	watch_netns(&keep->watch, &keep->config.places);
	step_soon(keep, STEP_LISTS, keep->lists_are_bad ? RETRY_MIN_MS : FILE_WAIT_MS);
}

/* Reads the rules file, its lists, and once the state files, if they are none of these files. */
static int files_read(struct keep *keep, struct file *text, struct config *config)
{
	const char *state = keep->args->state;
	int err = file_read(keep->args->file, text)
			  ?: config_parse(keep->args->file, text->text, text->size, true, config);

	for (unsigned int i = 0; !err && state && i < config->files.count; i++)
		err = state_file_check_apart(state, config->files.list[i].path,
					     &config->files.list[i].stamp);
	if (err || !state || keep->state_is_read)
		return err;
	err = state_file_check(state);
	if (err)
		return err;
	state_file_read(state, &keep->runtime);
	state_file_read(keep->lists_path, &keep->saved);
	keep->state_is_read = true;
	return 0;
}

/*
 * A bad file is not tried again before the next signal. Other failures are tried again: a command
 * may have the gate's lock, or the rules are on trial.
 */
int reload_run(struct keep *keep)
{
	_cleanup_(config_free) struct config config = {0};
	_cleanup_(file_free) struct file text = {0};
	const char *file = keep->args->file;
	const struct sl_error *error;
	bool is_bad;
	int err;

	if (keep->is_ready)
		sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
			   clock_read(CLOCK_MONOTONIC) / 1000);
	keep->stamp = stamp_of(file);
	err = files_read(keep, &text, &config);
	is_bad = err;
	if (!err)
		err = rules_apply(keep, &config, RENEW_ALL);
	if (err && !keep->is_ready && !keep_trial_left_ms(keep)) {
		keep->ends = true;
		return err;
	}
	keep->file_is_bad = err;
	error = error_last(0);
	if (err) {
		is_bad |= error && error->is_misuse;
		error_warn("not-applied", keep->object, "%s is not applied: %s", file,
			   keep_trial_left_ms(keep) ? "it waits for the end of the trial"
						    : "all stays as it was");
	} else {
		file_free(&keep->text);
		keep->text = text;
		text = (struct file){0};
		config_take(keep, &config);
	}
	if (!err && keep->is_ready && !keep->rules_changed)
		error_inform("reloaded", keep->object, "%s is reloaded: no rule to change", file);
	keep->is_ready = keep->is_reloading = true;
	return is_bad ? 0 : err;
}

/* Reads the lists of the file that is in force, and not those of the file on disk. */
int lists_run(struct keep *keep)
{
	_cleanup_(config_free) struct config config = {0};
	const struct list_paths *files = &keep->config.files;
	struct stamp stamp = stamp_of(keep->args->file);
	bool changed = keep->lists_are_bad;
	int err;

	if (!stamp_equal(&stamp, &keep->stamp)) {
		keep->stamp = stamp;
		error_notice("file-changed", keep->args->file,
			     "it has changed: a reload puts it in force");
	}
	for (unsigned int i = 0; i < files->count; i++) {
		stamp = stamp_of(files->list[i].path);
		changed |= !stamp_equal(&stamp, &files->list[i].stamp);
	}
	if (!changed)
		return 0;
	err = config_parse(keep->args->file, keep->text.text, keep->text.size, true, &config);
	if (!err && list_paths_left_out(files) && files_same(files, &config.files))
		return -EAGAIN; /* the bad file has not changed */
	if (!err)
		err = rules_apply(keep, &config, RENEW_LISTS);
	if (!err)
		config_take(keep, &config);
	else
		error_warn("lists-unread", keep->object, "the lists of %s stay as they were",
			   keep->args->file);
	keep->lists_are_bad |= err;
	return keep->lists_are_bad ? -EAGAIN : 0;
}
