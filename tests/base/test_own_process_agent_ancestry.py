"""What an agent's tools start knows that it is inside, however it tries not to; a person's shell is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.base.own_process import MARKER, started_by_agent
from handrail.environments.local_environment import LocalEnvironment
from tests.support import PYTHON, wait_until

ASKS = f"{PYTHON} -c 'from handrail.base.own_process import started_by_agent; print(started_by_agent())'"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[LocalEnvironment]:
    environment = LocalEnvironment(str(tmp_path))
    yield environment
    environment.close()


def test_a_person_is_not_inside() -> None:
    assert started_by_agent() is False


def test_the_marker_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARKER, "1")
    assert started_by_agent()


@pytest.mark.parametrize(
    "way",
    [
        "{}",
        "unset HANDRAIL_INSIDE; {}",
        "env -i {}",
        'env -i bash -c "exec env -u HANDRAIL_INSIDE {}"',
        "setsid -w {}",
        "(setsid {} &) ; wait",
        "nohup {} 2>/dev/null",
        'script -qec "{}" /dev/null',
    ],
)
def test_no_way_of_starting_it_leads_outside(shell: LocalEnvironment, tmp_path: Path, way: str) -> None:
    asks = tmp_path / "asks"
    asks.write_text(f"#!/bin/sh\n{ASKS} > {tmp_path}/answer.part; mv {tmp_path}/answer.part {tmp_path}/answer\n")
    asks.chmod(0o755)
    shell.execute(way.format(asks), timeout=60)
    wait_until((tmp_path / "answer").exists, timeout=60)
    assert (tmp_path / "answer").read_text() == "True\n"


def test_one_that_lost_its_parents_is_still_inside(shell: LocalEnvironment, tmp_path: Path) -> None:
    """Forked twice, in a session of its own, with nothing of its environment left."""
    script = tmp_path / "daemon.py"
    script.write_text(
        "import os, sys\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        f"os.execve(sys.executable, [sys.executable, '-c', 'import os, time\\n"
        "from handrail.base.own_process import started_by_agent\\n"
        f'open("{tmp_path}/part", "w").write(str(started_by_agent())); os.rename("{tmp_path}/part", "{tmp_path}/answer")'
        "'], {})\n"
    )
    shell.execute(f"{PYTHON} {script}", timeout=60)
    wait_until((tmp_path / "answer").exists, timeout=60)
    assert (tmp_path / "answer").read_text() == "True"


def test_another_program_that_we_start_is_outside() -> None:
    env = {name: value for name, value in os.environ.items() if name != MARKER}
    command = [
        sys.executable,
        "-c",
        "from handrail.base.own_process import started_by_agent; print(started_by_agent())",
    ]
    assert subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout == "False\n"
