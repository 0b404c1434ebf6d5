/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What clang and the verifier have to be told.
 *
 *   BPF_GLOBAL              a function that the verifier checks once
 *   read_once, write_once   a load or store that other CPUs see whole, and that clang neither
 *                           repeats nor drops
 */
#ifndef SLUICE_COMPILER_H
#define SLUICE_COMPILER_H

/*
 * A global BPF function. The verifier checks it once, for any arguments, instead of on every path
 * that calls it; so it must test each pointer for NULL. Used where inlining would exceed the
 * verifier's limit, or the 512 bytes of stack that Linux 6.1 allows a chain of calls: a frame of
 * its own is gone when the function returns.
 *
 * Arguments and results are scalars, or pointers to structures without pointers. Before Linux 6.2 a
 * map's key may not lie in an argument: the function copies it to its own stack first.
 */
#define BPF_GLOBAL __noinline

#define read_once(x)	     (*(const volatile typeof(x) *)&(x))
#define write_once(x, value) (*(volatile typeof(x) *)&(x) = (value))

#endif
