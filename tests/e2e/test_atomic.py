# SPDX-License-Identifier: GPL-2.0
"""Tests that a change of many rules is atomic: each packet is judged by the old rules or by the new
rules."""

import json
import subprocess
import time

import pytest

from lab import FILTER_MAC, LONG, SLUICE, TRAFFIC, wait_until

pytestmark = pytest.mark.alone

APPLIES = 500 if LONG else 100
SAMPLE = 20
# BURST: burst of limits at 1/h. RATE, RATE_BURST: limit of source `limited`.
BURST, RATE, RATE_BURST = 1000, 1000, 500

HOSTS = {"first": 1, "second": 2, "denied": 3, "free": 4, "drained": 5, "limited": 6, "changing": 7,
         "inside": 8, "outside": 9}
PASSES, DROPS = ["free", "inside"], ["denied", "outside"]


def address(who, family):
    """Returns the IPv4 or IPv6 address of a source. Each source has its own /24 or /48."""
    host = HOSTS[who]
    return f"10.0.{host}.1" if family == 4 else f"2001:db8:{host}::1"


def net(who, family):
    host = HOSTS[who]
    return f"10.0.{host}.0/24" if family == 4 else f"2001:db8:{host}::/48"


def policy(prefix, *limits):
    return {"prefix": prefix, "limits": list(limits)}


def rules(even):
    """Returns one of two rulesets with different verdicts on sources `first` and `second`. A
    mixture of both would drop `inside` or pass `outside`."""
    entries = {"allow": [], "deny": []}
    policies = [policy("default", {"rate": f"{200 if even else 199}mpps", "burst": 4000000})]

    def say(verb, prefix):
        entries[verb].append({"prefix": prefix})

    for family in 4, 6:
        say("deny", address("first" if even else "second", family))
        say("deny", net("denied", family))
        if even:
            say("deny", net("inside", family))
            say("allow", address("inside", family))
            say("allow", net("outside", family))
            say("deny", address("outside", family))
        else:
            say("allow", net("inside", family))
            say("deny", net("outside", family))
        drained = {"rate": "1/h", "burst": BURST}
        other = {"name": f"other{even:d}", "rate": "1mpps", "burst": 100000, "match": "udp"}
        policies += [
            policy(net("drained", family), drained),
            policy(net("limited", family), {"rate": f"{RATE}pps", "burst": RATE_BURST}),
            policy(net("changing", family), drained, other),
        ]
    return {"policies": policies, **entries}


@pytest.fixture(params=["xdp", "ingress"])
def gate(lab, request):
    """A gate on two devices, whose packets are judged by two CPUs at the same time."""
    lab.pair("out1", "in1")
    lab.attach("in0", "in1", "hook", request.param)
    lab.sending = {}
    yield lab
    stop_sending(lab)


def keep_sending(lab):
    """Starts two processes that send packets at full speed from all sources. Nothing listens at the
    destination address."""
    sources = [f"{address(who, family)}=max" for who in HOSTS for family in (4, 6)]
    for device in "out0", "out1":
        if device not in lab.sending or lab.sending[device].poll() is not None:
            lab.sending[device] = subprocess.Popen(
                [TRAFFIC, "-n", lab.sender, "-d", "198.51.100.77", "-D", "2001:db8:ffff::77",
                 device, FILTER_MAC, "60", *sources], stdout=subprocess.DEVNULL)


def stop_sending(lab):
    for process in lab.sending.values():
        process.kill()
        process.wait()


def counts(lab):
    """Returns {(source, IP version): (passed packets, dropped packets)}."""
    found = {source["address"]: (source["passed"]["packets"], source["dropped"]["packets"])
             for source in lab.sources()}
    return {(who, family): found.get(address(who, family) if family == 4 else
                                     address(who, family)[:-1] + "/64", (0, 0))
            for who in HOSTS for family in (4, 6)}


def look_closely(lab, even):
    """Checks that all packets of the denied source are dropped and all packets of the other source
    pass."""
    denied, free = ("first", "second") if even else ("second", "first")
    before, later = counts(lab), {}
    keep_sending(lab)
    wait_until(lambda: later.update(counts(lab)) or all(
        sum(later[who, family]) > sum(before[who, family])
        for who in (denied, free) for family in (4, 6)), "packets of both")
    for family in 4, 6:
        assert later[denied, family][0] == before[denied, family][0], "a denied source passes"
        assert later[free, family][1] == before[free, family][1], "a source that is not denied loses packets"


def test_applies_under_full_load(gate, tmp_path):
    paths = [tmp_path / "odd", tmp_path / "even"]
    for even, path in enumerate(paths):
        path.write_text(json.dumps(rules(bool(even))))
    words = [[SLUICE, "-j", "-g", gate.gate, "apply", str(path)] for path in paths]
    subprocess.run(words[1], check=True, stdout=subprocess.DEVNULL)
    start = time.monotonic()
    keep_sending(gate)
    wait_until(lambda: all(sum(count) for count in counts(gate).values()), "packets of all")
    for i in range(APPLIES):
        said = subprocess.run(words[i % 2], check=True, capture_output=True, text=True).stdout
        assert json.loads(said)["changed"]
        if i % SAMPLE == 0:
            look_closely(gate, bool(i % 2))
    stop_sending(gate)
    spent = time.monotonic() - start
    check_counts(gate, spent)


def check_counts(lab, spent):
    found, stats = counts(lab), lab.json("stats")
    packets = sum(map(sum, found.values()))
    print(f"figure: {APPLIES} applies in {spent:.1f} s under {packets / spent / 1e6:.2f} Mpps on "
          f"2 CPUs: {APPLIES / spent:.0f} a second, no packet is judged by a mixture")
    for (who, family), (passed, dropped) in found.items():
        if who in PASSES:
            assert dropped == 0 and passed > 1000, (who, family, passed, dropped)
        elif who in DROPS:
            assert passed == 0 and dropped > 1000, (who, family, passed, dropped)
        # Exactly the burst passes, because changes of rules neither add nor remove credit.
        elif who in ("drained", "changing"):
            assert passed == BURST, (who, family, passed)
        elif who == "limited":
            allowed = RATE_BURST + RATE * spent
            assert passed <= allowed, (who, family, passed, allowed)
            assert passed >= 0.9 * RATE * (spent - 2), (who, family, passed, allowed)
        else:
            assert passed > 1000 and dropped > 1000, (who, family, passed, dropped)
    totals = {verdict: stats["totals"][verdict]["packets"] for verdict in ("passed", "dropped")}
    assert totals == {"passed": sum(passed for passed, _ in found.values()),
                      "dropped": sum(dropped for _, dropped in found.values())}
    counted = {reason for reason, count in stats["reasons"].items() if count}
    assert counted <= {"within-limit", "allowed", "over-limit", "denied", "contended"}
