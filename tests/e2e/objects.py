# SPDX-License-Identifier: GPL-2.0
"""Finds the maps, programs and links of one gate, by map sizes that no other gate has."""

import json
import os
import random

from lab import MAPS, run, wait_until

SIZES = range(33000, 65000)  # sizes that no other table has, because most sizes are powers of two


class Objects:
    def __init__(self, lab):
        first = random.SystemRandom().randrange(SIZES.start, SIZES.stop - 50)
        self.lab, self.sizes = lab, range(first, first + 50)

    def gate(self, size=0):
        """Returns the section `gate` of a rules file, with a map size that only this gate has."""
        return {"sources": 20011, "buckets": 2113,
                **{name: self.sizes[size] for name in ("policies", "hosts", "prefixes")}}

    def pinned(self):
        return {json.loads(run("bpftool", "-j", "map", "show", "pinned", self.lab.pins(name)).out)["id"]
                for name in MAPS}

    def all(self):
        """Returns the ids of all maps, programs and links of the gate."""
        def shown(kind):
            return json.loads(run("bpftool", "-j", kind, "show").out or "[]")

        maps = {m["id"] for m in shown("map") if m["max_entries"] in self.sizes}
        programs = [p for p in shown("prog") if maps & set(p.get("map_ids", ()))]
        ids = {p["id"] for p in programs}
        maps.update(*(p["map_ids"] for p in programs))
        return maps, ids, {link["id"] for link in shown("link") if link.get("prog_id") in ids}

    def are_those_of_pins(self):
        """Returns true if all maps and links of the gate are pinned and all its programs are
        attached."""
        maps, programs, links = self.all()
        attachments = self.lab.attachments()
        return (maps <= self.pinned() and programs == {a["program_id"] for a in attachments}
                and len(links) == sum(a["mode"] != "clsact" for a in attachments)
                and len(attachments) == len(self.lab.links()))

    def audit(self):
        """Waits until each map, program and link of the gate has a pin or an attachment."""
        wait_until(self.are_those_of_pins, f"only objects of pins: {self.all()}, {self.lab.attachments()}")
        assert set(os.listdir(self.lab.pins())) == {*MAPS, "links"}

    def wait_until_gone(self):
        wait_until(lambda: self.all() == (set(), set(), set()), f"all objects gone: {self.all()}")
