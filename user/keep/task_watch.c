// SPDX-License-Identifier: GPL-2.0
#include "keep/task_watch.h"

#include "keep/task_devices.h"

int watch_run(struct keep *keep)
{
	unsigned int lacked = keep->watch.lacking;

	if (lacked & WATCHED_BIT(WATCHED_FILES)) {
		watch_files(&keep->watch, keep->args->file, &keep->config.files);
		task_soon(keep, TASK_FILES, 0);
	}
	if (lacked & (WATCHED_BIT(WATCHED_GATE) | WATCHED_BIT(WATCHED_LINKS))) {
		watch_gate(&keep->watch, keep->args->gate);
		task_soon(keep, TASK_LOOK, 0);
		task_soon(keep, TASK_ATTACH, 0);
	}
	if (lacked & WATCHED_BIT(WATCHED_NETNS))
		netns_await(keep);
	if (!keep->watch.lacking)
		return OK;
	warning("gate '%s': the kernel has no inotify watch left, see sysctl "
		"fs.inotify.max_user_watches: changes are looked for, at last once a minute",
		keep->args->gate);
	return FAILED;
}
