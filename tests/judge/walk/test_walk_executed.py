"""What a real shell runs is what the judge has seen: no program starts that it neither followed nor asked about."""

from __future__ import annotations

from pathlib import Path

from handrail.judge import assess

from ...fuzz.needs import needs
from ...fuzz.respelling.sandbox import programs_run

LINES = (Path(__file__).parents[1] / "labelled" / "executed.txt").read_text().splitlines()
SCRIPTS = [line.replace("⏎", "\n") for line in LINES if line[:2] != "# "]
MIN_RAN = 150
"""Most of them reach the stand-in on any machine: else the sandbox is broken, and the test shows nothing."""


def test_nothing_runs_unseen_and_unasked(tmp_path: Path) -> None:
    needs("bwrap", "apt-get install bubblewrap")
    ran = programs_run(SCRIPTS, tmp_path, ["rm"])
    started = [script for script, lines in zip(SCRIPTS, ran, strict=True) if any("/srv/data" in line for line in lines)]
    assert len(started) >= MIN_RAN
    assert not [script for script in started if not assess(script).dangerous]
