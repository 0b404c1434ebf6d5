/* SPDX-License-Identifier: GPL-2.0 */
/* Making a gate: the sizes of its maps, and the maps. */
#ifndef SLUICE_GATE_MAKE_H
#define SLUICE_GATE_MAKE_H

#include "gate/gate.h"
#include "rules/sizes.h"

struct bpf_object;

struct gate_sizes gate_sizes_default(const struct machine *machine);

/* The sizes that a gate has. */
enum status gate_sizes_read(const struct gate *gate, struct gate_sizes *ret);

/* The sizes wanted, with the default for those that are 0. */
struct gate_sizes gate_sizes_complete(const struct gate_sizes *wanted,
				      const struct machine *machine);

/* How a gate of these sizes meets newcomers; the secret is `secret`. */
struct sl_meeting gate_meeting(const struct gate_sizes *sizes, const struct machine *machine,
			       const __u64 secret[SL_SECRETS]);

/* Gives the maps of an object, not loaded, these sizes. */
void gate_sizes_set(struct bpf_object *object, const struct gate_sizes *sizes,
		    const struct machine *machine);

/* Makes the gate's maps and pins them; gate_undo() removes them. The gate's directory is locked. */
enum status gate_make(struct gate *gate, const struct gate_sizes *wanted);

/*
 * A gate of the same rules on maps that are partly new: those that `fresh` names, empty and of these sizes, and always
 * `gate`, which says what maps they are. The others are shared. Nothing is pinned.
 */
enum status gate_make_next(const struct gate *gate, const struct gate_sizes *sizes,
			   const bool fresh[GATE_MAPS], struct gate *ret);

/* Makes a gate of unpinned maps: for tests. */
enum status gate_make_unpinned(struct gate *gate, const struct gate_sizes *sizes,
			       const struct machine *machine);

/* Removes the gate if this command made it: for a command that fails. */
void gate_undo(struct gate *gate);

#endif
