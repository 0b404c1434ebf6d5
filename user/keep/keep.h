/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the process that keeps a gate as its rules file specifies. It waits for events. Each event
 * makes steps due, and a pass runs the due steps in the order of enum step_name. Each step is
 * idempotent.
 *
 *   loop           events, the pass, retries, messages to systemd
 *   watch          events of the kernel: files, pins, namespaces and devices
 *   step_rules     apply the rules file and its lists
 *   step_devices   attach devices
 *   step_gate      detect changes that commands made to the gate, and save the runtime entries
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
	const char *state;    /* path of the state file; NULL if runtime entries are not saved */
	uint64_t interval_ns; /* interval of checks of list files; 0: only inotify */
	bool resize;
};

/* Keeps the gate until SIGTERM or SIGINT. Fails if the first try to apply the file fails. */
int keep_run(const struct keep_args *args);

enum step_name {
	STEP_RELOAD, /* apply the rules file and all its lists */
	STEP_RENEW,  /* replace programs after a suspension, or finish a killed resize */
	STEP_CHECK,  /* every 3 s: detect changes without an event, such as a detached link */
	STEP_LOOK,   /* detect changes that a command made to the gate */
	STEP_LISTS,  /* read list files that changed */
	STEP_ATTACH, /* attach and detach devices */
	STEP_SAVE,   /* write the state file */
	STEPS,
};

/* After an event, its step waits this long for more events of the same kind, in ms. */
#define DEVICE_WAIT_MS 20
#define GATE_WAIT_MS   20
#define SAVE_WAIT_MS   50
#define FILE_WAIT_MS   100
#define RETRY_MIN_MS   1000

struct step {
	uint64_t due_ms;   /* time at which the step runs (now_ms()); 0 if it is not due */
	uint64_t retry_ms; /* delay after the last failure; 0 if the last run succeeded */
	uint64_t rest_ms;  /* earliest time at which an event makes the step due */
	char *logged;	   /* messages that the last run logged, each between newlines */
};

/* Kinds of events. */
enum watch_kind {
	WATCH_FILES,   /* a file in the directory of the rules file or of a list file */
	WATCH_GATE,    /* a command closed the gate's directory, or the gate was removed */
	WATCH_LINKS,   /* a pin of an attachment was made or removed */
	WATCH_NETNS,   /* a name of a namespace, or their directory, was made or removed */
	WATCH_INOTIFY, /* number of kinds of events that inotify reports */
	WATCH_DEVICES = WATCH_INOTIFY, /* an attached or configured device changed */
	WATCH_FILTERS,		       /* a qdisc or a filter of an attached device was removed */
};

#define EVENT(kind) (1U << (kind))

struct watch_socket {
	int fd;
	uint64_t netns;
};

struct watch {
	int inotify[WATCH_INOTIFY]; /* an fd for each kind; -1 if the kind is not watched */
	unsigned int lacking;	    /* EVENT() bits of kinds that lack a watch or an fd */
	struct watch_socket *sockets;
	unsigned int sockets_count, sockets_room;
	bool sockets_changed; /* the last watch_devices() opened or closed a socket */
	unsigned int events;  /* EVENT() bits that the current read has found */
};

#define STATUS_TEXT 512

struct keep {
	const struct keep_args *args;
	char object[GATE_NAME + 8]; /* object of messages: "gate 'NAME'" */
	struct lock_file lock;
	struct step steps[STEPS];
	struct watch watch;
	int signals, clock;    /* two fds; `clock` is readable after the wall clock was set */
	uint64_t suspended_ms; /* time in suspension since boot */
	uint64_t watchdog_us;  /* timeout of systemd's watchdog; 0 if it is off */
	uint64_t fed_ms;       /* time at which the last watchdog message was sent */
	bool ends;
	bool is_ready;	   /* the start is complete, so systemd gets the status */
	bool is_reloading; /* systemd waits for the end of the reload */
	char status[STATUS_TEXT];

