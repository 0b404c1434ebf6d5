/* SPDX-License-Identifier: GPL-2.0 */
/* Keep: what systemd is told, by sd_notify(3). Without systemd each function does nothing. */
#ifndef SLUICE_NOTIFY_H
#define SLUICE_NOTIFY_H

#include <stdint.h>

/* READY=1 with a line for `systemctl status`; later only the line. */
void notify_ready(const char *status);
void notify_status(const char *status);

/* RELOADING=1, at this moment of CLOCK_MONOTONIC; notify_ready() ends it. */
void notify_reloading(void);
void notify_stopping(void);

/* Half of the time within which systemd expects to hear, in ms; 0: it does not. */
uint64_t notify_watchdog_ms(void);
void notify_watchdog(void);

/* Between these systemd waits for 10 minutes: how long a task takes grows with the rules. */
void notify_work_begins(void);
void notify_work_ends(void);

#endif
