// SPDX-License-Identifier: GPL-2.0
#include "keep/task_rules.h"

#include <stdlib.h>
#include <string.h>

#include "attach/attachment.h"
#include "base/clock.h"
#include "base/text.h"
#include "gate/gate_make.h"
#include "gate/rules.h"
#include "keep/apply.h"
#include "keep/notify.h"
#include "migrate/open.h"
#include "rules/lists.h"

/* --- Rules ---------------------------------------------------------------------------------- */

static void named_say(const struct named *named, const char *what, const char *gate)
{
	if (named->count)
		note("gate '%s': %s: %u, %s", gate, what, named->count, named->text);
}

/* What the gate had of the file before, as far as it is known. */
struct was {
	const struct ruleset *rules;
	bool policies_known;
};

static struct was was_before(const struct keep *keep, const struct gate *gate, bool same_boot)
{
	static const struct ruleset none;

	if (gate->made)
		return (struct was){&none, false};
	if (keep->has_file)
		return (struct was){&keep->config.rules, true};
	return (struct was){keep->bans.file_is_known && same_boot ? &keep->bans.file : &none,
			    false};
}

static int change_to(struct keep *keep, struct gate *gate, const struct config *config,
		     struct ruleset *wanted)
{
	const struct apply_may may = {.resize = keep->args->resize, .lack_fq = true};
	struct config rules = {.sizes = config->sizes, .rules = *wanted};
	struct apply change = {0};
	int status = apply_prepare(gate, &rules, &may, &change);

	*wanted = rules.rules; /* lists may have moved */
	if (!status)
		status = apply_make(gate, &change);
	keep->rules_changed = !status && (apply_has_rules(&change) || change.resized);
	if (keep->rules_changed)
		inform("gate '%s': generation %u: %u %s changed%s", gate->name,
		       gate->state->generation, change.wanted.count,
		       plural(change.wanted.count, "rule", "rules"),
		       change.resized ? ", and resized" : "");
	apply_free(&change);
	return status;
}

/* Reads the copy of the lists. There may be none. */
static int copies_read(const char *state, struct bans *ret)
{
	char *path = bans_lists_path(state);
	int status = path ? bans_read(path, ret) : failure("out of memory");

	free(path);
	return status;
}

/*
 * Adds the lists whose files are bad: as they are in force, or else as they were saved. Warns of
 * each of them.
 */
static int lists_complete(const struct keep *keep, const struct ruleset *in_force,
			  struct config *config)
{
	struct bans copies = {0};
	int status = OK;

	if (!list_paths_left_out(&config->files))
		return OK;
	status = rules_complete(&config->rules, &config->files, in_force);
	if (!status && keep->args->state)
		status = copies_read(keep->args->state, &copies);
	if (!status)
		status = rules_complete(&config->rules, &config->files, &copies.given);
	bans_free(&copies);
	for (unsigned int i = 0; !status && i < config->files.count; i++) {
		const char *name = config->files.list[i].list.name;
		int place = lists_find(config->rules.lists, name);
		char moment[MOMENT_TEXT];

		if (!config->files.list[i].is_left_out)
			continue;
		if (place >= 0)
			warning("gate '%s': list %s keeps the entries that its file had at %s",
				keep->args->gate, name,
				moment_format((time_t)config->rules.lists[place].replaced, moment));
		else
			warning("gate '%s': list %s is left out: its file is bad and there is no "
				"earlier copy; everything else is in force",
				keep->args->gate, name);
	}
	return status;
}

/*
 * Reconciles the rules of the open gate. What commands gave comes back where the gate is new, or of
 * another boot than the state file, in which the gate was made before this process came.
 */
static int rules_make(struct keep *keep, struct gate *gate, struct config *config, enum renew renew)
{
	struct ruleset in_force = {0}, wanted = {0};
	struct undone undone;
	bool same_boot = !strcmp(keep->boot, keep->bans.boot);
	struct was was = was_before(keep, gate, same_boot);
	int status = rules_read(gate, &in_force);

	if (!status)
		status = lists_complete(keep, &in_force, config);
	if (!status && (gate->made || !same_boot))
		status = rules_restore(&in_force, &keep->bans.given);
	if (!status)
		status = reconcile(&in_force, &config->rules, was.rules, was.policies_known,
				   gate->made ? RENEW_ALL : renew, &wanted, &undone);
	if (!status)
		status = change_to(keep, gate, config, &wanted);
	if (!status && !gate->made) {
		named_say(&undone.policies, "limits that commands had changed are the file's again",
			  gate->name);
		named_say(&undone.differed, "limits that were not as the file says are the file's",
			  gate->name);
		named_say(&undone.entries, "what commands said and the file says otherwise goes",
			  gate->name);
		named_say(&undone.returned,
			  "what commands had taken back and the file says is back", gate->name);
	}
	ruleset_free(&wanted);
	ruleset_free(&in_force);
	return status;
}

