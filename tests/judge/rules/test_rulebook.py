"""A theme's file is read strictly: what cannot be read is an error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.judge.rules import Effect, Rule
from handrail.judge.rules.rulebook import read_rules
from handrail.judge.rules.usage import Usage
from handrail.judge.values.assessment import Severity
from handrail.judge.values.data_files import DataFileError

SOUND = """\
# What the example is about.
$VERBS:
  delete|destroy|
  # also this
    purge

[a.b]
severity: block
why: it says: never
effect: remote
uses:
  frob ... $VERBS|wipe
  frob db|
    queue drop

match:
  frob "$X" | cat |
  frob \\u{200b}x
not_match:
  frob ls

[a.c]
severity: note
why: x
match:
  x
not_match:
  y
"""


def _read(folder: Path, text: str) -> list[Rule]:
    path = folder / "x.rules"
    path.write_text(text, "utf-8")
    return read_rules(path)


def test_every_field_is_read(tmp_path: Path) -> None:
    uses = ("frob ... delete|destroy|purge|wipe", "frob db|queue drop")
    assert _read(tmp_path, SOUND) == [
        Rule(
            "a.b",
            Severity.BLOCK,
            "it says: never",
            uses,
            ('frob "$X" | cat |', "frob \u200bx"),
            ("frob ls",),
            Effect.REMOTE,
        ),
        Rule("a.c", Severity.NOTE, "x", (), ("x",), ("y",), Effect.MACHINE),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("severity: block", "severity: bad", "line 8: unknown severity 'bad'; known: block, ask, note"),
        ("severity: block", "# none", "line 7: unknown severity ''"),
        ("effect: remote", "effect: far", "line 10: unknown effect 'far'; known: machine, remote"),
        ("effect: remote", "efect: remote", "line 10: unknown key 'efect'; known: severity, why"),
        ("why: it says: never", "why:", "line 7: rule 'a.b': say why"),
        ("$VERBS|wipe", "$WORDS|wipe", "line 11: unknown list '$WORDS' in 'frob ... $WORDS|wipe'"),
        ("    queue drop\n", "\n", "line 11: 'frob db|' ends with '|', and nothing follows"),
        ("  frob ls\n", "", "line 7: rule 'a.b': give examples"),
        ("[a.b]\n", "", "line 7: 'severity' is before the first rule"),
        ("[a.b]", "[B]", "line 7: rule 'B': an id is"),
        ("    purge", "", "line 2: 'delete|destroy|' ends with '|', and nothing follows"),
        ("[a.b]", "$MORE:\n[a.b]", "line 7: '$MORE' is before the first rule, and not a list"),
        ("[a.b]", "$MORE:\n  a\n  b\n[a.b]", "line 7: '$MORE' is before the first rule, and not a list"),
        ("[a.b]", "$A B: x\n[a.b]", "line 7: '$A B' is before the first rule, and not a list"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert SOUND.count(old) >= 1
    with pytest.raises(DataFileError) as caught:
        _read(tmp_path, SOUND.replace(old, new, 1))
    assert str(caught.value).startswith(f"x.rules, {message}")


def test_every_use_of_the_themes_can_be_read() -> None:
    folder = Path(__file__).parents[3] / "src/handrail/judge/rules/themes"
    uses = [use for path in folder.glob("*.rules") for rule in read_rules(path) for use in rule.uses]
    assert all(Usage(use) for use in uses)
    assert len(uses) > 1000
