"""The conformance kit passes what works, and every one of its checks can fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.environments.base import CommandResult, Environment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import proc
from handrail.testing.environment_conformance import (
    Check,
    Conformance,
    ConformanceFailure,
    NotApplicable,
    Place,
    Verdict,
    check_environment,
    environment_checks,
)
from handrail.testing.environment_conformance.place import check

from ..support import takes_less_than, wait_until
from .saboteurs import SABOTEURS, STRAYS

PATIENCE_SECONDS = 3.0
BY_NAME = {one.name: one for one in environment_checks()}


@pytest.fixture(autouse=True)
def _no_strays() -> Iterator[None]:
    yield
    while STRAYS:
        stray = STRAYS.pop()
        stray.kill()
        stray.wait()


def lose(environment: Environment) -> None:
    """Kill what looks after a local shell, and what looks after that."""
    assert isinstance(environment, LocalEnvironment)
    supervisor = environment._link.shell.connection.supervisor  # type: ignore[union-attr]
    stat = proc.stat_of(supervisor)
    assert stat is not None
    os.kill(stat.parent, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)


@pytest.mark.parametrize(
    ("name", "saboteur"), SABOTEURS, ids=[f"{name}-{saboteur.__name__}" for name, saboteur in SABOTEURS]
)
def test_a_check_fails_for_what_it_is_about(name: str, saboteur: type[LocalEnvironment], tmp_path: Path) -> None:
    def make() -> LocalEnvironment:
        return saboteur(str(tmp_path), processes_dir=str(tmp_path / "processes"))

    subject = Conformance(make, break_connection=lose, patience=PATIENCE_SECONDS)
    with subject, pytest.raises(ConformanceFailure) as caught:
        subject.check(BY_NAME[name])
    assert "does not come to an end" not in str(caught.value)


def test_a_command_that_has_failed_is_not_waited_for(tmp_path: Path) -> None:
    class Broken(LocalEnvironment):
        def execute(self, command: str, **_: object) -> CommandResult:
            raise OSError(command)

    subject = Conformance(lambda: Broken(str(tmp_path)), patience=600)
    with subject, takes_less_than(60), pytest.raises(ConformanceFailure, match="printed nothing while it ran"):
        subject.check(BY_NAME["leftovers.closing_ends_the_command_that_runs"])


def test_every_check_has_somebody_who_fails_it() -> None:
    assert {name for name, _ in SABOTEURS} == set(BY_NAME)


def test_every_check_says_what_it_is_about() -> None:
    for one in environment_checks():
        assert len(one.sentence) > 20
        assert one.sentence.endswith(".")
    assert any(one.quick for one in environment_checks())


@check()
def passes(place: Place) -> None:
    """It passes."""
    place.works()


@check()
def fails(place: Place) -> None:
    """It fails."""
    place.says("echo this", "that\n")


@check()
def breaks_down(place: Place) -> None:
    """It raises something of its own."""
    place.env.files.read("/nothing", max_bytes=1)


@check()
def is_for_others(place: Place) -> None:
    """It is about what this environment does not have."""
    raise NotApplicable("no wings")


def test_a_report_says_what_is_wrong_and_why(tmp_path: Path) -> None:
    heard: list[Verdict] = []
    report = check_environment(
        lambda: LocalEnvironment(str(tmp_path)),
        [passes, fails, breaks_down, is_for_others],
        on_outcome=lambda outcome: heard.append(outcome.verdict),
    )
    assert heard == [Verdict.PASSED, Verdict.FAILED, Verdict.FAILED, Verdict.DOES_NOT_APPLY]
    assert not report.passed
    assert [one.check.name for one in report.failed] == [
        "test_environment_conformance.fails",
        "test_environment_conformance.breaks_down",
    ]
    lines = str(report).splitlines()
    assert lines[0].startswith("local: 4 checks: 1 passed, 2 failed, 1 does not apply (")
    assert lines[1] == "failed         test_environment_conformance.fails: It fails."
    assert lines[2].strip() == "output of `echo this`: expected 'that\\n', found 'this\\n'"
    assert lines[4].strip().startswith("FileMissing: cannot read /nothing")
    assert lines[6].strip() == "no wings"


def test_nothing_checked_is_not_passed(tmp_path: Path) -> None:
    def make() -> LocalEnvironment:
        return LocalEnvironment(str(tmp_path))

    assert check_environment(make, [passes]).passed
    assert not check_environment(make, []).passed
    assert not check_environment(make, [is_for_others]).passed


def test_an_environment_that_cannot_be_made_fails_and_raises_nothing_else(tmp_path: Path) -> None:
    report = check_environment(lambda: LocalEnvironment(str(tmp_path / "nowhere")), [passes, passes])
    assert [one.verdict for one in report.outcomes] == [Verdict.FAILED] * 2
    assert "does not exist" in report.outcomes[0].message


def test_an_environment_that_hangs_fails_and_is_closed_and_the_others_are_still_checked(
    tmp_path: Path, held: threading.Event
) -> None:
    made: list[LocalEnvironment] = []

    def make() -> LocalEnvironment:
        made.append(LocalEnvironment(str(tmp_path)))
        return made[-1]

    @check()
    def hangs(place: Place) -> None:
        """It never ends."""
        held.wait()

    report = check_environment(make, [hangs, passes], patience=1.5)
    assert [one.verdict for one in report.outcomes] == [Verdict.FAILED, Verdict.PASSED]
    assert "it does not end within" in report.outcomes[0].message
    wait_until(lambda: made[0]._is_closed)


def test_an_environment_is_shared_until_something_fails(tmp_path: Path) -> None:
    made: list[LocalEnvironment] = []

    def make() -> LocalEnvironment:
        made.append(LocalEnvironment(str(tmp_path)))
        return made[-1]

    with Conformance(make) as subject:
        subject.run([passes, passes, is_for_others, passes])
        assert len(made) == 1
        subject.run([fails, passes])
        assert len(made) == 2


def test_what_does_not_apply_is_skipped_by_test_runners(tmp_path: Path) -> None:
    with Conformance(lambda: LocalEnvironment(str(tmp_path))) as subject, pytest.raises(unittest.SkipTest):
        subject.check(is_for_others)


def test_a_folder_made_for_a_check_is_taken_away(tmp_path: Path) -> None:
    folders: list[str] = []

    @check(fresh=True)
    def closes(place: Place) -> None:
        """It closes its environment."""
        folders.append(place.folder)
        place.env.close()

    @check()
    def goes_there(place: Place) -> None:
        """It stays in its folder."""
        folders.append(place.folder)
        place.run(f"cd {place.folder}")

    assert check_environment(lambda: LocalEnvironment(str(tmp_path)), [closes, goes_there]).passed
    assert len(folders) == 2
    assert not any(map(os.path.exists, folders))


def test_the_kit_needs_no_pytest(tmp_path: Path) -> None:
    code = """
import sys
from handrail.testing.environment_conformance import check_environment, environment_checks
from handrail.environments.local_environment import LocalEnvironment
chosen = [one for one in environment_checks() if "codes" in one.name]
report = check_environment(lambda: LocalEnvironment(sys.argv[1]), chosen)
print(report)
assert report.passed and "pytest" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_a_check_is_known_by_its_name() -> None:
    assert str(passes) == "test_environment_conformance.passes"
    assert isinstance(passes, Check)
