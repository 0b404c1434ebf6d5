# SPDX-License-Identifier: GPL-2.0
"""What a gate holds and how it judges, in a few lines of Python: a soak compares both."""

import copy
import dataclasses
import ipaddress

PREFIXES = ["default", "10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.1", "10.2.0.9", "192.0.2.0/24",
            "2001:db8::/32", "2001:db8:0:1::/64", "2001:db8:0:2::/64"]
SOURCES = ["10.1.1.1", "10.1.1.2", "10.1.2.1", "10.2.0.9", "10.3.0.1", "192.0.2.7", "203.0.113.5",
           "2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"]


def covering(source):
    """The prefixes that cover a source, the longest first."""
    address, found = ipaddress.ip_address(source), []
    for prefix in PREFIXES:
        network = ipaddress.ip_network("::/0" if prefix == "default" else prefix)
        if prefix == "default" or address in network:
            found.append((-1 if prefix == "default" else network.prefixlen, prefix))
    return [prefix for _, prefix in sorted(found, reverse=True)]


COVERING = {source: covering(source) for source in SOURCES}


@dataclasses.dataclass
class Gate:
    """Each prefix has at most one limit, of one packet an hour, so that no level grows."""
    bursts: dict = dataclasses.field(default_factory=dict)  # of limits, by prefix
    hand: dict = dataclasses.field(default_factory=dict)  # prefix: allow or deny
    listed: set = dataclasses.field(default_factory=set)  # prefixes that a list denies
    levels: dict = dataclasses.field(default_factory=dict)  # (source, prefix): what is not full
    passed: int = 0
    dropped: int = 0

    def copy(self):
        return copy.deepcopy(self)

    def rules(self):
        """As seen from outside."""
        return self.bursts, self.hand, self.listed

    def decides(self, source):
        """The prefix whose limit decides, or allow, deny, or None."""
        by_hand = next((self.hand[p] for p in COVERING[source] if p in self.hand), None)
        for prefix in COVERING[source]:
            if prefix in self.hand:
                return self.hand[prefix]
            if prefix in self.listed and by_hand != "allow":
                return "deny"
            if prefix in self.bursts:
                return prefix
        return None

    def judge(self, source):
        """Charges and counts one packet; whether it passes."""
        word = self.decides(source)
        passes = word != "deny"
        if word in self.bursts:
            level = min(self.levels.get((source, word), self.bursts[word]), self.bursts[word])
            passes = level > 0
            self.levels[source, word] = level - passes
        self.passed += passes
        self.dropped += not passes
        return passes

    # - Commands

    def set(self, prefix, burst):
        """Levels stay. What is above the burst is lost with the next packet, in judge()."""
        self.bursts[prefix] = burst

    def delete(self, prefix):
        self.bursts.pop(prefix, None)
        self.levels = {key: level for key, level in self.levels.items() if key[1] != prefix}

    def replace(self, bursts, hand):
        """What a rules file does."""
        for prefix in set(self.bursts) - set(bursts):
            self.delete(prefix)
        for prefix, burst in bursts.items():
            self.set(prefix, burst)
        self.hand, self.listed = dict(hand), set()

    def forgive(self, source):
        """What is full now is not after a larger burst."""
        prefix = self.decides(source)
        if (source, prefix) in self.levels:
            self.levels[source, prefix] = self.bursts[prefix]

    def file(self):
        """The rules file that says this, without lists."""
        return {"policies": [{"prefix": p, "limits": [{"rate": "1/h", "burst": b}]} for p, b in self.bursts.items()],
                **{word: [{"prefixes": [p for p, w in self.hand.items() if w == word]}]
                   for word in ("allow", "deny") if word in self.hand.values()}}
