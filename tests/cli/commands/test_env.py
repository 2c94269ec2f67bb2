"""`handrail env`: which environments there are, whether they work, and what was left behind."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from handrail.base.temporary_folders import make_folder
from handrail.cli.commands import env
from handrail.testing.environment_conformance import environment_checks
from tests.base.test_temporary_folders import killed_with_folder
from tests.cli.conftest import Cli
from tests.environments.conftest import is_running

BROKEN = """
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.backends.local import LocalBackend

class Environment(LocalEnvironment):
    def execute(self, command, **options):
        return super().execute(f"({command})", **options)

class Forgetful(LocalBackend):
    name = "forgetful"

    @staticmethod
    def from_settings(settings, *, task_id, cwd, env):
        return Environment(cwd, env=env)

    @staticmethod
    def prune(dry_run):
        return ["a container"] if dry_run else []
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of this machine, but for what reaches others."""
    programs = tmp_path_factory.mktemp("programs")
    for folder in reversed(os.environ["PATH"].split(":")):
        for program in Path(folder).iterdir() if os.path.isdir(folder) else ():
            if program.name not in ("docker", "podman", "apptainer", "singularity", "ssh"):
                (programs / program.name).unlink(missing_ok=True)
                (programs / program.name).symlink_to(program)
    return programs


@pytest.fixture(autouse=True)
def _no_engines(cli: Cli, programs: Path) -> None:
    """What the tests beside these have left there at the moment would be found too."""
    cli.env["PATH"] = str(programs)


@pytest.fixture(autouse=True)
def _no_clouds_and_no_sockets(cli: Cli) -> None:
    """The clouds' SDKs take seconds to load, and nothing here is about them."""
    absent = cli.temp.parent / "absent"
    absent.mkdir()
    for name in ("modal", "daytona"):
        (absent / f"{name}.py").write_text("raise ImportError('it is not here')\n")
    # Nor about the sockets in /tmp that a test beside these may have left for a moment, of a runtime that it killed.
    blind = "from handrail.environments import private_dirs\n\nprivate_dirs._places = list\n"
    (absent / "sitecustomize.py").write_text(blind)
    cli.env["PYTHONPATH"] = str(absent)


def with_backend(cli: Cli, text: str = BROKEN) -> Cli:
    """An installed package brings an environment of its own."""
    package = cli.cwd / "package"
    (package / "forgetful-1.dist-info").mkdir(parents=True)
    (package / "forgetful.py").write_text(text)
    points = "[handrail.environments]\nforgetful = forgetful:Forgetful\n"
    (package / "forgetful-1.dist-info" / "entry_points.txt").write_text(points)
    (package / "forgetful-1.dist-info" / "METADATA").write_text("Name: forgetful\nVersion: 1\n")
    cli.env["PYTHONPATH"] += f":{package}"
    return cli


def test_each_environment_is_listed_with_what_it_lacks(cli: Cli) -> None:
    listed = {row["name"]: row for row in cli("env", "list", "--json", PATH=str(cli.temp)).json}
    assert listed["local"]["configured"]
    assert not listed["local"]["available"]
    assert "bash" in listed["local"]["reason"]
    assert "install it" in listed["local"]["fix"]
    assert "local *" in cli("env", "list").out


def test_an_installed_environment_that_cannot_be_loaded_is_listed_with_the_reason(cli: Cli) -> None:
    listed = with_backend(cli, "import no_such_module\n")("env", "list", "--json").json
    (row,) = [row for row in listed if row["name"] == "forgetful"]
    assert not row["available"]
    assert "no_such_module" in row["reason"]


def test_a_check_tries_an_environment_and_leaves_nothing(cli: Cli) -> None:
    ran = cli("env", "check", "local")
    assert (ran.code, ran.err) == (0, "")
    assert all(line.startswith("✓") for line in ran.out.splitlines())
    promised = {check.name: check.sentence for check in environment_checks()}
    assert promised["background.it_can_be_killed"] in ran.out
    assert len(ran.out.splitlines()) == len(env._BASICS) + 1, "one is no check of the kit any longer"
    assert list(cli.temp.iterdir()) == []
    assert not list((cli.home / "state" / "processes").iterdir())