/* Says that a gate filters nothing: the file leaves attachments to commands, and there is none. */
static void unattached_say(const struct gate *gate, const char *file)
{
	struct attachment all[ATTACHMENTS_MAX];
	unsigned int count, alive = 0;

	if (attachments_read(gate, all, &count))
		return;
	for (unsigned int i = 0; i < count; i++)
		alive += all[i].program_id != 0;
	if (!alive)
		note("gate '%s' filters nothing yet: %s has no 'attach', and no device is attached",
		     gate->name, file);
}

int rules_apply(struct keep *keep, struct config *config, enum renew renew)
{
	struct gate gate = GATE_CLOSED;
	struct mount mount;
	bool made = false;
	int status;

	if (gate_snapshot_is_hidden(keep->args->gate, &keep->mark, &mount))
		return failure("gate '%s' is hidden by a mount of type %s on %s: no rule is "
			       "changed until 'umount %s'",
			       keep->args->gate, mount.type, mount.point, mount.point);
	status = gate_open(&gate, keep->args->gate, GATE_MAKE, &config->sizes);

	if (!status) {
		made = gate.made;
		if (made)
			inform("gate '%s': made, as there was none", gate.name);
		status = rules_make(keep, &gate, config, renew);
	}
	if (!status && renew == RENEW_ALL && !config->places.said)
		unattached_say(&gate, keep->args->file);
	if (status && made)
		gate_undo(&gate);
	if (gate.state && !gate.copied)
		gate_snapshot_take(&gate, &keep->mark);
	gate_close(&gate);
	if (!status) {
		watch_gate(&keep->watch, keep->args->gate);
		task_now(keep, TASK_ATTACH);
		task_soon(keep, TASK_SAVE, 0);
	}
	return status;
}

/* --- Files ---------------------------------------------------------------------------------- */

/* Writes the lists whose files are bad to the lock file, where doctor reads them. */
static void lists_tell(const struct keep *keep)
{
	const struct list_paths *files = &keep->config.files;
	char text[LOCK_FILE_MORE] = "";

	for (unsigned int i = 0; i < files->count; i++) {
		const char *name = files->list[i].list.name;
		size_t length = strlen(text);

		if (files->list[i].is_left_out)
			snprintf(text + length, sizeof(text) - length, "%s %s\n",
				 lists_find(keep->config.rules.lists, name) < 0 ? LIST_IS_MISSING
										: LIST_IS_OLD,
				 name);
	}
	lock_file_write(&keep->lock, keep->args->file, text);
}

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
 * Takes over a config that is in force. Its files are looked at once more: they may have changed
 * before they were watched.
 */
static void config_take(struct keep *keep, struct config *config)
{
	keep->lists_are_new |= !keep->has_file || keep->rules_changed ||
			       !files_same(&keep->config.files, &config->files);
	config_free(&keep->config);
	keep->config = *config;
	*config = (struct config){0};
	keep->has_file = true;
	keep->lists_are_bad = list_paths_left_out(&keep->config.files);
	lists_tell(keep);
	watch_files(&keep->watch, keep->args->file, &keep->config.files);
	watch_netns(&keep->watch, &keep->config.places);
	task_soon(keep, TASK_FILES, FILE_WAIT_MS);
}

/* Fails if the path of the copy of the lists has something else. */
static int copies_check(const char *state)
{
	char *path = bans_lists_path(state);
	int status = path ? bans_check(path) : failure("out of memory");

	free(path);
	return status;
}

int state_check(const struct keep_args *args)
{
	struct stamp file = stamp_of(args->file);

	if (!args->state)
		return OK;
	return bans_check_apart(args->state, args->file, &file) ?: bans_check(args->state)
								?: copies_check(args->state);
}

