/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the process that keeps a gate as its rules file specifies. It waits for events. An event
 * makes steps due. The main loop runs the due steps in the order of enum step_name. Each step is
 * idempotent. The modules are:
 *
 *  loop           waits for events, runs and retries steps, sends messages to systemd
 *  watch          receives events of the kernel: files, pins, namespaces and devices
 *  step_rules     applies the rules file and its lists
 *  step_devices   attaches devices
 *  step_gate      detects changes that commands made to the gate, saves the runtime entries
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
	const char *state;    /* path of the state file; NULL: runtime entries are not saved */
	uint64_t interval_ns; /* interval of checks of list files; 0: only after inotify events */
	bool resize;
};

/*
 * Runs `sluice keep` until SIGTERM or SIGINT. Returns an error if the first reload of the rules
 * file fails.
 */
int keep_run(const struct keep_args *args);

enum step_name {
	STEP_RELOAD, /* apply the rules file and all its lists */
	STEP_RENEW,  /* replace attached programs after a suspension, or finish a killed resize */
	STEP_CHECK,  /* every 3 s: detect changes that cause no event, such as a detached link */
	STEP_LOOK,   /* detect changes that a command made to the gate */
	STEP_LISTS,  /* read the list files that changed */
	STEP_ATTACH, /* attach and detach devices */
	STEP_SAVE,   /* write the state file */
	STEPS,
};

/* Delay of a step after an event, in ms. The step then handles all events of this time. */
#define DEVICE_WAIT_MS 20
#define GATE_WAIT_MS   20
#define SAVE_WAIT_MS   50
#define FILE_WAIT_MS   100
#define RETRY_MIN_MS   1000

struct step {
	uint64_t due_ms;   /* time of the next run, in ms of now_ms(); 0 if the step is not due */
	uint64_t retry_ms; /* delay before the retry of a failed run; 0 if the last run succeeded */
	uint64_t rest_ms;  /* earliest time at which an event can make the step due */
	char *logged;	   /* messages of the step's last run, each between newlines */
};

/* Kinds of events that make steps due. */
enum watch_kind {
	WATCH_FILES, /* a file changed in the directory of the rules file or of a list file */
	WATCH_GATE,  /* a command closed the gate's directory, or removed the gate */
	WATCH_LINKS, /* a pin of an attachment was added or removed */
	WATCH_NETNS, /* the name of a namespace, or the directory of names, was added or removed */
	WATCH_INOTIFY,		       /* number of the kinds above, which inotify reports */
	WATCH_DEVICES = WATCH_INOTIFY, /* a device changed that is attached or in the rules file */
	WATCH_FILTERS,		       /* a qdisc or a filter of an attached device was removed */
};

#define EVENT(kind) (1U << (kind))

struct watch_socket {
	int fd;
	uint64_t netns;
};

struct watch {
	int inotify[WATCH_INOTIFY]; /* inotify fd of each kind; -1 if the kind is not watched */
	unsigned int lacking;	    /* EVENT() bits of kinds whose watch or fd the kernel refused */
	struct watch_socket *sockets;
	unsigned int sockets_count, sockets_room;
	bool sockets_changed; /* the last call of watch_devices() opened or closed a socket */
	unsigned int events;  /* EVENT() bits found by the current watch_read() */
};

#define STATUS_TEXT 512

struct keep {
	const struct keep_args *args;
	char object[GATE_NAME + 8]; /* object of log messages: "gate 'NAME'" */
	struct lock_file lock;
	struct step steps[STEPS];
	struct watch watch;
	int signals, clock;    /* a signalfd; a timerfd that reports changes of the wall clock */
	uint64_t suspended_ms; /* for how many ms the machine was suspended since boot */
	uint64_t watchdog_us;  /* timeout of systemd's watchdog, in µs; 0 if it is off */
	uint64_t fed_ms;       /* time of the last watchdog message */
	bool ends;
	bool is_ready;	   /* the first reload has ended, so systemd gets READY=1 and the status */
	bool is_reloading; /* systemd waits for READY=1 after a reload */
	char status[STATUS_TEXT];

