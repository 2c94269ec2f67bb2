"""Judge a shell command before it runs: `assess(command)` says what would run, what is dangerous in it and what is unknown.

Nothing is ever run, files are read only through the `Disk` that a caller hands in, and nothing of Handrail but `errors` and
`base.suggest` is imported. From the ground up:

- `values`: what a word is worth, classes of paths, and the `Assessment` that comes out;
- `grammar`: the shell's syntax as a tree, SQL statements, and where nested text comes from;
- `programs`: tables of programs that run others, of shells, interpreters and containers;
- `rules`: what is dangerous, as data: one file per theme in `rules/themes`, and the rules that users add (`rules.custom`);
- `languages`: programs in Python, Perl, JavaScript and so on that a command holds;
- `scripts`: makefiles, package.json and other files in which projects keep what is run;
- `walk`: follows the tree as the shell would, expands words, and shows every command line to the rules;
- `assessor`: puts these together.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "Assessment", "Effect", "Finding", "Reach", "Rule", "Rulebook", "Segment", "Severity", "Unknown",
    "Verdict", "assess", "detect_dangerous_command",
]  # fmt: skip
_HOMES = {
    "assessor": ("assess", "detect_dangerous_command"),
    "rules": ("Effect", "Rule", "Rulebook"),
    "values.assessment": ("Assessment", "Finding", "Reach", "Segment", "Severity", "Unknown", "Verdict"),
}

if TYPE_CHECKING:
    from .assessor import assess, detect_dangerous_command
    from .rules import Effect, Rule, Rulebook
    from .values.assessment import Assessment, Finding, Reach, Segment, Severity, Unknown, Verdict


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f".{home}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
