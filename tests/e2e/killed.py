# SPDX-License-Identifier: GPL-2.0
"""A command that is killed, or held, at a chosen moment: after so many stops at system
calls (each call stops twice, before and after) and so many single instructions more."""

import ctypes
import os
import signal

from lab import SLUICE, libc

PTRACE_TRACEME, PTRACE_SINGLESTEP, PTRACE_SYSCALL = 0, 9, 24


def ptrace(request, pid):
    call = libc.ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert call(request, pid, None, None) == 0, os.strerror(ctypes.get_errno())


def start(words):
    pid = os.fork()
    if pid:
        return pid
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in 0, 1, 2:
            os.dup2(null, fd)
        libc.ptrace(PTRACE_TRACEME, 0, None, None)
        os.execv(SLUICE, [SLUICE, *words])
    finally:
        os._exit(127)


def run_interrupted(words, stops, call):
    """Runs sluice, calls `call` at that stop, goes on to its end; returns the exit status."""
    pid = start(words)
    _, status = os.waitpid(pid, 0)
    seen = 0
    while os.WIFSTOPPED(status):
        if seen == stops:
            call()
        ptrace(PTRACE_SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        seen += 1
    return os.waitstatus_to_exitcode(status)


def run_stops(words, stops=None, steps=0, until=None):
    """Runs sluice and kills it there, or where `until` is true; returns how many stops there were.
    Without either: to its end, which must be success."""
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
