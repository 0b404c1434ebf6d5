# SPDX-License-Identifier: GPL-2.0
"""Tests of the Debian packages: their files, and checks by tools of Debian and systemd."""

import glob
import os
import re
import shutil
import stat

import pytest

from lab import BUILD, SLUICE, TOP, run

FILES = """
etc/default/sluice
etc/fail2ban/action.d/sluice.py
etc/sluice/main.yaml.example
usr/lib/systemd/system/sluice@.service
usr/lib/systemd/system/sluice-events@.service
usr/lib/systemd/system/sluice-feed@.service
usr/lib/systemd/system/sluice-feed@.timer
usr/lib/sysusers.d/sluice.conf
usr/lib/tmpfiles.d/sluice.conf
usr/libexec/sluice/crowdsec
usr/libexec/sluice/feed
usr/sbin/sluice
usr/share/bash-completion/completions/sluice
usr/share/doc/sluice/README.md
usr/share/doc/sluice/changelog.gz
usr/share/doc/sluice/copyright
usr/share/man/man5/sluice-rules.5.gz
usr/share/man/man7/sluice-beside.7.gz
usr/share/man/man7/sluice-inspect.7.gz
usr/share/man/man7/sluice-limits.7.gz
usr/share/man/man8/sluice-events.8.gz
usr/share/man/man8/sluice.8.gz
usr/share/sluice/sluice.schema.json
""".split()
SHARE_FILES = """
usr/lib/systemd/system/sluice-share@.service
usr/sbin/sluice-share
usr/share/bash-completion/completions/sluice-share
usr/share/doc/sluice-share/changelog.gz
usr/share/doc/sluice-share/copyright
usr/share/man/man8/sluice-share.8.gz
""".split()
TOP_FILES = """
usr/sbin/sluice-top
usr/share/bash-completion/completions/sluice-top
usr/share/doc/sluice-top/changelog.gz
usr/share/doc/sluice-top/copyright
usr/share/man/man8/sluice-top.8.gz
""".split()
SERVE_FILES = """
usr/lib/systemd/system/sluice-serve.service
usr/lib/systemd/system/sluice-serve.socket
usr/sbin/sluice-serve
usr/share/bash-completion/completions/sluice-serve
usr/share/doc/sluice-serve/changelog.gz
usr/share/doc/sluice-serve/copyright
usr/share/man/man8/sluice-serve.8.gz
""".split()
REPLAY_FILES = [path.replace("sluice-top", "sluice-replay") for path in TOP_FILES] + ["usr/share/man/man8/sluice-suggest.8.gz"]
DOC = "usr/share/doc/sluice"
FOLDERS = {f"{DOC}/docs": "docs/*.md", f"{DOC}/examples": "docs/examples/*",
           f"{DOC}/docs/monitoring": "docs/monitoring/*", f"{DOC}/docs/examples": "docs/examples/*"}  # docs/examples is a link
# the program of each unit in the package, and in this tree
UNITS = {"sluice": ("sbin/sluice", SLUICE), "sluice-events": ("sbin/sluice", SLUICE),
         "sluice-feed": ("libexec/sluice/feed", os.path.join(TOP, "scripts/detectors/feed")),
         "sluice-share": ("sbin/sluice-share", f"{BUILD}/sluice-share"), "sluice-serve": ("sbin/sluice-serve", f"{BUILD}/sluice-serve")}
# the highest score that `systemd-analyze security` may report, in tenths
MOST_EXPOSED = {"sluice": 25, "sluice-events": 25, "sluice-feed": 25, "sluice-share": 25, "sluice-serve": 20}


def needs(tool):
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")


def version():
    return run(SLUICE, "--version").out.split()[1].rstrip(",")


@pytest.fixture(scope="module", name="package")
def fixture_package():
    needs("dpkg-deb")
    return found("sluice")


def found(name):
    paths = glob.glob(os.path.join(BUILD, f"{name}_{version()}_*.deb"))
    if not paths:
        pytest.skip("there is no package: dpkg-dev is not installed")
    return paths[0]


def unpacked(package, folder):
    """Unpacks a package into a directory, and its control files into DEBIAN there. Returns the
    directory."""
    run("dpkg-deb", "-R", package, str(folder))
    return folder


