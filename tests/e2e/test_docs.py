# SPDX-License-Identifier: GPL-2.0
"""Tests that the man pages match the help, the schema and the counters, and that links work."""

import functools
import glob
import json
import os
import re
import shutil

import pytest

from lab import MAPS, SLUICE, TOP, run

MAN = os.path.join(TOP, "docs", "man")
PAGES = {"sluice": "sluice.8", "sluice-share": "sluice-share.8", "sluice-top": "sluice-top.8", "sluice-serve": "sluice-serve.8",
         "sluice-events": "sluice-events.8", "sluice-replay": "sluice-replay.8", "sluice-suggest": "sluice-suggest.8",
         "sluice-rules": "sluice-rules.5", "sluice-limits": "sluice-limits.7", "sluice-inspect": "sluice-inspect.7", "sluice-beside": "sluice-beside.7"}
DOCUMENTS = ["README.md", *sorted(f"docs/{name}" for name in os.listdir(os.path.join(TOP, "docs"))
                                 if name.endswith(".md"))]


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


# --- mdoc -----------------------------------------------------------------------------------------

# Each of these mdoc macros ends the arguments of the macro before it.
MACROS = {"Ar", "Cm", "Dq", "Fl", "It", "Nm", "No", "Ns", "Oc", "Oo", "Op", "Pa", "Pq", "Sq", "Sy", "Va", "Xr"}
DELIMITERS = set("()[]|.,:;?!")


def words_of(line):
    """Returns the (macro, argument) pairs of an mdoc line."""
    macro, found = None, []
    for word in line[1:].split() if line.startswith(".") else []:
        if word in MACROS:
            macro = word
        elif word not in DELIMITERS | {"..."}:
            found.append((macro, word))
    return found


def parts(page, macro):
    """Returns the lines of each section by title. A section begins with `.macro TITLE`."""
    found, title = {}, None
    for line in page.splitlines():
        if line.startswith((".Sh ", ".Ss ")):
            title = line[4:] if line.startswith(f".{macro} ") else None
            if title:
                found[title] = []
        elif title:
            found[title].append(line)
    return found


def items(lines, macro):
    """Returns the arguments of `macro` in the list tags (.It) of these lines."""
    return [word for line in lines if line.startswith(".It ")
            for m, word in words_of(line) if m == macro]


# --- The pages ------------------------------------------------------------------------------------

@pytest.mark.parametrize("page", PAGES.values())
def test_mandoc_has_no_objection(page):
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    said = run("mandoc", "-T", "lint", os.path.join(MAN, page), check=False).out.splitlines()
    # mandoc may warn about references to other packages, and about a project's name in `.Os`.
    assert [line for line in said if "referenced manual not found" not in line and "explicitly specified: Os Sluice" not in line] == []


def test_references_among_the_pages():
    assert sorted(os.listdir(MAN)) == sorted(PAGES.values())
    for page in PAGES.values():
        for line in read("docs/man", page).splitlines():
            if line.startswith(".Xr sluice"):
                name, section = line.split()[1:3]
                assert PAGES[name] == f"{name}.{section}"


# --- sluice(8) against the tables of the commands -------------------------------------------------

def metrics_documented():
    """Returns (type, unit, labels, help) of each metric in sluice-inspect(7), and all labels."""
    section = "\n".join(parts(read("docs/man/sluice-inspect.7"), "Sh")["METRICS"])
    metrics, _, labels = section.partition(".El")
    found = {name: (kind.lower(), unit, set(names.split(", ")), " ".join(text.split())) for name, kind, unit, names, text in
             re.findall(r"^\.It Va (\S+)\n(Counter|Gauge|Histogram), (.+?); labels? (.+)\.\n((?:[^.].*\n)+)", metrics, re.MULTILINE)}
    assert list(found) == items(metrics.splitlines(), "Va")
    return found, set(items(labels.splitlines(), "Va"))


@functools.lru_cache(maxsize=None)
def tables():
    return json.loads(run(SLUICE, "-j", "help").out)


def command_names():
    return [command["name"] for command in tables()["commands"]] if os.access(SLUICE, os.X_OK) else []


def words_in(text):
    return re.findall(r"[A-Za-z0-9][A-Za-z0-9-]*|--?[a-z-]+", text)


def synopsis_of(command):
    """Returns the words of a command with its options, as `sluice -j help` has them."""
    words = next(c for c in tables()["commands"] if c["name"] == command)["words"]
    return [command, *sum((words_in(word["name"]) + words_in(word.get("value", "")) for word in words), [])]


