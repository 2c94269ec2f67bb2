"""What a command runs is read: a script that was written before is judged as if its text were in the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.approval.task_disk import HostDisk
from handrail.judge import assess
from handrail.judge.values.assessment import Assessment

from .launchers import OTHERS, PAYLOADS, PYTHON, SHELL, Launcher

EVERY = [*SHELL, *PYTHON, *OTHERS]
NEW, OLD = 0.0, float("inf")
# Only sources of this session are read for these: a compiled program that the project has had before is not judged.
ONLY_NEW = {"c", "go", "rust", "groovy"}


def judged(folder: Path, launcher: Launcher, payload: str, since: float) -> Assessment:
    for name, text in launcher.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace("@@", payload.replace('"', '\\"') if path.suffix == ".json" else payload)
        path.write_text(text)
        path.chmod(0o755)
    return assess(launcher.command, cwd=str(folder), project=str(folder), disk=HostDisk(since))


def cases() -> Iterator[object]:
    for number, launcher in enumerate(EVERY):
        for place, (dangerous, harmless) in enumerate(PAYLOADS[launcher.language]):
            yield pytest.param(launcher, dangerous, harmless, id=f"{number}-{launcher.command[:40]}-{place}")


@pytest.mark.parametrize(("launcher", "dangerous", "harmless"), list(cases()))
def test_what_was_written_is_judged_when_it_is_run(
    launcher: Launcher, dangerous: str, harmless: str, tmp_path: Path
) -> None:
    assert judged(tmp_path, launcher, dangerous, NEW).dangerous
    if launcher.language not in ONLY_NEW:
        assert judged(tmp_path, launcher, dangerous, OLD).dangerous
    for since in (NEW, OLD):
        twin = judged(tmp_path, launcher, harmless, since)
        assert not twin.dangerous, [(finding.rule, finding.argv) for finding in twin.findings]


WRITTEN = {
    "make": ("Makefile", "all:\n\t@{}\n"),
    "npm install": ("package.json", '{{"scripts": {{"postinstall": "{}"}}}}\n'),
    "pytest -q": ("conftest.py", "import os\nos.system('{}')\n"),
    "pip install .": ("setup.py", "import os\nos.system('{}')\n"),
    "ansible-playbook pb.yml": ("pb.yml", "- tasks:\n  - shell: {}\n"),
    "sh /tmp/k": ("/dev/null", "E\ndd if=/dev/stdin of=/tmp/k <<'E'\n{}\n"),
}


@pytest.mark.parametrize("command", WRITTEN)
@pytest.mark.parametrize("before", ["", "mkdir -p d && cd d && "])
def test_what_the_command_itself_has_written_is_judged_without_a_disk_too(command: str, before: str) -> None:
    name, text = WRITTEN[command]
    for payload, dangerous in (("rm -rf ~/work", True), ("echo done", False)):
        script = f"{before}cat > {name} <<'E'\n{text.format(payload)}E\n{command}"
        assert assess(script).dangerous is dangerous, script


def test_a_program_about_which_nothing_is_known_may_run_what_was_written(tmp_path: Path) -> None:
    for payload, dangerous in (("rm -rf ~/work", True), ("ls -l", False)):
        (tmp_path / "x.zork").write_text(f'system("{payload}")\n')
        judgement = assess("zork x.zork", cwd=str(tmp_path), project=str(tmp_path), disk=HostDisk(NEW))
        assert judgement.dangerous is dangerous
        assert not assess("zork x.zork", cwd=str(tmp_path), project=str(tmp_path), disk=HostDisk(OLD)).dangerous


def test_make_computes_its_variables_when_it_only_prints(tmp_path: Path) -> None:
    for payload, dangerous in (("rm -rf ~/work", True), ("date", False)):
        (tmp_path / "Makefile").write_text(f"X := $(shell {payload})\nall:\n\trm -rf ~/other\n")
        for command in ("make -n", "make --dry-run all"):
            assert assess(command, cwd=str(tmp_path), project=str(tmp_path), disk=HostDisk(NEW)).dangerous is dangerous


def test_scripts_that_a_list_names_ask(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("print(1)\n")
    for command in ("ls *.py | xargs -n1 python3", "cat list | xargs -n1 sh"):
        assert assess(command, cwd=str(tmp_path), project=str(tmp_path), disk=HostDisk(NEW)).dangerous
