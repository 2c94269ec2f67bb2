"""The long tail: a destructive word where a program without rules of its own has its sub-command or option."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "tail.destructive",
        ASK,
        "a destructive sub-command or option of a program without rules of its own",
        uses=(),
        match=("lando-x destroy", "pueue-x group delete x", "mytool --uninstall", "appctl db drop"),
        spare=(
            "grep delete a.txt",
            "mkdir delete",
            "foo list",
            "foo show --delete-time",
            "foo --format json",
            "make destroy",
        ),
    ),
)
