/* SPDX-License-Identifier: GPL-2.0 */
/* What commands say of the process that keeps a gate (`sluice keep`). */
#ifndef SLUICE_KEPT_H
#define SLUICE_KEPT_H

/*
 * Prints the process that keeps a gate. JSON: "kept": {"pid", "file"}, each null if it is not
 * known; null: the gate is not kept.
 */
void print_kept(const char *gate);

/* Notes what becomes of a change by command to attachments, and of one to limits. */
void kept_note_attachments(const char *gate);
void kept_note_limits(const char *gate);

/* The same of the rules of a file that was applied, unless the gate is kept as this very file. */
void kept_note_file(const char *gate, const char *path);

/* Removes what processes that were killed left of a gate that is gone. */
void kept_forget(const char *gate);

#endif
