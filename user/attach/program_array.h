/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attach: the slots of a program array, whose programs XDP programs call by tail calls. These
 * functions return 0, an fd or a negative errno, and add no error.
 */
#ifndef SLUICE_PROGRAM_ARRAY_H
#define SLUICE_PROGRAM_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

/* Makes a program array with one slot. */
int array_make(void);

/* Stores the number of slots. Returns -EINVAL if the map is no program array. */
int array_count(int array_fd, uint32_t *ret);

/* Returns the id of the program in a slot, or 0 if the slot is empty. */
uint32_t array_get(int array_fd, uint32_t slot);
int array_set(int array_fd, uint32_t slot, int program_fd);

/* Finds the slot that has a program. Returns whether there is one. */
bool array_find(int array_fd, uint32_t program_id, uint32_t *ret);

/*
 * Finds whether the programs of an array read packets of several buffers (xdp.frags). A program can
 * call only programs that are like it in this respect, and the kernel does not report it. So this
 * loads a small program of each kind. Returns -EINVAL if no XDP program can call the array.
 */
int array_find_frags(int array_fd, bool *ret_has_frags);

#endif
