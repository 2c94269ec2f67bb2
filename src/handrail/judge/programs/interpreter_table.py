"""Interpreters, and where their programs are on a command line; variables and options that hold a command.

The facts are in `interpreter_table.txt`.
"""

from __future__ import annotations

from ..values.data_files import read_tables

_TABLES = read_tables(__file__)
SHELLS = frozenset(_TABLES[""]["shells"].split())
LANGUAGES = {name: language for language, names in _TABLES["languages"].items() for name in names.split()}
"""Interpreters by their name without a version, and the language that they read."""
CODE_OPTIONS = _TABLES["code options"]
"""Options whose value is a program in that language."""
VALUE_LETTERS = _TABLES["value letters"]
"""Other options of the interpreters that take a value."""
TEXT_OPTIONS = _TABLES["text options"]
"""Options of ordinary programs whose value is run as a command."""
COMMAND_VARIABLES = frozenset(_TABLES[""]["command variables"].split())
"""Variables whose value a program runs."""
INJECTING_VARIABLES = _TABLES["injecting variables"]
"""Variables that make programs load code, with what in their value does so."""
