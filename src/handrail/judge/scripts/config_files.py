"""Tools that run a file of the project as a program: which file, and in which language, as `config_files.txt` lists them."""

from __future__ import annotations

from collections.abc import Iterable

from ..values.data_files import read_tables

_TABLES = read_tables(__file__)
CONFIG_FILES = {program: text.split() for program, text in _TABLES["files"].items()}
"""By program: the language, and the names of the files. Braces stand for one of several endings."""
TESTS = {program: text.split() for program, text in _TABLES["tests"].items()}
"""Test runners: the language, which names are tests, and the folders that hold them."""
LISTED = {program: text for programs, text in _TABLES["lists"].items() for program in programs.split()}
"""Programs that run what a file lists: the names of files, then a pattern that finds the commands in them."""


def spellings(names: Iterable[str]) -> list[str]:
    """The names, with one for each ending in braces."""
    found: list[str] = []
    for name in names:
        before, brace, rest = name.partition("{")
        endings, _, after = rest.partition("}")
        found += [f"{before}{end}{after}" for end in endings.split(",")] if brace else [name]
    return found
