# SPDX-License-Identifier: GPL-2.0
"""Builds BPF programs that are not Sluice's, for tests of what is attached beside it. They pass all
packets."""

import subprocess

SOURCE = """
__attribute__((section("xdp"), used)) int foreign_xdp(void *ctx) { return 2; /* XDP_PASS */ }
__attribute__((section("tc"), used)) int foreign_tc(void *ctx) { return -1; /* TC_ACT_UNSPEC */ }
char _license[] __attribute__((section("license"), used)) = "GPL";
"""


def build(directory, name="foreign_xdp"):
    """An object file with the programs of that name and foreign_tc, in sections xdp and tc."""
    path = str(directory / f"{name}.o")
    subprocess.run(["clang", "-O2", "-target", "bpf", "-x", "c", "-c", "-", "-o", path],
                   input=SOURCE.replace("foreign_xdp", name), text=True, check=True)
    return path
