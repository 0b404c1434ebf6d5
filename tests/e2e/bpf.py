# SPDX-License-Identifier: GPL-2.0
"""Calls of bpf(2): create, write, read and pin maps, and detach links."""

import contextlib
import ctypes
import os
import struct

from lab import libc

# The number of system call bpf(2) is 321 on x86-64, and 280 on most other architectures.
NUMBER = {"x86_64": 321}.get(os.uname().machine, 280)
MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, MAP_DELETE, MAP_NEXT_KEY = range(5)
OBJ_PIN, OBJ_GET, TEST_RUN, PROGRAM_BY_ID, OBJ_INFO = 6, 7, 10, 13, 15
LINK_DETACH = 34
TYPES = {"hash": 1, "array": 2, "percpu_hash": 5, "percpu_array": 6, "lru_hash": 9,
         "lru_percpu_hash": 10, "lpm_trie": 11}


def call(command, attributes):
    attributes = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    got = libc.syscall(NUMBER, command, attributes, 128)
    if got < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"bpf command {command}")
    return got


def address(buffer):
    return ctypes.cast(buffer, ctypes.c_void_p).value


def map_create(kind, key, value, entries, flags=0, name=""):
    return call(MAP_CREATE, struct.pack("IIIIIII16s", TYPES[kind], key, value, entries, flags, 0, 0,
                                        name.encode()))


def map_update(fd, key, value):
    """Stores a value in a map. For a per-CPU map, the value has one item per possible CPU, padded
    to 8 bytes."""
    key, value = ctypes.create_string_buffer(key), ctypes.create_string_buffer(value)
    call(MAP_UPDATE, struct.pack("IxxxxQQQ", fd, address(key), address(value), 0))


def map_lookup(fd, key, size):
    key, value = ctypes.create_string_buffer(key), ctypes.create_string_buffer(size)
    call(MAP_LOOKUP, struct.pack("IxxxxQQQ", fd, address(key), address(value), 0))
    return value.raw[:size]


def pin(fd, path):
    path = ctypes.create_string_buffer(path.encode())
    call(OBJ_PIN, struct.pack("QII", address(path), fd, 0))


def opened(path):
    path = ctypes.create_string_buffer(path.encode())
    return call(OBJ_GET, struct.pack("QII", address(path), 0, 0))


def object_id(fd):
    """Returns the id of a map or program, which is at offset 4 of the kernel's info."""
    info = ctypes.create_string_buffer(8)
    call(OBJ_INFO, struct.pack("IIQ", fd, 8, address(info)))
    return struct.unpack("II", info)[1]


def program_name(fd):
    """Returns the name of a program, which is at offset 64 of the kernel's info."""
    info = ctypes.create_string_buffer(80)
    call(OBJ_INFO, struct.pack("IIQ", fd, 80, address(info)))
    return info.raw[64:].rstrip(b"\0").decode()


def possible_cpus():
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as file:
        return sum(int(last or first) - int(first) + 1 for first, _, last in
                   (part.partition("-") for part in file.read().strip().split(",")))


def map_delete(fd, key):
    key = ctypes.create_string_buffer(key)
    call(MAP_DELETE, struct.pack("IxxxxQ", fd, address(key)))


def map_keys(fd, size):
    """Returns all keys of a map. Keys can be missing if another process changes the map at the same
    time."""
    found, last = [], 0
    with contextlib.suppress(FileNotFoundError):
        while True:
            key = ctypes.create_string_buffer(size)
            call(MAP_NEXT_KEY, struct.pack("IxxxxQQ", fd, last, address(key)))
            found.append(key)
            last = address(key)
    return [key.raw for key in found]


def program(number):
    """Returns a file descriptor of the program with this id."""
    return call(PROGRAM_BY_ID, struct.pack("I", number))


def is_dropped(fd, frame, is_xdp):
    """Runs a program of XDP or TC on a frame, and returns whether it drops the frame."""
    data = ctypes.create_string_buffer(frame, len(frame))
    fields = bytearray(80)
    struct.pack_into("=IIIIQQII", fields, 0, fd, 0, len(frame), 0, address(data), 0, 1, 0)
    attributes = ctypes.create_string_buffer(bytes(fields).ljust(128, b"\0"), 128)
    if libc.syscall(NUMBER, TEST_RUN, attributes, 128) < 0:
        raise OSError(ctypes.get_errno(), "BPF_PROG_TEST_RUN")
    answer = struct.unpack_from("=i", attributes.raw, 4)[0]
    # TC_ACT_SHOT and XDP_PASS are both 2, so the caller specifies the hook.
    assert answer in ((1, 2) if is_xdp else (-1, 2)), answer
    return answer == (1 if is_xdp else 2)