def synopsis_in(lines):
    """Returns the words of each form of a command, from the lines of its synopsis in sluice(8)."""
    forms = []
    for line in lines[:lines.index(".Pp")]:
        if line.startswith(".Nm"):
            forms.append([])
        forms[-1] += [f"-{word}" if macro == "Fl" else word
                      for macro, word in words_of(line) if macro in ("Cm", "Ar", "Fl")]
    return forms


def is_part(form, words):
    """Returns whether `form` is a subsequence of `words`."""
    rest = iter(words)
    return all(word in rest for word in form)


def described():
    """Returns the lines of sluice(8) that describe each command, by name."""
    page = read("docs/man/sluice.8").partition(".Sh COMMANDS\n")[2].partition("\n.Sh ")[0]
    return {name: [line.replace(f".Nm Cm {title.replace(', ', ' | ')} ", f".Nm Cm {name} ") for line in lines]
            for title, lines in parts(page, "Ss").items() for name in title.split(", ")}


def test_the_page_has_all_commands_in_the_order_of_the_tables():
    assert list(described()) == command_names()
    assert len(command_names()) > 20


@pytest.mark.parametrize("command", command_names())
def test_the_page_has_the_words_of_the_table(command):
    lines = described()[command]
    forms, words = synopsis_in(lines), synopsis_of(command)
    assert all(is_part(form, words) for form in forms), (forms, words)
    assert set(sum(forms, [])) == set(words)
    assert len(forms) > 1 or forms == [words]
    words = next(c for c in tables()["commands"] if c["name"] == command)["words"]
    told = set(sum((words_in(word["name"]) + re.findall(r"[A-Za-z0-9][A-Za-z0-9-]*", word.get("value", "") + " " +
                    word.get("help", "")) for word in words), []))
    assert set(items(lines, "Cm")) <= told
    helped = " ".join(run(SLUICE, "help", name).out for name in command_names())
    usual = set(re.findall(r"[a-z0-9][a-z0-9-]*", helped))
    for line in lines:
        assert {word for macro, word in words_of(line) if macro == "Cm"} <= usual, line


@pytest.mark.parametrize("name", ["share", "top", "serve", "replay", "suggest"])
def test_the_page_of_a_program_has_the_words_of_its_table(name):
    page = parts(read(f"docs/man/sluice-{name}.8"), "Sh")
    form, = synopsis_in([*page["SYNOPSIS"], ".Pp"])
    words = synopsis_of(name)[1:]
    assert form[form.index(words[0]):] == words
    if name != "top":
        options = [f"-{word}" for word in items(page["OPTIONS"], "Fl") if word.startswith("-")]
        assert options == [word for word in form if word.startswith("--")]


def test_the_page_has_the_options_of_the_table():
    expected = [(f"-{o['letter']}", f"--{o['name']}", o.get("value", "")) for o in tables()["options"]]
    paged = []
    for line in parts(read("docs/man/sluice.8"), "Sh")["OPTIONS"]:
        if line.startswith(".It Fl"):
            words = words_of(line)
            flags = [f"-{word}" for macro, word in words if macro == "Fl"]
            values = {word for macro, word in words if macro == "Ar"}
            paged.append((*flags, values.pop() if values else ""))
            assert not values, line
    assert paged == expected and len(expected) > 5


def test_the_page_has_all_reasons(gate):
    reasons = items(parts(read("docs/man/sluice-inspect.7"), "Sh")["REASONS"], "Sy")
    assert reasons == list(gate.json("stats")["reasons"])


def test_the_page_has_all_findings_in_the_order_of_the_table():
    told = re.findall(r'^\t\{"([a-z-]+)", (WRONG|ADVICE), ', read("user/doctor/findings.c"), re.MULTILINE)
    assert len(told) > 30
    lines = parts(read("docs/man/sluice-inspect.7"), "Sh")["FINDINGS"]
    wrong, advice = (lines[:lines.index("Advice:")], lines[lines.index("Advice:"):])
    assert [items(part, "Sy") for part in (wrong, advice)] == \
        [[name for name, severity in told if severity == kind] for kind in ("WRONG", "ADVICE")]


# --- sluice-rules(5) against the schema -----------------------------------------------------------

def schema():
    return json.loads(read(os.path.join(TOP, "docs", "sluice.schema.json")))


def keys_of_schema():
    """Returns the keys of each mapping in the JSON schema, by its heading in sluice-rules(5)."""
    root = schema()
    policy = root["properties"]["policies"]["items"]
    budget, = [way for way in policy["properties"]["newcomers"]["anyOf"] if "properties" in way]
    place, = [way for way in root["properties"]["attach"]["items"]["anyOf"] if "properties" in way]
    mappings = {"The file": root, "gate": root["properties"]["gate"], "attach": place,
                "defaults": root["properties"]["defaults"], "policies": policy,
                "limits": root["$defs"]["limit"], "newcomers": budget,
                "allow and deny": root["$defs"]["entries_with_keys"]["items"]}
    return {title: set(mapping["properties"]) for title, mapping in mappings.items()}


