"""What is known about programs that run others, as tables in files beside this one: a new program is one line there.

`wrapper_table` (they run a program given on their own command line), `container_table` (they run it somewhere else, behind a
sub-command), `interpreter_table` (shells and languages; variables and options that hold a command) and `data_programs`.
"""

from __future__ import annotations

from ..values.data_files import read_records, read_tables
from .wrapper_options import Container, Wrapper

WRAPPERS = read_records(read_tables(__file__, "wrapper_table")[""], Wrapper)
TERMINALS = frozenset("alacritty foot gnome-terminal kitty konsole wezterm x-terminal-emulator xterm".split())
"""Terminals run what follows `-e`, `-x` or `--`."""
_CONTAINERS = read_tables(__file__, "container_table")
CONTAINERS = read_records(_CONTAINERS["containers"], Container)
REMOTE: dict[str, tuple[str, int]] = {name: (text[2:], int(text[:1])) for name, text in _CONTAINERS["remote"].items()}
"""Programs that pass their words to a shell on another machine: options with a value, operands before the words."""
DATA_PROGRAMS = frozenset(" ".join(read_tables(__file__, "data_programs")[""].values()).split())
"""Programs whose operands are data, files or free text: a destructive word there is not a sub-command."""
_INTERPRETERS = read_tables(__file__, "interpreter_table")
SHELLS = frozenset(_INTERPRETERS[""]["shells"].split())
LANGUAGES = {name: language for language, names in _INTERPRETERS["languages"].items() for name in names.split()}
"""Interpreters by their name without a version, and the language that they read."""
CODE_OPTIONS = _INTERPRETERS["code options"]
"""Options whose value is a program in that language."""
VALUE_LETTERS = _INTERPRETERS["value letters"]
"""Other options of the interpreters that take a value."""
TEXT_OPTIONS = _INTERPRETERS["text options"]
"""Options of ordinary programs whose value is run as a command."""
COMMAND_VARIABLES = frozenset(_INTERPRETERS[""]["command variables"].split())
"""Variables whose value a program runs."""
INJECTING_VARIABLES = _INTERPRETERS["injecting variables"]
"""Variables that make programs load code, with what in their value does so."""
INJECTING_VALUES = {name: text for names, text in _INTERPRETERS["injecting values"].items() for name in names.split()}
"""The same, for those whose value may be unknown every day."""
