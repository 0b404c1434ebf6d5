// SPDX-License-Identifier: GPL-2.0
/* Applies the rules file and its lists. reconcile.h describes which changes by commands stay. */
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
 * Adds each list whose file is bad to the config, and prints a warning. The list gets its entries
 * in force. If it is not in force, it gets its saved entries.
 */
static int lists_complete(const struct keep *keep, const struct ruleset *in_force,
			  const struct ruleset *saved, struct config *config)
{
	int err = rules_complete(&config->rules, &config->files, in_force)
			  ?: rules_complete(&config->rules, &config->files, saved);

	for (unsigned int i = 0; !err && i < config->files.count; i++) {
		const char *name = config->files.list[i].list.name;

		if (config->files.list[i].is_left_out)
			error_warn("list-unread", keep->object,
				   "the file of list %s is bad, so the list %s", name,
				   lists_find(config->rules.lists, name) < 0
					   ? "is left out"
					   : "keeps the entries of its last good file");
	}
	return err;
}

/*
 * Reconciles the rules, and applies them to the open gate. Restores the runtime entries if the gate
 * is new, or if the state file is from before the boot.
 */
static int rules_make(struct keep *keep, struct gate *gate, struct config *config, enum renew renew)
{
	const struct apply_may may = {.resize = keep->args->resize, .lack_fq = true};
	const struct ruleset *saved = keep->has_config ? &keep->config.rules : &keep->saved.entries;
	bool saved_now = keep->has_config || keep->saved.is_of_boot;
	const struct ruleset none = {0}, *was = saved_now && !gate->made ? saved : &none;
	_cleanup_(ruleset_free) struct ruleset in_force = {0};
	_cleanup_(config_free) struct config wanted = {.sizes = config->sizes};
	_cleanup_(apply_free) struct apply apply = {0};
	struct undone undone;
	int err = rules_read(gate, &in_force) ?: lists_complete(keep, &in_force, saved, config);

	if (!err && (gate->made || !keep->runtime.is_of_boot))
		err = rules_join(&in_force, &keep->runtime.entries);
	if (!err)
		err = reconcile(&in_force, &config->rules, was, gate->made ? RENEW_ALL : renew,
				&wanted.rules, &undone)
			      ?: apply_prepare(gate, &wanted, &may, &apply)
			      ?: apply_make(gate, &apply);
	if (err)
		return err;
	if (apply.has_rules || apply.resized)
		error_inform("rules-changed", keep->object, "generation %u: %u %s changed%s",
			     gate->state->generation, apply.wanted.count,
			     plural(apply.wanted.count, "rule", "rules"),
			     apply.resized ? ", and resized" : "");
	else if (renew == RENEW_ALL && keep->is_ready)
		error_inform("reloaded", keep->object, "%s is reloaded; no rule changed",
			     keep->args->file);
	if (!gate->made && undone.count)
		error_notice("undone", keep->object,
			     "the file reverts changes that commands made at %u %s, such as %s",
			     undone.count, plural(undone.count, "prefix", "prefixes"),
			     undone.first);
	return 0;
}

int rules_apply(struct keep *keep, struct config *config, enum renew renew)
{
	_cleanup_(gate_close) struct gate gate = GATE_CLOSED;
	struct mount mount;
	int err;

	if (gate_is_hidden(keep, &mount))
		return error_add(EBUSY, "gate-hidden", keep->object,
				 "hidden by a mount of type %s on %s, so no rule is changed; first "
				 "'umount %s'",
				 mount.type, mount.point, mount.point);
	err = gate_open(&gate, keep->args->gate, GATE_MAKE, &config->sizes);
	if (!err) {
		if (gate.made)
			error_inform("gate-made", keep->object, "made, because it did not exist");
		err = rules_make(keep, &gate, config, renew);
		if (err)
			gate_undo(&gate);
	}
	if (gate.state)
		gate_snapshot_take(&gate, &keep->snapshot);
	if (err)
		return err;
	watch_gate(keep);
	step_at(keep, STEP_ATTACH, now_ms());
	step_soon(keep, STEP_SAVE, 0);
	return 0;
}

/* --- Reading files -------------------------------------------------------------------------- */

