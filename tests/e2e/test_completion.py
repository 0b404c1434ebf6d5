# SPDX-License-Identifier: GPL-2.0
"""Tests of shell completion: commands, keywords, options, and names of existing objects."""

import fcntl
import json
import os
import shlex
import shutil

import pytest

from lab import SLUICE, TOP, quickest, run, run_sluice

SCRIPT = os.path.join(TOP, "docs", "sluice.bash")


def offered(*words):
    done = run(SLUICE, "complete", "--", *words)
    assert done.err == ""
    return done.out.split()


def in_bash(line, breaks=" \t\n:", program=SLUICE):
    """Returns the words that bash offers for a command line. `breaks` is the value of
    COMP_WORDBREAKS."""
    script = (f"compopt() {{ echo FILES; }}; source {shlex.quote(SCRIPT)}; COMP_LINE={shlex.quote(line)}; "
              f"COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS={shlex.quote(breaks)}; _sluice {shlex.quote(program)}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return run("bash", "-c", script).out.split()


def tables():
    return json.loads(run(SLUICE, "-j", "help").out)["commands"] if os.access(SLUICE, os.X_OK) else []


@pytest.mark.parametrize("command", tables(), ids=lambda command: command["name"])
def test_each_keyword_and_choice_of_a_table_is_offered(command):
    name, words = command["name"], command["words"]
    keywords = [word for word in words if word["kind"] in ("flag", "value", "values")]
    words_offered = [word for word in offered(name, "192.0.2.1", "") if word.islower()]
    assert words_offered[len(words_offered) - len(keywords):] == [word["name"] for word in keywords]
    for word in keywords:
        assert word["name"] in offered(name, "192.0.2.1", word["name"][:-1])
        assert word["name"] not in offered(name, "192.0.2.1", word["name"], "x", "")
        choices = [choice.split()[0] for choice in word["value"].split("|")] if "value" in word else []
        choices = [choice for choice in choices if choice.islower()]
        if choices:
            assert offered(name, "192.0.2.1", word["name"], "") == choices
            for choice in choices:
                assert choice in offered(name, "192.0.2.1", word["name"], choice[:1])
    for word in words:
        if word["kind"] == "option":
            assert {"-f": "--file", "-b": "--batch", "-w": "--write"}.get(word["name"], word["name"]) in offered(name, "-")


@pytest.mark.parametrize("command", [command for command in tables() if any("value" in w for w in command["words"])],
                         ids=lambda command: command["name"])
def test_each_choice_that_is_offered_is_taken(shared, command):
    """Each choice that completion offers for a keyword is accepted by the command."""
    name = command["name"]
    operand = {"attach": "in0", "detach": "in0", "sources": "192.0.2.1", "check": "192.0.2.1"}.get(name, "192.0.2.0/24")
    examples = {"block TIME": "block 30s", "proto N": "proto 47", "tcp-syn [port N]": "tcp-syn port 53", "vlan N": "vlan 7"}
    more = {("start", "share"): "shared yes", ("shared", "block"): "action block 30s", ("proto", "icmp"): ""}
    shared.attach("in0")
    if name == "events":
        operand += " --since 1s"  # `events --since` prints events of the journal, and exits
    for word, choice in [(word["name"], choice) for word in command["words"] for choice in word.get("value", "").split("|")
                         if choice.split(" ")[0].islower()]:
        rest = "rate 5pps " * (word in ("key", "start", "shared", "match", "action")) + more.get((word, choice), "")
        typed = [name, *operand.split(), word, *examples.get(choice, choice).split(), *rest.split()]
        done = shared.sluice(*typed, status=None)
        assert done.code != 2 or f"'{choice.split(' ')[0]}'" not in done.err, (typed, done)


def test_options_before_and_after_the_command(lab):
    lab.attach("in0")
    lab.sluice("deny", "192.0.2.1", "as", "bad")
    assert offered("--gate", lab.gate, "deny", "192.0.2.1", "as", "") == ["bad"]
    assert offered("deny", "192.0.2.1", f"-g{lab.gate}", "as", "") == ["bad"]
    assert offered("--", "se") == ["set", "serve"] and "hook" in offered("attach", "--", "in0", "")
    assert offered("apply", "--", "-") == ["FILE"] and offered("--", "-") == []


@pytest.mark.parametrize("typed,there,absent", [
    ("set default action", "block", ""), ("set default match", "tcp-syn", "rate"), ("set default match udp", "port vlan rate burst", "match"),
    ("set default window 1000 per 1min", "groups per match", "window"), ("set default action block 10s", "escalate rate start", ""),
    ("set default action block 10s escalate 2", "max rate start", "")])
def test_values_of_several_words(typed, there, absent):
    """After a word of a value, completion offers more words of the value and the next keywords."""
    found = set(offered(*typed.split(), ""))
    assert set(there.split()) <= found and not set(absent.split()) & found


@pytest.mark.parametrize("typed,words", [
    ("set ", "default"), ("apply ", "FILE"), ("set default window ", ""), ("set default window 1000 per ", ""),
    ("set default window 1000 ", "per"), ("set default action block ", ""), ("un", "unallow undeny"), ("help se", "set serve"),
    ("--ga", "--gate"), ("-j stat", "status stats"), ("stat", "status stats"), ("nonsense ", ""), ("nonsense", ""),
    ("status ", ""), ("apply --re", "--resize"), ("status --re", "")])
def test_all_that_is_offered(typed, words):
    """Completion offers exactly these words for the typed command line."""
    assert offered(*typed.split(), *[""] * typed.endswith(" ")) == words.split()
    assert offered("") == [command["name"] for command in tables()]


# Keywords of `set` that completion must not offer after these arguments.
KINDS = {
    "rate 5pps": {"window", "groups", "shape", "horizon"}, "burst 5": {"window", "groups", "shape", "horizon"},
    "window 5 per 1s": {"rate", "burst", "shape", "horizon", "shared"},
    "groups 5": {"rate", "burst", "shape", "horizon", "shared"},
    "shape 1mbit": {"rate", "burst", "window", "groups", "action", "start", "shared"},
    "horizon 1s": {"rate", "burst", "window", "groups", "action", "start", "shared"},
    "shared yes": {"window", "groups", "shape", "horizon"}, "start empty": {"shape", "horizon"},
    "action drop": {"shape", "horizon"}, "key dst": set()}


@pytest.mark.parametrize("typed", KINDS)
def test_what_another_kind_of_limit_has_is_not_offered(typed):
    words = typed.split()
    keywords = {word["name"] for command in tables() if command["name"] == "set" for word in command["words"]
                if word["kind"] in ("flag", "value", "values")}
    assert keywords - set(offered("set", "default", *words, "")) == KINDS[typed] | {words[0]}


@pytest.mark.parametrize("typed", KINDS)
def test_what_is_not_offered_is_refused(typed):
    values = {"rate": "5pps", "burst": "5", "window": "5 per 1s", "groups": "5", "shape": "1mbit", "horizon": "1s",
              "action": "drop", "start": "full", "shared": "yes"}
    needed = {"burst": "rate 5pps", "groups": "window 5 per 1s", "horizon": "shape 1mbit"}
    for word in KINDS[typed]:
        line = [typed, f"{word} {values[word]}"]
        line += [more for key, more in needed.items() if key in (word, typed.split()[0])
                 and more.split()[0] not in (word, typed.split()[0])]
        run_sluice("set", "default", *" ".join(line).split(), status=2)


def test_what_is_there(lab):
    lab.attach("in0")
    lab.sluice("set", "192.0.2.0/24", "name", "web", "rate", "5pps")
    lab.sluice("set", "192.0.2.0/24", "name", "dns", "rate", "5pps", "match", "udp port 53")
    lab.sluice("deny", "192.0.2.1", "as", "bad")
    gate = ("-g", lab.gate)
    assert lab.gate in offered("-g", "") and lab.gate in offered("--gate", lab.gate[:-1])
    assert set(offered(*gate, "set", "192.0.2.0/24", "name", "")) == {"web", "dns"}
    assert offered(*gate, "del", "192.0.2.0/24", "name", "w") == ["web"]
    assert offered(*gate, "del", "192.0.2.7", "name", "") == []
    assert offered(*gate, "undeny", "192.0.2.1", "as", "") == ["bad"]
    assert offered("-g", "none-such", "undeny", "192.0.2.1", "as", "") == []
    assert lab.filter in offered("-n", lab.filter[:-1])
    assert "in0" in offered("-n", lab.filter, "attach", "") and "in0" not in offered("attach", "")
    assert offered("-n", "none-such", "attach", "") == []
    assert set(offered("-n", lab.filter, "detach", "")) == {"all", "in0", "lo"}
    assert "hook" in offered("-n", lab.filter, "detach", "in0", "")


def test_bash_asks_the_command(lab):
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    assert in_bash("sluice ") == offered("")
    assert in_bash("sluice se") == ["set", "serve"]
    assert in_bash("sluice set default ra") == ["rate"]
    assert in_bash("sluice set default rate 5 ") == offered("set", "default", "rate", "5", "")
    assert in_bash("sluice apply ") == ["FILES"]
    assert in_bash("sluice deny -f ") == ["FILES"]
    assert in_bash(f"sluice -g {lab.gate} deny 1.2.3.4 as a:b") == []
    lab.attach("in0")
    lab.sluice("deny", "192.0.2.1", "as", "a:bad")
    # bash splits words at a colon, so it replaces only the text after the colon.
    assert in_bash(f"sluice -g {lab.gate} deny 1.2.3.4 as a:b") == ["bad"]
    assert in_bash(f"sluice -g {lab.gate} deny 1.2.3.4 as a:b", " \t\n") == ["a:bad"]


def test_names_with_signs_of_the_shell_are_quoted(lab):
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    lab.attach("in0")
    lab.sluice("deny", "192.0.2.1", "as", "a;b|c&(d)*")
    assert in_bash(f"sluice -g {lab.gate} deny 192.0.2.1 as ") == [r"a\;b\|c\&\(d\)\*"]
    assert in_bash(f"sluice -g {lab.gate} deny 192.0.2.1 as a\\;b") == [r"a\;b\|c\&\(d\)\*"]
    assert in_bash(f"sluice -g {lab.gate} deny 192.0.2.1 as b") == []


def test_a_name_with_a_newline_is_not_offered(lab):
    path = "/run/netns/sluice-a\nsluice-b"
    open(path, "w").close()
    try:
        assert not [name for name in offered("-n", "sluice-") if name in ("sluice-a", "sluice-b")]
    finally:
        os.unlink(path)


def test_the_lock_of_a_gate_is_not_waited_for(lab):
    lab.attach("in0")
    lab.sluice("deny", "192.0.2.1", "as", "bad")
    lock = os.open(f"/sys/fs/bpf/sluice/{lab.gate}", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = "-g", lab.gate, "deny", "192.0.2.1", "as", ""
        assert offered(*words) == ["bad"]
        assert quickest(lambda: offered(*words)) < 1
    finally:
        os.close(lock)


def test_a_program_of_its_own_is_completed_as_the_command():
    for line, words in ("--na", ["--name"]), ("store:1 --on-loss ", ["local", "divide"]), ("--password-file ", ["FILES"]):
        assert [w for w in in_bash(f"sluice-share {line}", program=f"{SLUICE}-share") if w] == words
        assert [w for w in in_bash(f"sluice share {line}") if w] == words
    for line, words in ("replay x --fail-i", ["--fail-if-dropped"]), ("replay x -f ", ["FILES"]):
        assert [w for w in in_bash(f"sluice-replay {line}", program=f"{SLUICE}-replay") if w] == words
    for line, words in ("--met", ["--metrics-sources"]), ("--tls-key ", ["FILES"]):
        assert [w for w in in_bash(f"sluice-serve {line}", program=f"{SLUICE}-serve") if w] == words