	struct file text;     /* the rules file that was last applied */
	struct config config; /* config parsed from `text`, and lists as last read */
	struct stamp stamp;   /* identifies the rules file that was last read or reported */
	bool has_config;
	bool file_is_bad;   /* the last reload failed */
	bool lists_are_new; /* the entries of the file must be written to `lists_path` */

	struct gate_snapshot snapshot;
	bool is_hidden;		       /* a mount hides the gate */
	bool lost_pins;		       /* pins were missing at the last STEP_LOOK */
	bool worked;		       /* the current step changed something */
	char lists_path[PATH_MAX + 8]; /* path of the state file with suffix ".lists" */
	struct state_file runtime;     /* the last saved runtime entries */
	struct state_file saved;       /* the rules file's entries, from `lists_path` at start */

	struct programs programs;
	uint32_t programs_gate;			   /* id of the map `gate` that `programs` use */
	struct attachment wanted[ATTACHMENTS_MAX]; /* attachments that the file specifies */
	unsigned int wanted_count;
	unsigned int attached; /* number of attachments that exist */
	uint64_t attached_ms;  /* time at which attachments were last changed */
	bool is_waiting;       /* devices that the rules file specifies are missing */
	bool failed;	       /* devices of the file cannot be attached */
};

/* Returns CLOCK_MONOTONIC in ms. */
uint64_t now_ms(void);

/* Makes a step due at this time, in ms of CLOCK_MONOTONIC, unless it is due earlier. */
void step_at(struct keep *keep, enum step_name name, uint64_t ms);

/* Makes a step due after `wait_ms`, but not before its `rest_ms`. */
void step_soon(struct keep *keep, enum step_name name, uint64_t wait_ms);

/* Makes the steps due that handle these events. */
void on_events(struct keep *keep, unsigned int events);

/* Sends the status to systemd if it has changed. */
void status_update(struct keep *keep);

/* Returns how long the gate's trial still lasts, in ms, or 0 if the gate is not on trial. */
uint64_t keep_trial_left_ms(const struct keep *keep);

/* Returns whether a list has other entries than its file, because the file could not be read. */
bool lists_are_bad(const struct keep *keep);

/* --- Events of the kernel ------------------------------------------------------------------- */

void watch_close(struct watch *watch);

/*
 * Watch the files, the gate with the names of namespaces, or only the names, by a new inotify fd.
 * Unread events of the old fd are lost. If no watch or fd is left, set a bit of `lacking`. Skip
 * directories that the caller may not read.
 */
void watch_files(struct keep *keep);
void watch_gate(struct keep *keep);
void watch_netns(struct keep *keep);

/* Opens a netlink socket in each existing namespace of the rules file, and closes the others. */
int watch_devices(struct keep *keep);

/* Reads the queued events. Returns EVENT() bits. */
unsigned int watch_read(struct keep *keep);

/* --- Steps ---------------------------------------------------------------------------------- */

/* Applies the rules file. If the first run fails, the process ends. */
int reload_run(struct keep *keep);

/* Applies the lists if a list file changed. If the rules file changed, reports only that. */
int lists_run(struct keep *keep);

/*
 * Applies a config to the gate. Makes the gate if it does not exist. If a list file is bad, adds
 * the last good copy of the list to the config. Returns 0 or a negative errno.
 */
int rules_apply(struct keep *keep, struct config *config, enum renew renew);

int attach_run(struct keep *keep);
int check_run(struct keep *keep);
int renew_run(struct keep *keep);

/* Makes STEP_ATTACH due after another process changed attachments. */
void attach_again(struct keep *keep);

/* Returns whether a mount hides the gate, and then stores the mount in `ret`. */
bool gate_is_hidden(const struct keep *keep, struct mount *ret);

int look_run(struct keep *keep);
int save_run(struct keep *keep);

#endif
