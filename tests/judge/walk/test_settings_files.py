"""Settings that were written in this session are judged when a program that reads them is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.approval.task_disk import HostDisk
from handrail.judge import Assessment, assess

LINES = (Path(__file__).parents[1] / "labelled" / "settings.txt").read_text().splitlines()
ROWS = [line.replace("⏎", "\n").split(" ‖ ") for line in LINES if line[:2] != "# "]
NEW, OLD = 0.0, float("inf")
LOSS = "rm -rf /srv/data"
ASK_ANYWAY = ("gcc", "crontab", "systemctl", "tmux", "terraform", "sqlite3", "pylint", "npx semantic-release")
"""They load a library, publish, change services or jobs, or run a line that is no command, whatever that is."""


def judged(folder: Path, command: str, files: list[str], since: float = NEW) -> Assessment:
    (folder / ".git").mkdir(parents=True)
    for file in files:
        name, _, text = file.partition(": ")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    return assess(command, cwd=str(folder), project=str(folder), disk=HostDisk(since))


def test_settings_of_this_session_are_judged(tmp_path: Path) -> None:
    missed = [
        command
        for number, (command, *files) in enumerate(ROWS)
        if not judged(tmp_path / str(number), command, files).dangerous
    ]
    assert not missed


def test_harmless_settings_ask_nothing(tmp_path: Path) -> None:
    """The same files with a harmless command. Variables and options that make a program load something ask in any case."""
    asked = []
    for number, (command, *files) in enumerate(ROWS):
        harmless = [
            file.replace(LOSS, "echo hello")
            .replace("-rf", "hello")
            .replace("/srv/data", "hello")
            .replace("'rm'", "'echo'")
            for file in files
        ]
        harmless = [file.replace('"rm"', '"echo"').replace(">rm<", ">echo<") for file in harmless]
        asks_anyway = "=" in command.split()[0] or command.startswith(ASK_ANYWAY)
        if judged(tmp_path / str(number), command, harmless).dangerous and not asks_anyway:
            asked.append(command)
    assert not asked


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("npm test", ["deploy.yml: run: rm -rf /srv/data"]),
        ("docker build .", ["Dockerfile: FROM x\nRUN rm -rf /var/lib/apt/lists/*\n"]),
        ("mocha", [".mocharc.json: {}", "clean.js: require('child_process').execSync('rm -rf /srv/data')"]),
        ("tsc -p .", ["src/a.test.js: require('child_process').execFileSync(process.execPath, ['x.js'])"]),
    ],
)
def test_files_that_the_program_does_not_read_ask_nothing(command: str, files: list[str], tmp_path: Path) -> None:
    assert not judged(tmp_path / "w", command, files).findings


def test_settings_that_the_project_has_had_are_not_looked_at(tmp_path: Path) -> None:
    assert not judged(tmp_path / "w", "npx nodemon", ['nodemon.json: {"exec": "rm -rf /srv/data"}'], OLD).findings


def test_a_link_out_of_the_work_tree_is_the_place_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "e").symlink_to("/etc")
    assert judged(tmp_path / "w", "cp x e/cron.d/x", ["x: 1"]).dangerous
    assert not judged(tmp_path / "v", "cp x d/cron.d/x", ["x: 1", "d/y: 1"]).findings


def test_a_script_that_changes_what_it_is_given_is_read_with_its_arguments(tmp_path: Path) -> None:
    script = ["cl.py: import sys, shutil\nshutil.rmtree(sys.argv[1])\n"]
    assert judged(tmp_path / "w", "python3 cl.py /srv/data", script).dangerous
    assert not judged(tmp_path / "v", "python3 cl.py build", script).findings


MARKED = (Path(__file__).parents[1] / "labelled" / "with_files.txt").read_text().splitlines()


@pytest.mark.parametrize("row", [line for line in MARKED if line[:2] != "# "])
def test_what_files_and_inputs_make_of_a_command_is_judged(row: str, tmp_path: Path) -> None:
    command, *files = row[2:].replace("⏎", "\n").replace("⇥", "\t").split(" ‖ ")
    found = judged(tmp_path / "w", command, files)
    assert found.dangerous is (row[0] == "!"), found.findings


def test_a_makefile_that_evaluates_itself_ends(tmp_path: Path) -> None:
    text = (
        "Makefile: define t\n$(eval $(call t))$(eval $(call t))\nendef\n$(eval $(call t))\nall:\n\trm -rf /srv/data\n"
    )
    assert judged(tmp_path / "w", "make", [text]).dangerous
