# SPDX-License-Identifier: GPL-2.0
"""`sluice NAME` runs sluice-NAME if there is no command NAME. With -j, errors are JSON."""

import json
import os
import re
import shutil

import pytest

from lab import SLUICE, run, run_sluice

SCRIPT = '#!/bin/sh\necho "$(basename "$0")" "$@"\nexit 7\n'


@pytest.fixture(name="programs")
def made_programs(tmp_path):
    """Copies sluice and sluice-near to bin/. $PATH has sluice-far and another sluice-near."""
    for folder, names in ("bin", ["sluice-near"]), ("path", ["sluice-far", "sluice-near"]):
        (tmp_path / folder).mkdir()
        for name in names:
            path = tmp_path / folder / name
            path.write_text(SCRIPT.replace("echo", f"echo {folder}"))
            path.chmod(0o755)
    binary = shutil.copy(SLUICE, tmp_path / "bin")

    def typed(line):
        environment = {**os.environ, "PATH": f"{tmp_path}/path:{os.environ['PATH']}"}
        return run(binary, *line.split(), check=False, env=environment)
    return typed


@pytest.mark.parametrize("line,ran", [
    ("near", "bin sluice-near"),
    ("-g edge near -x --y=1 z -j", "bin sluice-near -g edge -x --y=1 z -j"),
    ("-n name --gate=edge far z", "path sluice-far -n name --gate=edge z"),
    ("-- far z", "path sluice-far -- z"),
    ("help far", "path sluice-far --help"),
])
def test_a_command_of_another_program(programs, line, ran):
    assert programs(line) == (7, ran + "\n", "")


@pytest.mark.parametrize("word", ["none", "../path/sluice-far", "x/../../path/sluice-far", "-far", "", "FAR", "f\nar"])
def test_a_word_that_is_no_program(programs, word):
    """sluice refuses a program name with characters other than a-z, 0-9 and -."""
    done = programs(f"-- {word}")
    assert done.code == 2 and done.out == ""


# Columns: a wrong command, its exit status, and `id` and `object` of its JSON error.
ERRORS = [
    ("statsu", 2, "no-command", ""), ("show --jsn", 2, "no-option", ""), ("-g", 2, "no-value", ""),
    ("set default rat 5pps", 2, "unexpected", "set"), ("set", 2, "no-operand", "set"),
    ("set default rate 1pps rate 2pps", 2, "given-twice", "set"), ("diff", 2, "no-operand", "diff"),
    ("help nothing", 2, "no-command", ""),
]


@pytest.mark.parametrize("line,status,name,subject", ERRORS, ids=[case[0] for case in ERRORS])
def test_an_error_as_json(line, status, name, subject):
    """With -j, a wrong command prints its error as JSON on stdout and as text on stderr."""
    done = run_sluice("-j", *line.split(), status=status)
    error = json.loads(done.out)["error"]
    assert sorted(error) == ["hint", "id", "object", "text"]
    assert (error["id"], error["object"]) == (name, subject)
    words = [word for word in (error["object"], error["text"]) if word]
    assert done.err == f"sluice: {': '.join(words)}{'; ' if error['hint'] else ''}{error['hint']}\n"
    assert run_sluice(*line.split(), status=status).out == ""


def test_of_several_errors_json_has_the_first(tmp_path):
    (tmp_path / "rules.yaml").write_text("policies:\n  - prefix: nonsense\n    limits: [{rate: 5}, {rate: 6}]\n")
    done = run_sluice("-j", "apply", str(tmp_path / "rules.yaml"), status=2)
    lines = done.err.splitlines()
    error = json.loads(done.out)["error"]
    assert len(lines) > 1 and error["text"] in lines[0] and error["text"] not in lines[1]


def test_only_programs_of_their_own_link_more_libraries():
    """Hosts without the package of a program do not need the libraries of that program."""
    def linked(program):
        return set(re.findall(r"\blib(hiredis|hiredis_ssl|ssl|crypto|ncursesw|tinfo|microhttpd|gnutls|pcap)\b", run("readelf", "-d", program).out))
    assert linked(SLUICE) == set() and "hiredis" in linked(f"{SLUICE}-share")
    assert linked(f"{SLUICE}-top") == {"ncursesw", "tinfo"}
    assert linked(f"{SLUICE}-serve") == {"microhttpd", "gnutls"}
    assert linked(f"{SLUICE}-replay") == {"pcap"}


@pytest.mark.parametrize("name,word", [("share", "a:1"), ("top", "-b"), ("replay", "x.pcap"),
                                       ("serve", "-v")])
def test_a_program_that_is_not_installed(tmp_path, name, word):
    """If a program is not installed, the error message names its package."""
    binary = shutil.copy(SLUICE, tmp_path)
    done = run(binary, "-j", name, word, check=False, env={"PATH": str(tmp_path)})
    error = json.loads(done.out)["error"]
    assert (done.code, error["id"], error["hint"]) == (2 if name == "replay" else 1, "not-installed", f"install it: 'apt install sluice-{name}'")
    assert run(binary, "help", name).out == run(SLUICE, "help", name).out
