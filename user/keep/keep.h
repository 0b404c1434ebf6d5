/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the process that keeps a gate as its rules file specifies. It waits for events; each event
 * makes steps due, and a pass runs the steps that are due, in the order of enum step_name. Each
 * step is idempotent.
 *
 *   loop           events, the pass, retries, messages to systemd
 *   watch          events of the kernel: files, pins, namespaces and devices
 *   step_rules     apply the rules file and its lists
 *   step_devices   attach devices
 *   step_gate      find what commands did to the gate, and save the runtime entries
 */
#ifndef SLUICE_KEEP_H
#define SLUICE_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/places.h"
#include "base/file.h"
#include "config/config.h"
#include "gate/snapshot.h"
#include "keep/lock_file.h"
#include "keep/reconcile.h"
#include "keep/state_file.h"

struct keep_args {
	const char *gate;
	const char *file;
	const char *state;    /* NULL: runtime entries end with the gate */
	uint64_t interval_ns; /* how often list files are checked; 0: by inotify only */
	bool resize;
};

/* Keeps the gate until SIGTERM or SIGINT. Fails at once if the file cannot be applied. */
int keep_run(const struct keep_args *args);

enum step_name {
	STEP_RELOAD, /* apply the rules file and all its lists */
	STEP_RENEW,  /* replace programs: a driver may have lost them, or finish a resize */
	STEP_CHECK,  /* every 3 s: find what causes no event, such as a detached link */
	STEP_LOOK,   /* find what a command did to the gate */
	STEP_LISTS,  /* read list files that changed */
	STEP_ATTACH, /* attach and detach devices */
	STEP_SAVE,   /* write the state file */
	STEPS,
};

/* How long a step waits for more events of its kind, in ms. */
#define DEVICE_WAIT_MS 20
#define GATE_WAIT_MS   20
#define SAVE_WAIT_MS   50
#define FILE_WAIT_MS   100
#define RETRY_MIN_MS   1000

struct step {
	uint64_t due_ms;   /* 0: not due */
	uint64_t retry_ms; /* the wait after the last failure; 0: it succeeded */
	uint64_t rest_ms;  /* events do not make it due before this moment */
	char *logged;	   /* the messages of its last run, each between newlines */
};

/* Kinds of events. */
enum watch_kind {
	WATCH_FILES,   /* a file in the directory of the rules file or of a list file */
	WATCH_GATE,    /* a command closed the gate's directory, or the gate is gone */
	WATCH_LINKS,   /* a pin of an attachment, or a namespace, was made or removed */
	WATCH_INOTIFY, /* the number of kinds that inotify reports */
	WATCH_DEVICES = WATCH_INOTIFY, /* a device that the file names, or an attached one */
	WATCH_FILTERS,		       /* a qdisc or a filter of an attached device was removed */
};

#define EVENT(kind) (1U << (kind))

struct watch_socket {
	int fd;
	uint64_t netns;
};

struct watch {
	int inotify[WATCH_INOTIFY]; /* fds; -1: not watched */
	unsigned int lacking;	    /* events that are not all reported: no watch or fd is left */
	struct watch_socket *sockets;
	unsigned int sockets_count, sockets_room;
	unsigned int events; /* that were read of sockets */
};

#define STATUS_TEXT 512

struct keep {
	const struct keep_args *args;
	char object[GATE_NAME + 8]; /* "gate 'NAME'", for messages */
	struct lock_file lock;
	struct step steps[STEPS];
	struct watch watch;
	int signals, clock; /* fds; `clock` is readable after the wall clock was set */
	uint64_t suspended_ms;
	uint64_t watchdog_us, fed_ms;
	bool ends;
	bool is_ready;	   /* systemd gets the status from here on */
	bool is_reloading; /* systemd waits for the end of the reload */
	char status[STATUS_TEXT];

	struct file text;     /* of the rules file as it was last applied */
	struct config config; /* of that text, with its lists as they were last read */
	struct stamp stamp;   /* of the rules file as it was last read or reported */
	bool has_config;
	bool file_is_bad;   /* the rules file on disk is not applied */
	bool lists_are_new; /* the copy of the lists is not written yet */

	struct gate_snapshot snapshot;
	bool is_hidden;		       /* a mount hides the gate */
	bool lost_pins;		       /* pins were missing at the last look */
	bool worked;		       /* the step changed something, so its event was useful */
	char lists_path[PATH_MAX + 8]; /* FILE.lists of the state file */
	struct state_file runtime;     /* the entries of commands, as they were last saved */
	struct state_file saved; /* the entries and lists of the file, as a start finds them */

	struct programs programs;
	uint32_t programs_gate; /* the id of map `gate` for which they were loaded */
	struct attachment wanted[ATTACHMENTS_MAX]; /* all that should be attached */
	unsigned int wanted_count, attached;
	uint64_t attached_ms; /* when attachments were last changed */
	bool is_waiting;      /* devices of the file are missing */
};

/* Returns CLOCK_MONOTONIC in ms. */
uint64_t now_ms(void);

/* Makes a step due at a moment of now_ms(), or leaves it due earlier. */
void step_at(struct keep *keep, enum step_name name, uint64_t ms);

/* Makes a step due after an event: at the end of its rest at the earliest. */
void step_soon(struct keep *keep, enum step_name name, uint64_t wait_ms);

/* Makes the steps of events due. */
void on_events(struct keep *keep, unsigned int events);

/* Sends the status to systemd if it has changed. */
void status_update(struct keep *keep);

/* Returns the time left of the gate's trial, in ms; 0: no trial is open. */
uint64_t keep_trial_left_ms(const struct keep *keep);

/* Returns whether a list is not as its file: the file is bad, or was not read. */
bool lists_are_bad(const struct keep *keep);

/* --- Events of the kernel ------------------------------------------------------------------- */

void watch_close(struct watch *watch);

/*
 * Replace what is watched of a kind. Events that were not read are lost. If no watch or fd is left,
 * the kind is added to `lacking`. A directory that the caller may not read is left out.
 */
void watch_files(struct keep *keep);
void watch_gate(struct keep *keep);

/*
 * Opens a netlink socket in each namespace of the rules file that exists and has none, and closes
 * the others.
 */
int watch_devices(struct keep *keep);

/* Reads the events. */
unsigned int watch_read(struct keep *keep);

/* --- Steps ---------------------------------------------------------------------------------- */

/* Applies the file. If the first run fails, the process ends. */
int reload_run(struct keep *keep);

/* Reads the lists again if a file changed. Reports a rules file that changed. */
int lists_run(struct keep *keep);

/*
 * Applies a config to the gate, and makes the gate if it does not exist. Adds the last good copies
 * of lists that were left out to the config.
 */
int rules_apply(struct keep *keep, struct config *config, enum renew renew);

int attach_run(struct keep *keep);
int check_run(struct keep *keep);
int renew_run(struct keep *keep);

/* Makes attach due after another process changed the attachments. */
void attach_again(struct keep *keep);

/* Returns whether a mount hides the gate, and stores the mount. */
bool gate_is_hidden(const struct keep *keep, struct mount *ret);

int look_run(struct keep *keep);
int save_run(struct keep *keep);

#endif