/* Reads the state file once, when it is known that it is none of the files that are read. */
static int state_read(struct keep *keep, const struct list_paths *lists)
{
	const char *state = keep->args->state;
	int status = OK;

	if (!state)
		return OK;
	for (unsigned int i = 0; !status && i < lists->count; i++)
		status = bans_check_apart(state, lists->list[i].path, &lists->list[i].stamp);
	if (!status && !keep->state_is_read)
		status = bans_read(state, &keep->bans);
	keep->state_is_read |= !status;
	return status;
}

static int file_apply(struct keep *keep, bool *ret_is_bad)
{
	struct stamp rules_stamp = stamp_of(keep->args->file);
	struct config config = {0};
	struct file text = {0};
	bool *missing = NULL;
	int status = file_read(keep->args->file, &text);

	if (!status)
		status = config_parse_most(keep->args->file, text.text, text.size, &config);
	if (!status)
		status = state_read(keep, &config.files);
	keep->rules_stamp = rules_stamp;
	*ret_is_bad = status;
	if (!status) {
		missing = calloc(config.places.count + 1, sizeof(*missing));
		status = missing ? rules_apply(keep, &config, RENEW_ALL) : failure("out of memory");
	}
	if (status) {
		free(missing);
		file_free(&text);
		config_free(&config);
		return status;
	}
	file_free(&keep->text);
	keep->text = text;
	config_take(keep, &config);
	/* what is missing is told anew, and by the places of this file */
	free(keep->missing);
	keep->missing = missing;
	return OK;
}

/*
 * A file that is bad is not tried again before the next signal. What the gate or the kernel refuses
 * is: a command may have the gate's lock, or a trial goes on.
 */
int reload_run(struct keep *keep)
{
	const struct keep_args *args = keep->args;
	bool is_bad;
	int status;

	if (keep->is_ready)
		notify_reloading();
	status = file_apply(keep, &is_bad);
	if (status && !keep->is_ready && !trial_left_ms(keep)) {
		keep->ends = true;
		return status;
	}
	keep->file_is_bad = status;
	if (status)
		warning("gate '%s': %s is not applied: %s", args->gate, args->file,
			trial_left_ms(keep) ? "it waits for the end of the trial"
					    : "all stays as it was");
	else if (keep->lists_are_bad)
		task_soon(keep, TASK_LISTS, LIST_WAIT_MS);
	if (!status && keep->is_ready && !keep->rules_changed)
		inform("gate '%s': %s is reloaded: no rule to change", args->gate, args->file);
	keep->is_ready = keep->is_reloading = true;
	return is_bad || status == MISUSED ? OK : status;
}

int files_run(struct keep *keep)
{
	const struct list_paths *paths = &keep->config.files;
	struct stamp rules_stamp = stamp_of(keep->args->file);
	bool changed = false;

	if (keep->args->interval_ms)
		task_at(keep, TASK_FILES, now_ms() + keep->args->interval_ms);
	if (!stamp_equal(&rules_stamp, &keep->rules_stamp)) {
		keep->rules_stamp = rules_stamp;
		note("%s has changed: a reload puts it in force", keep->args->file);
	}
	for (unsigned int i = 0; i < paths->count; i++) {
		struct stamp stamp = stamp_of(paths->list[i].path);

		changed |= !stamp_equal(&stamp, &paths->list[i].stamp);
	}
	if (changed)
		task_soon(keep, TASK_LISTS, 0);
	return OK;
}

/* Reads the lists of the file that is in force, and not what the file may be by now. */
int lists_run(struct keep *keep)
{
	struct config config = {0};
	int status = config_parse_most(keep->args->file, keep->text.text, keep->text.size, &config);

	if (!status && list_paths_left_out(&keep->config.files) &&
	    files_same(&keep->config.files, &config.files)) {
		config_free(&config);
		return FAILED; /* it is tried again, and nothing is new */
	}
	if (!status)
		status = rules_apply(keep, &config, RENEW_LISTS);
	if (!status) {
		config_take(keep, &config);
		return keep->lists_are_bad ? FAILED : OK;
	}
	keep->lists_are_bad = true;
	warning("gate '%s': the lists of %s stay as they were", keep->args->gate, keep->args->file);
	config_free(&config);
	return FAILED;
}