@pytest.fixture(scope="module", name="tree")
def fixture_tree(package, tmp_path_factory):
    return unpacked(package, tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module", name="share_tree")
def fixture_share_tree(tmp_path_factory):
    needs("dpkg-deb")
    return unpacked(found("sluice-share"), tmp_path_factory.mktemp("share"))


@pytest.fixture(scope="module", name="serve_tree")
def fixture_serve_tree(tmp_path_factory):
    needs("dpkg-deb")
    return unpacked(found("sluice-serve"), tmp_path_factory.mktemp("serve"))


def field(package, name):
    return run("dpkg-deb", "-f", package, name).out.strip()


def files(tree):
    return {os.path.relpath(path, tree) for path in glob.glob(f"{tree}/**", recursive=True)
            if (os.path.isfile(path) or os.path.islink(path)) and "/DEBIAN/" not in path}


def test_it_has_all_files_and_no_other(tree):
    expected = {os.path.join(folder, os.path.basename(path)) for folder, paths in FOLDERS.items()
                for path in glob.glob(os.path.join(TOP, paths))}
    assert files(tree) == set(FILES) | expected | {f"{DOC}/docs/examples"}


def test_sluice_share_is_a_package_that_needs_the_same_version(tree, share_tree):
    assert files(share_tree) == set(SHARE_FILES)
    depends = field(found("sluice-share"), "Depends")
    assert f"sluice (= {version()})" in depends and "libhiredis" in depends
    assert "hiredis" not in field(found("sluice"), "Depends")


def test_sluice_top_is_a_package_that_needs_the_same_version(tmp_path):
    needs("dpkg-deb")
    assert files(unpacked(found("sluice-top"), tmp_path)) == set(TOP_FILES)
    depends = field(found("sluice-top"), "Depends")
    assert f"sluice (= {version()})" in depends and "libncursesw" in depends
    assert "ncurses" not in field(found("sluice"), "Depends")


def test_sluice_serve_is_a_package_that_needs_the_same_version(serve_tree):
    assert files(serve_tree) == set(SERVE_FILES)
    depends = field(found("sluice-serve"), "Depends")
    assert f"sluice (= {version()})" in depends and "libmicrohttpd" in depends
    assert "microhttpd" not in field(found("sluice"), "Depends")


def test_sluice_replay_is_a_package_that_needs_the_same_version(tmp_path):
    needs("dpkg-deb")
    assert files(unpacked(found("sluice-replay"), tmp_path)) == set(REPLAY_FILES)
    depends = field(found("sluice-replay"), "Depends")
    assert f"sluice (= {version()})" in depends and "libpcap" in depends
    assert "libpcap" not in field(found("sluice"), "Depends")


def test_all_of_it_is_roots_and_only_root_may_write(package):
    for line in run("dpkg-deb", "-c", package).out.splitlines():
        mode, owner = line.split()[:2]
        assert owner == "root/root" and (mode[0] == "l" or mode[5] == mode[8] == "-"), line


def test_its_version_is_the_commands(package, tree):
    assert field(package, "Version") == version()
    assert run(str(tree / "usr/sbin/sluice"), "--version").out == run(SLUICE, "--version").out
    assert run("zcat", str(tree / "usr/share/doc/sluice/changelog.gz")).out.startswith(f"sluice ({version()}) ")


def test_it_depends_on_the_libraries_of_the_command(package, tree):
    needs("ldd")
    linked = set(re.findall(r"lib(bpf|jansson|mnl|yaml|systemd)\b",
                            run("readelf", "-d", str(tree / "usr/sbin/sluice")).out))
    named = set(re.findall(r"\blib(bpf|jansson|mnl|yaml|systemd)[-0-9]", field(package, "Depends")))
    assert linked == named and len(linked) >= 4


def test_what_is_below_etc_is_kept_over_upgrades(tree):
    below_etc = {f"/{name}" for name in FILES if name.startswith("etc/")}
    assert set((tree / "DEBIAN/conffiles").read_text().split()) == below_etc


@pytest.mark.parametrize("path", glob.glob(f"{TOP}/docs/examples/*"), ids=os.path.basename)
def test_an_example_can_be_executed_where_it_is_a_script(tree, path):
    """Each script among the examples is executable. run-parts silently skips a file that is not."""
    with open(path, encoding="utf-8") as file:
        script = file.read(2) == "#!"
    for folder in (f"{DOC}/examples", f"{DOC}/docs/examples"):
        assert os.access(tree / folder / os.path.basename(path), os.X_OK) == script


def test_links_among_its_documents_lead_to_files(tree):
    links = [(page, link) for page in [*(tree / DOC).glob("*.md"), *(tree / DOC / "docs").glob("*.md")]
             for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()) if "://" not in link]
    assert len(links) > 10
    assert [(page.name, link) for page, link in links if not (page.parent / link).is_file()] == []


