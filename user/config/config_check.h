/* SPDX-License-Identifier: GPL-2.0 */
/* The shape of a rules file: which keys it may have, and which of them take words, lists or maps. */
#ifndef SLUICE_CONFIG_CHECK_H
#define SLUICE_CONFIG_CHECK_H

#include "config/config_reader.h"

/*
 * Says every unknown key, every key given twice and every node of the wrong kind, with its place. False: the
 * values are not to be read, as some of them are missing or given twice.
 */
bool shape_check(struct reader *reader);

#endif