def mappings_in(node):
    if isinstance(node, dict):
        return ("properties" in node and node.get("type") == "object") + sum(map(mappings_in, node.values()))
    return sum(map(mappings_in, node)) if isinstance(node, list) else 0


def test_the_page_has_the_keys_of_the_schema():
    described_keys = {title: set(items(lines, "Cm"))
                      for title, lines in parts(read("docs/man/sluice-rules.5"), "Ss").items()}
    assert described_keys == keys_of_schema()
    assert mappings_in(schema()) == len(keys_of_schema()), "a kind of mapping without a heading"


def examples_of(page):
    """Returns the example texts in section EXAMPLES of a man page."""
    lines, found = parts(read("docs/man", page), "Sh")["EXAMPLES"], None
    displays = []
    for line in lines:
        if line.startswith(".Bd"):
            found = []
        elif line == ".Ed":
            displays.append("\n".join(found) + "\n")
            found = None
        elif found is not None:
            found.append(line)
    return displays


def test_the_examples_of_rules_can_be_applied(gate, tmp_path):
    files = examples_of("sluice-rules.5")
    assert len(files) >= 3
    (tmp_path / "abusers.txt").write_text("198.51.100.7\n")
    for number, text in enumerate(files):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        gate.sluice("apply", "--resize", str(path))
        # diff prints only entries with `for`, whose expiry is relative to the current time.
        assert all(" until " in line for line in gate.sluice("diff", str(path), status=None).out.splitlines())


# --- All pages ------------------------------------------------------------------------------------

def anchors(text):
    """Returns the anchors that GitHub creates for the headings of a document."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", DOCUMENTS)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)]+)\)", read(page)):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        assert os.path.exists(os.path.join(TOP, target)), link
        assert not anchor or anchor in anchors(read(target)), link


@pytest.mark.parametrize("page", DOCUMENTS)
def test_files_and_functions_that_are_named_exist(page):
    """Each path and function in backquotes exists, except paths with placeholders."""
    for path in re.findall(r"`((?:bpf|docs|include|scripts|tests|user)/[\w./-]*)`", read(page)):
        assert re.search(r"[A-Z]{4}", path) or os.path.exists(os.path.join(TOP, path)), path
    names = set(re.findall(r"`(\w+)\(\)`", read(page)))
    source = "".join(read(path) for folder in ("bpf", "include", "user", "tests")
                     for path in glob.glob(os.path.join(TOP, folder, "**", "*.[ch]"), recursive=True))
    assert not {name for name in names if not re.search(rf"\b{name}\(", source)}


# --- docs/reliability.md --------------------------------------------------------------------------

def test_each_fault_names_tests_that_exist():
    """Each test that the last column of the table in docs/reliability.md names exists."""
    rows = [line.strip("| ").split(" | ") for line in read("docs/reliability.md").splitlines()
            if line.startswith("| ") and not line.startswith("| fault ")]
    assert len(rows) > 30
    for row in rows:
        assert len(row) == 3, row
        names = re.findall(r"`([^`]*)`", row[2])
        assert names and re.sub(r"`[^`]*`", "", row[2]).strip(" ,") == "", row
        for file, _, test in (name.partition("::") for name in names):
            source = read("tests", file)
            assert re.search(rf"^((def|static void) {test}\(|TEST\({test}\))", source, re.MULTILINE), (file, test)


def test_the_tests_for_other_kernels_exist():
    names = run("bash", "-c", r"""eval "$(sed -n '/^quick_tests=/,/^# Runs /p' scripts/vm-tests)"
        printf '%s\n' "${quick_tests[@]}" "${python_tests[@]}" "${datapath[@]}" "${steady_tests[@]}" \
            "${quick_steady_tests[@]}" "${wide_tests[@]}" "${arm64_tests[@]}" """, cwd=TOP).out.split()
    assert len(names) > 50
    for file, _, test in (re.sub(r"\[.*", "", name).partition("::") for name in set(names) - {"verifier"}):
        source = read("tests", file if file.endswith(".py") else f"{file}.c")
        assert not test or f"\ndef {test}(" in source, (file, test)


def test_the_manual_has_each_map():
    section = read(MAN, PAGES["sluice-inspect"]).split(".Sh MAPS")[1].split(".Sh ")[0]
    assert set(MAPS) - {"buckets4", "buckets6"} <= set(re.findall(r"\w+", " ".join(
        line for line in section.splitlines() if line.startswith(".It Cm"))))
