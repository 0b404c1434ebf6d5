# SPDX-License-Identifier: GPL-2.0
"""The client of the store against real ones: what it says was counted is in the store exactly once, and a
store that is away, changes or lies costs no more than the time of a call."""

import pytest

from lab import wait_until
from store_lab import FIRST_PORT, SERVER, StoreLab

pytestmark = pytest.mark.skipif(not SERVER, reason="redis-server is not installed")

KEYS = [f"g:{{{i}}}" for i in range(40)]  # of slots all over a cluster


@pytest.fixture
def stores(tmp_path):
    made = StoreLab(tmp_path)
    yield made
    made.close()


class Ledger:
    """Adds to keys, round by round, and remembers what must be in the store: between what was answered
    and that plus what was sent and got no answer."""

    def __init__(self, client, keys=tuple(KEYS)):
        self.client, self.keys = client, keys
        self.least, self.most = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)
        self.owed = dict.fromkeys(keys, 0)  # was not sent, and goes with the next round
        self.rounds = self.answered = self.lost = 0
        self.slowest = 0

    def round(self):
        self.rounds += 1
        deltas = {key: self.owed[key] + 1 for key in self.keys}
        done = self.client.round(*((key, delta, 10 * delta) for key, delta in deltas.items()))
        self.slowest = max(self.slowest, done["ms"])
        for key, (answered, sent, taken, asked) in zip(self.keys, done["items"]):
            self.owed[key] = 0 if sent else deltas[key]
            if sent:
                self.most[key] += deltas[key]
            if answered:
                self.least[key] += deltas[key]
                assert self.least[key] <= taken <= self.most[key], (key, done)
                if self.least[key] == self.most[key]:
                    assert asked == 10 * taken
            self.answered += answered
            self.lost += sent and not answered
        return done

    def check(self, stores):
        for key in self.keys:
            taken, _ = stores.fields(key)
            assert self.least[key] <= taken <= self.most[key], key

    def check_exact(self, stores):
        """Nothing was lost, so nothing is in doubt."""
        assert self.lost == 0
        for key in self.keys:
            assert stores.fields(key) == (self.least[key], 10 * self.least[key]), key


# --- One node -------------------------------------------------------------------------------------

def test_a_round_adds_and_answers_totals(stores):
    stores.start()
    client = stores.client()
    assert client.totals(("{a}x", 5, 6), ("{b}y", 0, 0), ("{a}x", 1, 1)) == [(5, 6), (0, 0), (6, 7)]
    assert client.totals(("{a}x", 0, 0), ("{a}x", 2**62, -7)) == [(6, 7), (6 + 2**62, 0)]
    talk = stores.talk()
    assert talk("HGETALL", "{a}x") == ["t", str(6 + 2**62), "a", "0"]
    assert 50 < talk("TTL", "{a}x") <= 60
    assert talk("EXISTS", "{b}y") == 0, "reading makes no key"
    client.totals(("!{c}z", 1, 1))
    assert talk("TTL", "{c}z") == -1, "an item that lasts sets no expiry"
    counts = client.counts()
    assert counts["answered"] == 6 and counts["connects"] == 1 and not counts["is_cluster"], counts
    assert not any(counts[name] for name in ("lost", "unsent", "bad", "refused", "broken")), counts
    client.close()


def test_many_items_take_one_round_trip(stores):
    stores.start()
    client = stores.client()
    items = [(f"k{{{i}}}", i, i + 1) for i in range(5000)]
    assert client.totals(*items) == [(i, i + 1) for i in range(5000)]
    assert client.totals(*items) == [(2 * i, 2 * i + 2) for i in range(5000)]
    client.close()


def test_nodes_that_share_are_counted_by_the_clock_of_the_store(stores):
    stores.start()
    one, two = stores.client(), stores.client()
    assert one.nodes(name="one")["nodes"] == 1
    said = two.nodes(name="two")
    assert said["nodes"] == 2 and one.nodes(name="one")["nodes"] == 2
    seconds, microseconds = map(int, stores.talk()("TIME"))
    assert 0 <= seconds * 1000 + microseconds // 1000 - said["time"] < 5000
    wait_until(lambda: one.nodes(name="one")["nodes"] == 1, "the other is forgotten")
    one.close()
    two.close()


# --- A cluster ------------------------------------------------------------------------------------

def test_a_cluster_has_each_key_where_it_belongs(stores):
    ports = stores.start_cluster()
    client = stores.client(f"127.0.0.1:{ports[1]}")
    ledger = Ledger(client)
    for _ in range(3):
        assert ledger.round()["status"] == 0
    ledger.check_exact(stores)
    assert {stores.holder(key) for key in KEYS} == set(ports[:3])
    counts = client.counts()
    assert counts["is_cluster"] and counts["nodes"] == 6 and counts["moved"] == 0, counts
    assert counts["connects"] == 3, counts
    client.close()