	struct file text;     /* the rules file as last applied */
	struct config config; /* parsed `text`, with the lists as last read */
	struct stamp stamp;   /* stamp of the rules file when it was last read or reported */
	bool has_config;
	bool file_is_bad;   /* the last reload failed, for any reason */
	bool lists_are_new; /* the lists have changed since `lists_path` was written */

	struct gate_snapshot snapshot;
	bool is_hidden;		       /* another mount hides the gate's path */
	bool lost_pins;		       /* the last STEP_LOOK found that pins are missing */
	bool worked;		       /* the current run of a step has changed something */
	char lists_path[PATH_MAX + 8]; /* path of the state file with ".lists" appended */
	struct state_file runtime;     /* runtime entries as last saved */
	struct state_file saved;       /* entries in `lists_path` when this process started */

	struct programs programs;
	uint32_t programs_gate;			   /* id of the map `gate` that `programs` use */
	struct attachment wanted[ATTACHMENTS_MAX]; /* attachments that the file specifies */
	unsigned int wanted_count;
	unsigned int attached; /* number of existing attachments */
	uint64_t attached_ms;  /* time at which attachments were last changed */
	bool is_waiting;       /* a device of the rules file does not exist */
	bool failed;	       /* devices of the rules file could not be attached */
};

/* Returns CLOCK_MONOTONIC in ms. */
uint64_t now_ms(void);

/* Makes a step due at time `ms` of now_ms(), unless it is due earlier. */
void step_at(struct keep *keep, enum step_name name, uint64_t ms);

/* Makes a step due `wait_ms` from now, but not before its `rest_ms`. */
void step_soon(struct keep *keep, enum step_name name, uint64_t wait_ms);

/* Makes each step due that handles one of these events (EVENT() bits). */
void on_events(struct keep *keep, unsigned int events);

/* Sends the status to systemd if it has changed. */
void status_update(struct keep *keep);

/* Returns the remaining time of the gate's trial in ms, or 0 if the gate is not on trial. */
uint64_t keep_trial_left_ms(const struct keep *keep);

/* Returns whether a list is in force with old entries, because its file cannot be read now. */
bool lists_are_bad(const struct keep *keep);

/* --- Events of the kernel ------------------------------------------------------------------- */

void watch_close(struct watch *watch);

/*
 * Each function opens a new inotify fd and watches files. watch_files() watches the rules file and
 * list files. watch_gate() watches the gate's pins and the names of namespaces. watch_netns()
 * watches only these names. Unread events of the old fd are lost. If the kernel refuses an fd or a
 * watch, sets a bit of `lacking`. Skips directories that the caller may not read.
 */
void watch_files(struct keep *keep);
void watch_gate(struct keep *keep);
void watch_netns(struct keep *keep);

/* Opens a netlink socket in each existing namespace of the rules file, and closes other sockets. */
int watch_devices(struct keep *keep);

/* Reads the queued events of all kinds without waiting. Returns their EVENT() bits. */
unsigned int watch_read(struct keep *keep);

/* --- Steps ---------------------------------------------------------------------------------- */

/* Applies the rules file. If this fails in the first run, the process ends. */
int reload_run(struct keep *keep);

/* Applies the lists if a list file changed. If the rules file changed, only prints a notice. */
int lists_run(struct keep *keep);

/*
 * Applies a config to the gate. If the gate does not exist, creates it. If a list file is bad, uses
 * the entries of its last valid version. Returns 0 or a negative errno.
 */
int rules_apply(struct keep *keep, struct config *config, enum renew renew);

int attach_run(struct keep *keep);
int check_run(struct keep *keep);
int renew_run(struct keep *keep);

/* Makes STEP_ATTACH due, because another process changed attachments. */
void attach_again(struct keep *keep);

/* Returns whether a mount hides the gate. If so, stores the mount in `ret`. */
bool gate_is_hidden(const struct keep *keep, struct mount *ret);

int look_run(struct keep *keep);
int save_run(struct keep *keep);

#endif
