"""How many labelled commands are judged right: our own sets, by families, written down apart from the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

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


def families(name: str) -> list[tuple[str, str]]:
    return list(dict.fromkeys((name, family) for family, _ in rows(name)))


@pytest.mark.parametrize(("name", "family"), [*families("values_asked"), *families("adversarial_asked")])
def test_what_changes_before_it_runs_or_is_run_by_a_feature_is_asked_about(name: str, family: str) -> None:
    missed = [command for found, command in rows(name) if found == family and not assess(command).dangerous]
    assert not missed


@pytest.mark.parametrize(("name", "family"), [*families("values_pass"), *families("adversarial_pass")])
def test_their_harmless_twins_run_without_a_question(name: str, family: str) -> None:
    asked = [command for found, command in rows(name) if found == family and assess(command).dangerous]
    assert not asked


def _shares(name: str) -> tuple[dict[str, float], list[tuple[str, str]]]:
    """The share of each family that is asked about, and the commands that are not."""
    asked: dict[str, list[bool]] = defaultdict(list)
    passed = []
    for family, command in rows(name):
        asked[family].append(assess(command).dangerous)
        if not asked[family][-1]:
            passed.append((family, command))
    return {family: sum(judged) / len(judged) for family, judged in asked.items()}, passed


def test_losses_without_rm_and_respelled_commands_are_found() -> None:
    for name in ("everyday_loss", "respelled"):
        commands = list(rows(name))
        _, passed = _shares(name)
        assert len(passed) / len(commands) <= 0.02, passed


def test_commands_that_only_look_like_them_run_without_a_question() -> None:
    asked = [command for _, command in rows("scary") if assess(command).dangerous]
    assert len(asked) <= 1, asked


def test_programs_used_against_their_purpose_are_found() -> None:
    shares, passed = _shares("living_off_the_land")
    for family in ("write", "upload", "download", "network shell"):
        assert shares[family] >= 0.95, [command for found, command in passed if found == family]
    assert shares["read"] >= 0.95, passed
    assert shares["shell"] >= 0.9, passed
    assert shares["harmless"] <= 0.01
    programs = {command.removeprefix("sudo ").split()[0] for family, command in rows("living_off_the_land")}
    assert len(programs) >= 250