def test_a_check_can_fail(cli: Cli) -> None:
    ran = with_backend(cli)("env", "check", "forgetful", "--json")
    assert ran.code == 1
    failed = [row["name"] for row in ran.json if row["problem"]]
    assert len(failed) < len(ran.json)
    assert "A function that one command defines can be called in the next." in failed


def test_a_full_check_tries_all_that_a_backend_promises(cli: Cli) -> None:
    broken = BROKEN.replace("return super().execute", "raise OSError").replace(", **options)\n\nclass", ")\n\nclass")
    ran = with_backend(cli, broken)("env", "check", "forgetful", "--full", "--json")
    assert ran.code == 1
    assert {row["name"] for row in ran.json} <= {"It starts.", *(check.sentence for check in environment_checks())}
    assert len(ran.json) > len(environment_checks()) / 2


def test_a_check_of_one_that_does_not_start_says_why(cli: Cli) -> None:
    cli.configure("terminal:\n  cwd: /proc/nowhere\n")
    ran = cli("env", "check", "local")
    assert ran.code == 1
    assert ran.out.startswith("✗ It starts.")
    assert "/proc/nowhere does not exist" in ran.out
    assert len(ran.out.splitlines()) == 2


def test_an_unknown_environment_is_named(cli: Cli) -> None:
    ran = cli("env", "check", "lokal")
    assert ran.code != 0
    assert "unknown environment 'lokal'; did you mean 'local'?" in ran.err


def test_there_is_nothing_to_take_away_from_a_clean_home(cli: Cli) -> None:
    for words in (["--dry-run"], []):
        ran = cli("env", "prune", *words)
        assert (ran.code, ran.out) == (0, "Nothing was left behind.\n")


def old(path: Path) -> Path:
    os.utime(path, (time.time() - 3600, time.time() - 3600))
    return path


def test_what_a_dead_runtime_left_is_taken_away_only_when_it_is_meant(cli: Cli) -> None:
    folder = cli.home / "state" / "processes" / "abandoned"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    (folder / "log.0").write_text("old")
    status = {"survives": True, "code": 0, "boot": "another", "keeper": 1, "keeper_start": 1, "id": "abandoned"}
    (folder / "status").write_text(json.dumps({**status, "minder": 1, "minder_start": 1}))
    demo, made = killed_with_folder("demo", cli.temp), Path(make_folder("demo"))
    living = made.rename(cli.temp / made.name)
    old(folder)
    ran = cli("env", "prune", "--dry-run")
    assert ran.code == 1
    assert [line.removeprefix("to clean up: ").split(" ")[-1] for line in ran.out.splitlines()] == [
        str(folder),
        str(demo),
    ]
    assert folder.exists()
    assert cli("env", "prune").code == 0
    assert not folder.exists()
    assert not demo.exists()
    assert living.exists()
    assert cli("env", "prune", "--dry-run").code == 0


def test_a_process_that_is_in_no_list_is_put_into_one(cli: Cli) -> None:
    script = (
        "from handrail.environments.local_environment import LocalEnvironment\n"
        "with LocalEnvironment('/') as local: print(local.background('sleep 1000', survives=True).pid)\n"
    )
    import subprocess
    import sys

    out = subprocess.run([sys.executable, "-c", script], env=cli.env, capture_output=True, check=True).stdout
    pid = int(out)
    (folder,) = (cli.home / "state" / "processes").iterdir()
    assert cli("env", "prune", "--dry-run").out == "Nothing was left behind.\n"  # it may be on its way into a list
    old(folder)
    assert f"background process {pid} (sleep 1000) is in no table" in cli("env", "prune", "--dry-run").out
    assert cli("ps", "--json").json == []
    assert cli("env", "prune").code == 0
    assert is_running(pid)
    (row,) = cli("ps", "--json").json
    assert row["status"] == "running"
    # The number that holds here; the commands of the agent know it as `pid`.
    assert re.search(rf"^NSpid:.*\t{pid}$", Path(f"/proc/{row['pid']}/status").read_text(), re.MULTILINE)
    assert cli("ps", "kill", row["session_id"]).code == 0
    assert not is_running(pid)


def test_what_an_environment_has_left_is_asked_of_it(cli: Cli) -> None:
    ran = with_backend(cli)("env", "prune", "--dry-run", "--json")
    assert (ran.code, ran.json) == (1, {"found": ["a container"], "problems": []})
