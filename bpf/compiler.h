/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Macros for clang and the verifier. read_once() and write_once() are a load and a store that other
 * CPUs see whole, and that clang neither repeats nor drops.
 */
#ifndef SLUICE_COMPILER_H
#define SLUICE_COMPILER_H

/*
 * A global BPF function. The verifier checks it once, for any arguments, instead of on every path
 * that calls it; so it must test each pointer for NULL. Use it if inlining would exceed the
 * verifier's limit, or the 512 bytes of stack that Linux 6.1 allows a chain of calls: the
 * function's frame is free again when it returns.
 *
 * Arguments and results are scalars, or pointers to structures without pointers. Before Linux 6.2 a
 * map's key may not be in an argument: the function copies it to its own stack first.
 */
#define BPF_GLOBAL __noinline

#define read_once(x)	     (*(const volatile typeof(x) *)&(x))
#define write_once(x, value) (*(volatile typeof(x) *)&(x) = (value))

#endif
