"""What is dangerous, as data: rules by theme, each with the uses of programs it is about and its examples.

`Rulebook.findings(command)` judges one resolved command line; `on_write` and `on_read` judge redirections; `rule(id)` returns
a rule that the walk raises itself (`dynamic.command`, `rce.download_to_shell`, ...). Nothing is loaded before the first use.
"""

from .command import Command
from .rulebook import Effect, Match, Rule, Rulebook, builtin, on_assign, on_read, on_search, on_write, rule

__all__ = [
    "Command", "Effect", "Match", "Rule", "Rulebook", "builtin", "on_assign", "on_read", "on_search", "on_write", "rule",
]  # fmt: skip
