"""A sandbox leaves the interpreter and the package in sight, wherever they lie, and nothing else."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import handrail
from handrail.environments import sandbox
from handrail.environments.sandbox import Mechanism
from handrail.environments.shell_host import landlock

PACKAGE = Path(handrail.__file__).parent
DEPENDENCIES = [path for path in sys.path if path.endswith("-packages")]

CODE = """
import sys
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.sandbox import Mechanism, SandboxPolicy
policy = SandboxPolicy(mechanism=Mechanism(sys.argv[1]))
with LocalEnvironment(sys.argv[2], sandbox=policy) as local:
    result = local.execute(sys.argv[3], timeout=60)
sys.stdout.buffer.write(result.output.head)
sys.exit(result.exit_code)
"""

MECHANISMS = [
    mechanism
    for mechanism in Mechanism
    if mechanism is not Mechanism.LANDLOCK or landlock.abi() >= landlock.OLDEST_NETWORK_ABI
]


@pytest.fixture(params=["/tmp", "/run", "/dev/shm"])
def hidden(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder in a place that a sandbox has its own of, with a space and letters beyond ASCII in its name."""
    if not os.access(request.param, os.W_OK):
        pytest.skip(f"{request.param} is not writable for this user")
    with tempfile.TemporaryDirectory(prefix="ein Ordner für Żółw-", dir=request.param) as folder:
        yield Path(folder)


@pytest.fixture
def outside() -> Iterator[Path]:
    """A working directory in a place that no sandbox hides."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def _environment_at(folder: Path) -> Path:
    """The Python of a virtual environment there, with this package and what it needs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    (site / "handrail").symlink_to(PACKAGE)
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in DEPENDENCIES))
    return folder / "bin" / "python"


def _in_sandbox(
    python: Path, mechanism: Mechanism, command: str, work: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-c", CODE, mechanism.value, work, command],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_interpreter_in_a_hidden_place_runs_in_the_sandbox(
    hidden: Path, outside: Path, mechanism: Mechanism
) -> None:
    python = _environment_at(hidden / "environment")
    code = "import sys, handrail; print(sys.prefix)"
    ran = _in_sandbox(python, mechanism, f"{shlex.quote(str(python))} -c '{code}'", outside)
    assert (ran.stdout, ran.stderr) == (f"{hidden}/environment\n", "")
    harm = f"touch '{hidden}/environment/bin/more' || rm '{python}'"
    assert _in_sandbox(python, mechanism, harm, outside).returncode != 0
    assert not (hidden / "environment" / "bin" / "more").exists()
    assert python.exists()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_lies_beside_the_interpreter_is_hidden_as_before(outside: Path, mechanism: Mechanism) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        python = _environment_at(Path(folder, "environment"))
        Path(folder, "secret").write_text("of somebody else")
        ran = _in_sandbox(python, mechanism, f"cat {folder}/secret", outside)
    assert ran.returncode != 0
    assert "somebody" not in ran.stdout


def test_a_link_in_a_hidden_place_leads_to_the_interpreter(hidden: Path, outside: Path) -> None:
    real = _environment_at(outside / "environment")
    first, second = hidden / "python", hidden / "folder" / "python"
    second.parent.mkdir()
    first.symlink_to("folder/python")
    second.symlink_to(os.path.realpath(sys.executable))
    (outside / "environment" / "bin" / "python").unlink()
    real.symlink_to(first)
    code = "import sys; print(sys.prefix)"
    ran = _in_sandbox(real, Mechanism.NAMESPACES, f"'{real}' -c '{code}'; ls '{hidden}'", outside)
    assert (ran.stdout, ran.stderr) == (f"{outside}/environment\nfolder\npython\n", "")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_is_hidden_inside_of_the_interpreters_folder_stays_hidden(
    hidden: Path, outside: Path, mechanism: Mechanism
) -> None:
    python = _environment_at(hidden)
    for home in (hidden / "home", hidden):  # also if it is that folder itself
        home.mkdir(exist_ok=True)
        (home / "config.yaml").write_text("command_allowlist: []")
        look = f"'{python}' -c 'print(1)'; cat '{home}/config.yaml'"
        ran = _in_sandbox(python, mechanism, look, outside, HANDRAIL_HOME=str(home))
        assert (ran.stdout.splitlines()[0], ran.stderr) == ("1", ""), home
        assert ran.returncode != 0, home
        assert "command_allowlist" not in ran.stdout, home


def test_nothing_is_opened_where_nothing_is_hidden() -> None:
    assert sandbox.files_below(()) == []
    assert sandbox.links_below(()) == {}
