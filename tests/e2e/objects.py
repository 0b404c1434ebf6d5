# SPDX-License-Identifier: GPL-2.0
"""The maps, programs and links of one gate among all that the kernel has: its tables of rules have
sizes that no other gate has."""

import json
import os
import random

from lab import MAPS, run, wait_until

SIZES = range(33000, 65000)  # between two powers of two, so wide that gates of two tests hardly ever overlap


class Objects:
    def __init__(self, lab):
        first = random.SystemRandom().randrange(SIZES.start, SIZES.stop - 50)
        self.lab, self.sizes = lab, range(first, first + 50)

    def gate(self, size=0):
        """`gate` of a rules file: sizes of this test's own, and little beside; `size` is one of 50."""
        return {"sources": 20011, "buckets": 2113,
                **{name: self.sizes[size] for name in ("policies", "hosts", "prefixes")}}

    def pinned(self):
        return {json.loads(run("bpftool", "-j", "map", "show", "pinned", self.lab.pins(name)).out)["id"]
                for name in MAPS}

    def all(self):
        """The ids of maps, of programs that use one, and of the links of these."""
        def shown(kind):
            return json.loads(run("bpftool", "-j", kind, "show").out or "[]")

        maps = {m["id"] for m in shown("map") if m["max_entries"] in self.sizes}
        programs = [p for p in shown("prog") if maps & set(p.get("map_ids", ()))]
        ids = {p["id"] for p in programs}
        maps.update(*(p["map_ids"] for p in programs))
        return maps, ids, {link["id"] for link in shown("link") if link.get("prog_id") in ids}

    def are_those_of_pins(self):
        """Whether each map has a pin, each program is on a device, and each device but those of clsact has a link."""
        maps, programs, links = self.all()
        attachments = self.lab.attachments()
        return (maps <= self.pinned() and programs == {a["program_id"] for a in attachments}
                and len(links) == sum(a["mode"] != "clsact" for a in attachments)
                and len(attachments) == len(self.lab.links()))

    def audit(self):
        """Waits, as the kernel frees later, until nothing is there that the gate does not need."""
        wait_until(self.are_those_of_pins, f"only objects of pins: {self.all()}, {self.lab.attachments()}")
        assert set(os.listdir(self.lab.pins())) == {*MAPS, "links"}

    def wait_until_gone(self):
        wait_until(lambda: self.all() == (set(), set(), set()), f"all objects gone: {self.all()}")
