# SPDX-License-Identifier: GPL-2.0
"""A memory control group, version 1 or 2. It measures or limits the kernel memory of a test."""

import contextlib
import os

import pytest

TOPS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))


class Memory:
    def __init__(self, directory, limit):
        self.directory, self.limit_file = directory, os.path.join(directory, limit)
        self.procs = os.path.join(directory, "cgroup.procs")

    def limit(self, size):
        with open(self.limit_file, "w", encoding="ascii") as file:
            file.write(str(size))

    def command(self, *words):
        """Returns a shell command that joins the group and then executes `words`."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', self.procs, *words]

    def kernel_bytes(self):
        """Returns the kernel memory that is charged to the group, including maps and programs."""
        first = os.path.join(self.directory, "memory.kmem.usage_in_bytes")
        if os.path.exists(first):
            with open(first, encoding="ascii") as file:
                return int(file.read())
        with open(os.path.join(self.directory, "memory.stat"), encoding="ascii") as file:
            return int(dict(line.split() for line in file)["kernel"])

    @contextlib.contextmanager
    def inside(self):
        """Moves this process into the group during the with block."""
        top = os.path.dirname(self.directory)
        with open("/proc/self/cgroup", encoding="ascii") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
        home = next(path for _, controllers, path in lines
                    if ("memory" in controllers.split(",")) == top.endswith("/memory"))
        self.move(self.procs)
        try:
            yield
        finally:
            self.move(os.path.join(top, home.lstrip("/"), "cgroup.procs"))

    def move(self, procs):
        with open(procs, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))


@contextlib.contextmanager
def memory(name):
    """Creates a memory control group during the with block. Skips the test if it cannot."""
    for top, limit in TOPS:
        group = Memory(os.path.join(top, name), limit)
        try:
            os.mkdir(group.directory)
        except OSError:
            continue
        try:
            if os.path.exists(group.limit_file):
                yield group
                return
        finally:
            os.rmdir(group.directory)
    pytest.skip("no memory control groups")
