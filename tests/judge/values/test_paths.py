"""Which kind of place a path is, from its text alone."""

from __future__ import annotations

import pytest

from handrail.judge.values.assessment import Reach
from handrail.judge.values.paths import CLASSES, classes, normalise, reach

UNKNOWN = "\ue000"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "root"),
        ("//", "root"),
        ("/./", "root"),
        ("/etc/..", "root"),
        ("/*", "root"),
        ("/???", "root"),
        ("/[eh]*", "root"),
        ("~", "home-root"),
        ("~/", "home-root"),
        ("~/*", "home-root"),
        ("~/.[a-z]*", "home-root"),
        ("~/..", "home-root"),
        ("~/../..", "root"),
        ("/home", "home-root"),
        ("/home/*", "home-root"),
        ("/home/alice", "home-root"),
        ("/root", "home-root"),
        ("/Users/alice/", "home-root"),
        ("/etc", "system-root"),
        ("/usr/*", "system-root"),
        ("/usr/lib", "system-root"),
        ("/etc/../var", "system-root"),
        ("/srv/app", "system"),
        ("/etc/hosts", "config"),
        ("/usr/bin/python3", "config"),
        ("/proc/sys/kernel/x", "kernel"),
        ("/var/log/auth.log", "log"),
        ("/dev/sda", "device"),
        ("/dev/nvme0n1p1", "device"),
        ("/dev/sd?", "device"),
        ("/dev/mapper/root", "device"),
        ("/etc/shado?", "credential"),
        ("/etc/shadow", "credential"),
        ("~/.ssh/id_*", "credential"),
        ("~/.ssh/*", "credential"),
        ("/root/.aws/credentials", "credential"),
        ("/home/alice/.netrc", "credential"),
        (".env", "credential-name"),
        ("deploy/key.pem", "credential-name"),
        ("~/.bashrc", "startup"),
        ("/home/alice/.ssh/authorized_keys", "startup"),
        ("~/.config/autostart", "startup"),
        ("/etc/cron.d/x", "startup"),
        ("~/.zsh_history", "history"),
        (".git", "vcs"),
        ("sub/.git/config", "vcs"),
        (".git/hooks/pre-commit", "hook"),
        ("~/.config/handrail/config.yaml", "own"),
        ("prod.sqlite3", "data"),
        ("/tmp", "temp-root"),
        ("/tmp/*", "temp-root"),
        ("/tmp/x", "temp"),
        ("..", "outside"),
        ("a/../../b", "outside"),
        ("/data", "outside"),
        ("build", "project"),
        (".", "project-root"),
        ("*", "project-root"),
        (UNKNOWN, "unknown"),
        (f"{UNKNOWN}/x", "unknown"),
        (f"/{UNKNOWN}/x", "unknown"),
    ],
)
def test_a_path_has_its_class(path: str, expected: str) -> None:
    assert expected in CLASSES
    assert expected in classes(path)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("/etc/*", "credential"),
        ("/home/alice/x", "home-root"),
        ("~/x", "home-root"),
        ("~/.ssh/id_rsa.pub", "credential"),
        ("~/.ssh/known_hosts", "credential"),
        (".env.example", "credential-name"),
        ("/dev/null", "device"),
        ("/dev/stderr", "device"),
        ("/usr/local/bin/x", "config"),
        ("etc/hosts", "config"),
        (".github", "vcs"),
        ("gitignore", "vcs"),
        ("/tmp/etc/shadow", "credential"),
        ("~/a.txt", "credential"),
    ],
)
def test_a_path_has_no_class_that_it_only_resembles(path: str, wrong: str) -> None:
    assert wrong not in classes(path)


@pytest.mark.parametrize(
    ("path", "cwd", "expected"),
    [
        ("hosts", "/etc", "/etc/hosts"),
        ("..", "/srv/app", "/srv"),
        ("x", "~", "~/x"),
        ("../x", "~/a", "~/x"),
        ("a//b/./c", ".", "a/b/c"),
        ("file:///etc/hosts", ".", "/etc/hosts"),
    ],
)
def test_a_path_is_joined_to_the_working_directory(path: str, cwd: str, expected: str) -> None:
    assert normalise(path, cwd) == expected


def test_below_the_project_a_path_is_the_projects_however_it_is_written() -> None:
    project = "/home/alice/app"
    assert reach("/home/alice/app/build", ".", project) is Reach.PROJECT
    assert reach("build", "/home/alice/app/sub", project) is Reach.PROJECT
    assert reach("../other", ".", project) is Reach.HOME
    assert "home-root" in classes("..", ".", project)
    assert "project-root" in classes("/home/alice/app", ".", project)


@pytest.mark.parametrize("project", ["/", "/home/alice", "/root"])
def test_a_home_or_the_root_is_never_taken_for_a_project(project: str) -> None:
    assert not classes(project, ".", project).isdisjoint(("root", "home-root"))


def test_a_very_long_path_costs_little_and_is_judged_by_its_beginning() -> None:
    assert "unknown" in classes("/" + "a/" * 100_000)
    assert "project" in classes("a" * 100_000)


@pytest.mark.parametrize("path", ["~/.s?h/id_*sa", "~/.ss[h]/id_rsa", "/et?/shadow", "/e[t]c/shad*"])
def test_a_wild_path_that_can_meet_a_file_of_keys_counts_as_one(path: str) -> None:
    assert "credential" in classes(path)


@pytest.mark.parametrize("path", ["~/.config/*/settings.json", "~/*/*.txt", "/v?r/www/x", "~/src/*.py"])
def test_a_wild_path_that_says_little_does_not(path: str) -> None:
    assert "credential" not in classes(path)
