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
