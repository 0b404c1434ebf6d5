// SPDX-License-Identifier: GPL-2.0
/*
 * A library for LD_PRELOAD that makes calls fail, as if memory were full. KIND is malloc, mmap, bpf
 * or watch. The calls of kind watch are inotify_add_watch(2), and fail with ENOSPC. All other calls
 * fail with ENOMEM.
 *
 *   STARVE=KIND:N      the Nth call of a kind fails
 *   STARVE=KIND:N+     the Nth call of the kind and all later calls fail
 *   STARVE_WHILE=FILE  calls fail only while this file exists
 *   STARVE_COUNT=FILE  at exit, the number of calls of each kind is written to this file
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The allocator of glibc. dlsym() allocates memory, so it cannot look up the allocator. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

enum kind { NONE, MALLOC, MMAP, BPF, WATCH, KINDS };

static const char *const names[] = {
	[MALLOC] = "malloc", [MMAP] = "mmap", [BPF] = "bpf", [WATCH] = "watch"};

static enum kind starved;
static unsigned long nth, calls[KINDS];
static bool all_behind;

__attribute__((constructor)) static void starve_begin(void)
{
	const char *text = getenv("STARVE"), *colon = text ? strchr(text, ':') : NULL;
	char *end;

	if (!colon)
		return;
	nth = strtoul(colon + 1, &end, 10);
	all_behind = *end == '+';
	for (enum kind kind = MALLOC; kind < KINDS; kind++)
		if (strlen(names[kind]) == (size_t)(colon - text) &&
		    !strncmp(text, names[kind], colon - text))
			starved = kind;
}

__attribute__((destructor)) static void starve_end(void)
{
	const char *path = getenv("STARVE_COUNT");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd >= 0) {
		for (enum kind kind = MALLOC; kind < KINDS; kind++)
			dprintf(fd, "%s %lu\n", names[kind], calls[kind]);
		close(fd);
	}
}

/* Counts a call of this kind. If the call must fail, sets errno and returns true. */
static bool starves(enum kind kind)
{
	unsigned long number = ++calls[kind];

	if (kind != starved || (number != nth && !(all_behind && number > nth)))
		return false;
	if (getenv("STARVE_WHILE") && access(getenv("STARVE_WHILE"), F_OK))
		return false;
	errno = kind == WATCH ? ENOSPC : ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return starves(MALLOC) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return starves(MALLOC) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return starves(MALLOC) ? NULL : __libc_realloc(old, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (starves(MMAP))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

int inotify_add_watch(int fd, const char *path, uint32_t events)
{
	if (starves(WATCH))
		return -1;
	return syscall(SYS_inotify_add_watch, fd, path, events);
}

/* libbpf calls bpf(2) through this function. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long word[6];
	va_list rest;

	va_start(rest, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(rest, long);
	va_end(rest);
	if (number == SYS_bpf && starves(BPF))
		return -1;
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
