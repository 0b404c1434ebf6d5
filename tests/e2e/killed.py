# SPDX-License-Identifier: GPL-2.0
"""Runs sluice under ptrace, and kills or pauses it at a chosen moment. A moment is a number of
ptrace stops and a number of single steps after the last stop. A stop occurs before and after each
system call."""

import ctypes
import os
import random
import signal

from lab import LONG, SEED, SLUICE, libc

PTRACE_TRACEME, PTRACE_SINGLESTEP, PTRACE_SYSCALL = 0, 9, 24


def ptrace(request, pid):
    call = libc.ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert call(request, pid, None, None) == 0, os.strerror(ctypes.get_errno())


def start(words, err="/dev/null"):
    """Starts sluice under ptrace, stopped before its first instruction. Stderr goes to `err`."""
    pid = os.fork()
    if pid:
        return pid
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in 0, 1:
            os.dup2(null, fd)
        os.dup2(os.open(err, os.O_WRONLY), 2)
        libc.ptrace(PTRACE_TRACEME, 0, None, None)
        os.execv(SLUICE, [SLUICE, *words])
    finally:
        os._exit(127)


def run_interrupted(words, stops, call, err="/dev/null"):
    """Runs sluice until it exits. Calls `call` at ptrace stop `stops`, or at each stop for which
    stops(pid) is true. Returns the exit status."""
    pid = start(words, err)
    _, status = os.waitpid(pid, 0)
    seen = 0
    while os.WIFSTOPPED(status):
        if stops(pid) if callable(stops) else seen == stops:
            call()
        ptrace(PTRACE_SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        seen += 1
    return os.waitstatus_to_exitcode(status)


def states(words, state):
    """Runs sluice. Returns the states before and after all its system calls, without repetitions.
    A kill leaves one of these states."""
    seen = []

    def look():
        now = state()
        if seen[-1:] != [now]:
            seen.append(now)

    assert run_interrupted(words, lambda pid: True, look) == 0
    return seen


# The number of system call bpf(2) is 321 on x86-64, and 280 on most other architectures.
BPF_CALL = {"x86_64": 321}.get(os.uname().machine, 280)


def count_bpf_calls(words):
    """Runs a command, which must succeed. Returns how many times it called bpf(2)."""
    stops = 0

    def count(pid):
        nonlocal stops
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            stops += file.read().split()[0] == str(BPF_CALL)

    code = run_interrupted(words, count, None)
    assert code == 0, f"sluice {words}: {code}"
    return stops // 2


def run_stops(words, stops=None, steps=0, until=None):
    """Runs sluice under ptrace. Kills it `steps` instructions after stop number `stops`, or after
    the first stop for which until() is true. If neither is given, checks that sluice succeeds.
    Returns the number of stops."""
    pid = start(words)
    _, status = os.waitpid(pid, 0)
    seen = 0
    while os.WIFSTOPPED(status) and seen != stops and not (until and until()):
        ptrace(PTRACE_SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        seen += 1
    while os.WIFSTOPPED(status) and steps:
        ptrace(PTRACE_SINGLESTEP, pid)
        _, status = os.waitpid(pid, 0)
        steps -= 1
    if os.WIFSTOPPED(status):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return seen
    assert stops is not None or status == 0, f"sluice {words} failed"
    return seen


def moments(stops, first, count):
    """Yields random moments at which a test kills a command. They are spread evenly over the
    command's ptrace stops. The fraction `first` of the stops is skipped."""
    print(f"SLUICE_SEED={SEED}")
    chosen = random.Random(SEED)
    if not LONG:
        count //= 2
    for i in range(count):
        at = first + (1 - first) * (i + chosen.random()) / count
        yield int(stops * at), int(chosen.choice((0, 30, 300, 1500)) * chosen.random())
