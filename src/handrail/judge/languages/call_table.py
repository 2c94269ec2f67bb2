"""Which functions of scripting languages run, delete, write, read or send something. They are in `call_table.txt`."""

from __future__ import annotations

from ..values.data_files import read_tables

_TABLES = read_tables(__file__)
SHELL = _TABLES["shell"]
"""Functions, by language, whose first argument a shell runs."""
ARGV = _TABLES["argv"]
"""Functions, by language, that run a program with a list of arguments."""
KINDS = {name: kind for kind, names in reversed(_TABLES["kinds"].items()) for name in names.split()}
"""What each function does, in any language."""
QUALIFIERS = frozenset(_TABLES[""]["qualifiers"].split())
"""Modules before a function's name that leave no doubt which function it is."""