/*
 * Stores an applied config. Makes STEP_LISTS due, because a list file may have changed before it
 * was watched.
 */
static void config_take(struct keep *keep, struct config *config)
{
	keep->lists_are_new = true;
	state_file_free(&keep->saved);
	config_free(&keep->config);
	keep->config = *config;
	*config = (struct config){0};
	keep->has_config = true;
	watch_files(keep);
	watch_gate(keep);
	step_soon(keep, STEP_LISTS,
		  list_paths_left_out(&keep->config.files) ? RETRY_MIN_MS : FILE_WAIT_MS);
}

/*
 * Reads the rules file. At the start, also reads the state files. If the rules file is invalid,
 * does not read the state files, because state_file_read() renames a bad state file.
 */
static int files_read(struct keep *keep, struct file *text, struct config *config)
{
	const char *file = keep->args->file, *state = keep->args->state;
	int err = (state ? state_file_check_apart(state, file, &keep->stamp) : 0)
			  ?: file_read(file, text)
			  ?: config_parse(file, text->text, text->size, true, config);

	for (unsigned int i = 0; !err && state && i < config->files.count; i++)
		err = state_file_check_apart(state, config->files.list[i].path,
					     &config->files.list[i].stamp);
	if (err || !state || keep->is_ready)
		return err;
	state_file_read(state, &keep->runtime);
	state_file_read(keep->lists_path, &keep->saved);
	return 0;
}

/*
 * Returns 0 if the rules file is invalid, so that it is read again only after the next SIGHUP.
 * Returns any other error, for example if a command has locked the gate. The main loop then retries
 * the step.
 */
int reload_run(struct keep *keep)
{
	_cleanup_(config_free) struct config config = {0};
	_cleanup_(file_free) struct file text = {0};
	const char *file = keep->args->file;
	const struct sl_error *error;
	bool is_misuse;
	int err;

	if (keep->is_ready)
		sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
			   clock_read(CLOCK_MONOTONIC) / 1000);
	keep->stamp = stamp_of(file);
	err = files_read(keep, &text, &config);
	is_misuse = err;
	err = err ?: rules_apply(keep, &config, RENEW_ALL);
	if (err && !keep->is_ready && !keep_trial_left_ms(keep)) {
		keep->ends = true;
		return err;
	}
	keep->file_is_bad = err;
	keep->is_ready = keep->is_reloading = true;
	if (!err) {
		file_free(&keep->text);
		keep->text = text;
		text = (struct file){0};
		config_take(keep, &config);
		return 0;
	}
	error = error_last(0);
	is_misuse |= error && error->is_misuse;
	error_warn("not-applied", keep->object, "%s is not applied: %s", file,
		   keep_trial_left_ms(keep) ? "it waits for the end of the trial"
					    : "nothing is changed");
	return is_misuse ? 0 : err;
}

/* Reads the list files that the rules file named when it was last applied. */
int lists_run(struct keep *keep)
{
	_cleanup_(config_free) struct config config = {0};
	const struct list_paths *files = &keep->config.files;
	struct stamp stamp = stamp_of(keep->args->file);
	bool changed = false;
	int err;

	if (!stamp_equal(&stamp, &keep->stamp)) {
		keep->stamp = stamp;
		error_notice("file-changed", keep->args->file,
			     "changed, and not yet applied; reload to apply it");
	}
	for (unsigned int i = 0; i < files->count; i++) {
		stamp = stamp_of(files->list[i].path);
		changed |= !stamp_equal(&stamp, &files->list[i].stamp);
	}
	if (!changed && !lists_are_bad(keep))
		return 0;
	err = config_parse(keep->args->file, keep->text.text, keep->text.size, true, &config);
	if (!err && !changed && list_paths_left_out(&config.files))
		return -EAGAIN; /* retry later, because a list file is still invalid */
	err = err ?: rules_apply(keep, &config, RENEW_LISTS);
	if (err) {
		error_warn("lists-unread", keep->object,
			   "the changed lists of %s are not applied; their old content stays",
			   keep->args->file);
		return -EAGAIN;
	}
	config_take(keep, &config);
	return list_paths_left_out(&keep->config.files) ? -EAGAIN : 0;
}
