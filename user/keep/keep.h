/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keep: the process that keeps a gate as its file says. It sleeps until a signal, a device, a file
 * or a command wakes it, and then runs the tasks that are due. Here is what its parts share.
 *
 *   loop           waits for events, and runs the tasks: its table is in loop.c
 *   task_rules     the rules file, and the lists that it names
 *   task_devices   attachments, and the programs for the next ones
 *   task_gate      what commands did to the gate, and the state file
 *   task_watch     what is looked for, as nothing tells of it
 *   status_line    how it goes, for systemd
 *
 *   bans           what commands gave, and the state file
 *   reconcile      which rules shall be in force
 *   apply          makes them so
 *   links          devices that come and go, by netlink
 *   watch          files, by inotify
 *   wall_clock     that it was set
 *   lock_file      one process a gate
 *   notify         messages to systemd
 *   troubles       each cause is said once
 */
#ifndef SLUICE_KEEP_H
#define SLUICE_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/places.h"
#include "base/file.h"
#include "config/config.h"
#include "gate/snapshot.h"
#include "keep/bans.h"
#include "keep/lock_file.h"
#include "keep/links.h"
#include "keep/troubles.h"
#include "keep/watch.h"

/* How long a task waits for more of the events that it is for. */
#define LINK_WAIT_MS 20
#define GATE_WAIT_MS 20
#define SAVE_WAIT_MS 50
#define LOAD_WAIT_MS 200
#define FILE_WAIT_MS 100

/* How long after a reload a list whose file was bad is read again. */
#define LIST_WAIT_MS 1000

struct keep_args {
	const char *gate;
	const char *file;
	const char *state;    /* NULL: bans end with the gate */
	uint64_t interval_ms; /* how often list files are looked at; 0: only by inotify */
	bool resize;
};

#define STATUS_TEXT 512

enum task_name {
	TASK_WATCHDOG,
	TASK_RELOAD, /* the file, and all that it names, anew */
	TASK_WATCH,  /* what cannot be watched */
	TASK_RENEW,  /* programs: a driver may have lost them, or a resize was interrupted */
	TASK_CHECK,  /* finds what causes no event, such as a detached link */
	TASK_LOOK,   /* what a command did */
	TASK_FILES,  /* whether files have changed */
	TASK_LISTS,  /* list files anew */
	TASK_ATTACH, /* devices */
	TASK_LOAD,   /* programs, so that the next device need not wait for them */
	TASK_SAVE,   /* the state file */
	TASKS,
};

struct task {
	uint64_t due_ms; /* 0: not due */
	uint64_t retry_ms;
	uint64_t rested_ms; /* when it has rested */
	struct troubles troubles;
};

struct keep {
	const struct keep_args *args;
	struct lock_file lock;
	struct task tasks[TASKS];
	struct config config; /* the file as it was applied last, with its lists as read last */
	struct file text;     /* of that file */
	bool has_file;	      /* these are set */
	bool file_is_bad;     /* what is on the disk was not applied */
	bool lists_are_bad;   /* a list of the file could not be read */
	bool lists_are_new;   /* the copy of the lists is not written yet */
	bool state_is_bad;    /* what commands gave is not saved */
	bool state_is_read;
	bool is_hidden;	    /* a mount hides the gate */
	bool rules_changed; /* at the last time that rules were applied */
	char boot[BOOT_TEXT];
	struct bans bans;
	struct gate_snapshot mark;
	struct programs programs;
	uint32_t programs_gate;	   /* the id of that map of the gate for which they are */
	struct attachment *wanted; /* all that shall be attached */
	unsigned int wanted_count, attached;
	bool *missing; /* of each place of the file */
	unsigned int failed;
	struct stamp rules_stamp;
	struct watch watch;
	struct links links;
	uint64_t netns_wait_ms, netns_late_ms;
	uint64_t heard_ms;
	uint64_t suspended_ms; /* as it was when programs were put there */
	int signals, wall_clock;
	bool is_ready;	     /* systemd is told of the status from here on */
	bool is_reloading;   /* systemd is to be told when all that is due is done */
	bool worked;	     /* the task did something, and so was not woken in vain */
	bool lost_before;    /* pins were missing when it was looked at last */
	bool by_others;	     /* another process has changed the attachments */
	unsigned int undone; /* how often in a row what it changed was made as before */
	uint64_t undone_ms;  /* when that was last */
	bool ends;
	char status[STATUS_TEXT]; /* as systemd was told it last */
};

/* CLOCK_MONOTONIC, in ms. */
uint64_t now_ms(void);

/* Makes a task due at a moment of now_ms(), or earlier where it is due before. */
void task_at(struct keep *keep, enum task_name name, uint64_t ms);
void task_now(struct keep *keep, enum task_name name);

/* For what wakes the process of its own accord: not before the task has rested. */
void task_soon(struct keep *keep, enum task_name name, uint64_t wait_ms);

/* What is left of the gate's trial, in ms; 0: there is none. */
uint64_t trial_left_ms(const struct keep *keep);

#endif
