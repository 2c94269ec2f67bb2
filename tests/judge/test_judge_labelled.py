"""How many labelled commands are judged right: our own sets, by families, written down apart from the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from handrail.judge import assess
from handrail.judge.values.assessment import Verdict

FOLDER = Path(__file__).parent / "labelled"
NAMED = {
    "recursive_delete", "fs_format", "sql", "config_overwrite", "service", "rce", "fork_bomb", "process_kill",
}  # fmt: skip


def rows(name: str) -> Iterator[tuple[str, str]]:
    """The commands of a set, each with its family."""
    family = ""
    for line in (FOLDER / f"{name}.txt").read_text().splitlines():
        if line.startswith("## "):
            family = line[3:]
        elif line and not (line.startswith("# ") and not family):
            yield family, line.replace("⏎", "\n")


def test_dangerous_commands_of_every_family_are_found() -> None:
    found: dict[str, list[bool]] = defaultdict(list)
    missed = []
    for family, command in rows("dangerous"):
        dangerous = assess(command).dangerous
        found[family].append(dangerous)
        if not dangerous:
            missed.append((family, command))
    shares = {family: sum(judged) / len(judged) for family, judged in found.items()}
    named = [judged for family, judgements in found.items() if family in NAMED for judged in judgements]
    everything = [judged for judgements in found.values() for judged in judgements]
    assert sum(named) / len(named) >= 0.98, missed
    assert sum(everything) / len(everything) >= 0.97, missed
    assert sum(shares.values()) / len(shares) >= 0.96, missed
    assert min(shares.values()) >= 0.9, missed


def test_harmless_commands_run_without_a_question() -> None:
    commands = [command for _, command in rows("harmless")]
    asked = [command for command in commands if assess(command).verdict is not Verdict.ALLOW]
    assert len(asked) / len(commands) <= 0.01, asked


def test_destructive_uses_of_rare_tools_are_found() -> None:
    commands = [command for _, command in rows("rare")]
    missed = [command for command in commands if not assess(command).dangerous]
    assert len(missed) / len(commands) <= 0.15, missed
