"""A sandbox leaves the interpreter and the package in sight, wherever they lie, and nothing else."""

from __future__ import annotations

import json
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
import json, sys
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.sandbox import Mechanism, SandboxPolicy
policy = SandboxPolicy(mechanism=Mechanism(sys.argv[1]))
with LocalEnvironment(sys.argv[2], sandbox=policy) as local:
    results = [local.execute(command, timeout=60) for command in sys.argv[3:]]
json.dump([(result.exit_code, result.output.head.decode()) for result in results], sys.stdout)
"""

MECHANISMS = [
    mechanism
    for mechanism in Mechanism
    if mechanism is not Mechanism.LANDLOCK or landlock.abi() >= landlock.OLDEST_NETWORK_ABI
]


@pytest.fixture(scope="module", params=["/tmp", "/run", "/dev/shm"])
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
    real = Path(os.path.realpath(sys.executable))
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(real)
    # Debian's own packages would look for ours, of which those below a hidden place cannot be read.
    (folder / "pyvenv.cfg").write_text(f"home = {real.parent}\ninclude-system-site-packages = false\n")
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    (site / "handrail").symlink_to(PACKAGE)
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in DEPENDENCIES))
    return folder / "bin" / "python"


def _in_sandbox(
    python: Path, mechanism: Mechanism, work: Path, *commands: str, **variables: str
) -> list[tuple[int, str]]:
    """The exit code and the output of each command."""
    env = {**os.environ, **variables}
    ran = subprocess.run(
        [python, "-c", CODE, mechanism.value, work, *commands], env=env, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return [(code, output) for code, output in json.loads(ran.stdout)]


@pytest.fixture(scope="module")
def hidden_python(hidden: Path) -> Path:
    return _environment_at(hidden / "environment")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_interpreter_in_a_hidden_place_runs_in_the_sandbox(
    hidden: Path, hidden_python: Path, outside: Path, mechanism: Mechanism
) -> None:
    runs = f"{shlex.quote(str(hidden_python))} -c 'import sys, handrail; print(sys.prefix)'"
    harms = f"touch '{hidden}/environment/bin/more' || rm '{hidden_python}'"
    ran, harmed = _in_sandbox(hidden_python, mechanism, outside, runs, harms)
    assert ran == (0, f"{hidden}/environment\n")
    assert harmed[0] != 0
    assert not (hidden / "environment" / "bin" / "more").exists()
    assert hidden_python.exists()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_lies_beside_the_interpreter_is_hidden_as_before(outside: Path, mechanism: Mechanism) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        python = _environment_at(Path(folder, "environment"))
        Path(folder, "secret").write_text("of somebody else")
        [(code, output)] = _in_sandbox(python, mechanism, outside, f"cat {folder}/secret")
    assert code != 0
    assert "somebody" not in output


def test_a_link_in_a_hidden_place_leads_to_the_interpreter(hidden: Path, outside: Path) -> None:
    real = _environment_at(outside / "environment")
    first, second = hidden / "links" / "python", hidden / "links" / "folder" / "python"
    second.parent.mkdir(parents=True)
    first.symlink_to("folder/python")
    second.symlink_to(os.path.realpath(sys.executable))
    real.unlink()
    real.symlink_to(first)
    code = "import sys; print(sys.prefix)"
    looks = f"'{real}' -c '{code}'; ls '{hidden}/links'"
    assert _in_sandbox(real, Mechanism.NAMESPACES, outside, looks) == [(0, f"{outside}/environment\nfolder\npython\n")]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_is_hidden_inside_of_the_interpreters_folder_stays_hidden(
    hidden: Path, hidden_python: Path, outside: Path, mechanism: Mechanism
) -> None:
    environment = hidden / "environment"
    for home in (environment / "home", environment):  # also if it is that folder itself
        home.mkdir(exist_ok=True)
        (home / "config.yaml").write_text("command_allowlist: []")
        look = f"'{hidden_python}' -c 'print(1)'; cat '{home}/config.yaml'"
        [(code, output)] = _in_sandbox(hidden_python, mechanism, outside, look, HANDRAIL_HOME=str(home))
        assert output.splitlines()[0] == "1", home
        assert code != 0, home
        assert "command_allowlist" not in output, home


def test_nothing_is_opened_where_nothing_is_hidden() -> None:
    assert sandbox.files_below(()) == []
    assert sandbox.links_below(()) == {}
