"""Data files are read strictly: what cannot be read is an error with its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from handrail import judge
from handrail.judge.values.data_files import (
    DataFileError,
    Entry,
    Patterns,
    Section,
    Words,
    read_records,
    read_sections,
    read_tables,
)

TEXT = """\
# A comment.
alone: a b

[first part]
key: a:b
  c
  # not this
  \\u{200b}d
empty:
"""


class Tool(NamedTuple):
    letters: str = ""
    operands: int = 0
    remote: bool = True
    raises: bool = False


def _written(folder: Path, text: str) -> Path:
    path = folder / "x.txt"
    path.write_text(text, "utf-8")
    return path


def test_sections_hold_entries_with_their_lines(tmp_path: Path) -> None:
    assert read_sections(_written(tmp_path, TEXT)) == [
        Section("", 0, {"alone": Entry(2, ["a b"])}),
        Section("first part", 4, {"key": Entry(5, ["a:b", "c", "\u200bd"]), "empty": Entry(9, [])}),
    ]


def test_a_table_is_read_from_the_file_beside_its_module(tmp_path: Path) -> None:
    _written(tmp_path, TEXT)
    tables = {"": {"alone": "a b"}, "first part": {"key": "a:b c \u200bd", "empty": ""}}
    assert read_tables(str(tmp_path / "x.py")) == read_tables(str(tmp_path / "y.py"), "x") == tables


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("empty:", "empty", "line 9: cannot read 'empty'"),
        ("empty:", "key: x", "line 9: 'key' is given twice"),
        ("empty:", "[first part]", "line 9: there is another section [first part]"),
        ("key: a:b", "", "line 6: an indented line must follow"),
        ("alone: a b", "  alone", "line 2: an indented line must follow"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(DataFileError) as caught:
        read_sections(_written(tmp_path, TEXT.replace(old, new, 1)))
    assert str(caught.value).startswith(f"x.txt, {message}")


def test_records_have_typed_fields() -> None:
    table = {"a b": "letters xy; operands 2; remote no; raises", "c": "like a; operands 0", "d": ""}
    first = Tool("xy", 2, remote=False, raises=True)
    assert read_records(table, Tool) == {"a": first, "b": first, "c": first._replace(operands=0), "d": Tool()}


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(ValueError, match="a: unknown field 'leters'; known: like, letters"):
        read_records({"a": "leters x"}, Tool)


def test_words_and_patterns_are_found_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("[words]\ntwo names: a b\n  c\n[patterns]\nword: (?i)b\\u{e9}\nbroken: (\n")
    module = str(tmp_path / "x.py")
    assert Words(module).two_names == {"a", "b", "c"}
    patterns = Patterns(module)
    assert patterns.word.fullmatch("B\u00e9") is not None
    with pytest.raises(re.error):  # only now: nothing is compiled before its first use
        patterns.broken.search("x")
    with pytest.raises(AttributeError, match=r"x.txt has no 'other' in \[words\]"):
        _ = Words(module).other


MODULES = sorted(Path(judge.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_uses_exactly_the_words_and_patterns_that_its_file_has(path: Path) -> None:
    code = path.read_text()
    tables = read_tables(str(path)) if path.with_suffix(".txt").exists() else {}
    for name, section in (("_WORDS", "words"), ("_RE", "patterns")):
        used = {found.replace("_", " ") for found in re.findall(rf"\b{name}\.([a-z_0-9]+)", code)}
        used |= set(re.findall(r'_with_nouns\("(\w+)"\)', code)) if name == "_RE" else set()
        assert used == set(tables.get(section, ()))
