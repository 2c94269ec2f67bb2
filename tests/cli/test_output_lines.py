"""How prose is set at a terminal, and how commands are named in messages."""

from __future__ import annotations

import io
import sys

import pytest

from handrail.cli.output import emit_table, fitted, say


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_prose_breaks_between_words_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    text = "model: none is configured\n    fix: set HANDRAIL_MODEL=gpt-5"
    assert fitted(text, _Tty()).splitlines() == [
        "model: none is",
        "configured",
        "    fix: set",
        "    HANDRAIL_MODEL=gpt-5",
    ]
    assert fitted(text, io.StringIO()) == text


def test_a_message_names_commands_as_they_have_to_be_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["venv/bin/handrail"])
    say("no model is configured; run `handrail setup`")
    assert capsys.readouterr().err == "handrail: no model is configured; run `venv/bin/handrail setup`\n"


def test_messages_and_empty_lists_break_between_words_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr("sys.stderr", _Tty())
    monkeypatch.setattr("sys.stdout", _Tty())
    monkeypatch.setattr("sys.argv", ["venv/bin/handrail"])
    say("nothing was found in this folder")
    emit_table(("ID",), [], empty="No sessions yet. `handrail chat` starts one.")
    assert sys.stderr.getvalue() == "handrail: nothing was\nfound in this folder\n"  # type: ignore[attr-defined]
    assert sys.stdout.getvalue() == "No sessions yet.\n`venv/bin/handrail chat`\nstarts one.\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize("wide", [1, 2])
def test_a_cell_of_several_words_goes_below_its_row_where_it_would_be_broken(
    monkeypatch: pytest.MonkeyPatch, wide: int
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout", _Tty())
    why = "fewer than two models are configured for it; list them under media.mixture_models in config.yaml"
    row = ["homeassistant", "mixture_of_agents"]
    row.insert(wide, why)
    emit_table(("TOOLSET", "TOOL", "STATUS"), [row], wide=wide)
    lines = sys.stdout.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[1].split() == ["homeassistant", "mixture_of_agents"]
    assert [each.startswith("    ") for each in lines[2:]] == [True, True]
    assert " ".join(" ".join(lines[2:]).split()) == why