def test_commands_of_its_pages_find_the_examples(tree):
    named = re.findall(r"^    .* (docs/examples/\S+)", (tree / DOC / "docs/deployment.md").read_text(), re.M)
    assert len(named) == 4
    assert [name for name in named if not (tree / DOC / name).is_file()] == []


def test_lintian_has_no_objection():
    needs("lintian")
    packages = [found(name) for name in ("sluice", "sluice-share", "sluice-top", "sluice-serve", "sluice-replay")]
    assert run("lintian", "--allow-root", "--fail-on", "error,warning", *packages, check=False) == (0, "", "")


# --- systemd --------------------------------------------------------------------------------------

@pytest.fixture(name="unit", params=UNITS)
def fixture_unit(tree, share_tree, serve_tree, tmp_path, request):
    """A copy of a systemd unit that runs the program under test."""
    needs("systemd-analyze")
    name = request.param
    path = tmp_path / (f"{name}.service" if name == "sluice-serve" else f"{name}@.service")
    installed, program = UNITS[name]
    units = {"sluice-share": share_tree, "sluice-serve": serve_tree}.get(name, tree) / "usr/lib/systemd/system"
    for unit in [*units.glob("*.socket"), *units.glob("*.timer")]:
        shutil.copy(unit, tmp_path)
    text = (units / path.name).read_text()
    assert text.count(f"=/usr/{installed} ") == 1
    path.write_text(text.replace(f"=/usr/{installed} ", f"={program} "))
    return path


def test_systemd_has_no_objection_to_the_unit(unit):
    timers = [str(timer) for timer in unit.parent.glob(f"{unit.stem}.timer")]
    assert run("systemd-analyze", "verify", "--man=no", str(unit), *timers, check=False) == (0, "", "")


def test_a_removal_stops_the_units_of_the_package(tree):
    script = (tree / "DEBIAN/prerm").read_text()
    units = [unit.name.replace("@.", "@*.") for unit in (tree / "usr/lib/systemd/system").iterdir()]
    assert len(units) >= 4 and [unit for unit in units if f"'{unit}'" not in script] == []


def test_systemd_calls_the_unit_little_exposed(unit):
    said = run("systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED[unit.stem.rstrip('@')]}", str(unit), check=False)
    assert said.code == 0, said.out


@pytest.mark.parametrize("tool,name", [("systemd-sysusers", "sysusers.d"), ("systemd-tmpfiles", "tmpfiles.d")])
def test_users_and_directories_are_made(tree, tmp_path, tool, name):
    """The package's sysusers.d and tmpfiles.d files create user sluice and its directories."""
    needs(tool)
    needs("systemd-sysusers")
    folder = tmp_path / "usr/lib"
    shutil.copytree(tree / "usr/lib", folder)
    (tmp_path / "etc").mkdir()
    run("systemd-sysusers", f"--root={tmp_path}", "sluice.conf")
    assert re.search(r"^sluice:x?!?\*?:\d+:\d+:.*:/usr/sbin/nologin$", (tmp_path / "etc/passwd").read_text(), re.M)
    if name == "tmpfiles.d":
        run(tool, f"--root={tmp_path}", "--create", "sluice.conf")
        modes = {where: stat.S_IMODE((tmp_path / where).stat().st_mode)
                 for where in ("sys/fs/bpf/sluice", "run/sluice")}
        assert modes == {"sys/fs/bpf/sluice": 0o750, "run/sluice": 0o755}


def test_the_example_of_a_file_can_be_applied(lab, tree):
    lab.pair("out1", "eth0")
    lab.sluice("apply", str(tree / "etc/sluice/main.yaml.example"))
    assert [(a["device"], a["hook"]) for a in lab.attachments()] == [("eth0", "xdp")]
    assert lab.sluice("diff", str(tree / "etc/sluice/main.yaml.example")).out == ""
