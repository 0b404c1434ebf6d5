/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gate: the records of policies, and the lists, as commands read them. Their maps may belong to an
 * unprivileged user, who can write anything there at any moment. So a command reads copies: each
 * has passed the checks that words pass, and its limits are compiled anew.
 *
 *   map memory, or a reader's copy of it --> record_read(), list_info_read() --> all other code
 *
 * The rules, which are in other maps, are checked in rulemap.c.
 */
#ifndef SLUICE_RECORDS_H
#define SLUICE_RECORDS_H

#include "gate/gate.h"

/*
 * Returns a record, below SL_POLICY_VERSION(policies_max), as it is now. It stays as it is until it is read
 * again after another change. A record that is free, or damaged, has `since` 0 and no limits.
 */
const struct sl_policy *record_read(const struct gate *gate, uint32_t record);

/*
 * Whether a record is in use and inherits; ret: its prefix. Each change asks that of all records,
 * so no copy is kept.
 */
bool record_inherits(const struct gate *gate, uint32_t record, struct sl_prefix *ret);

/* The number of a record that record_read() has returned. */
uint32_t record_number(const struct gate *gate, const struct sl_policy *policy);

/* Writes a free record, in force from that generation on. */
void record_write(struct gate *gate, uint32_t record, const struct sl_policy *policy,
		  uint32_t since);

/* Frees a record. */
void record_free(struct gate *gate, uint32_t record);

/* Returns the list at a place. A place that is free, or damaged, has `since` 0 and no name. */
struct sl_list_info list_info_read(const struct gate *gate, unsigned int place);

/* Refuses a gate that has a damaged record or list. */
int records_check(const struct gate *gate);

#endif
