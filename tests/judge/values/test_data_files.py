"""Data files are read strictly: what cannot be read is an error with its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from handrail.judge.values.data_files import (
    DataFileError,
    Entry,
    Section,
    lazy_pattern,
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


def test_a_lazy_pattern_finds_what_a_compiled_one_finds() -> None:
    pattern = lazy_pattern("(?m)^b(c)?", re.IGNORECASE)
    assert [match[0] for match in pattern.finditer("a\nBC\nb")] == ["BC", "b"]
    assert pattern.fullmatch("bc") is not None
    assert (pattern.pattern, pattern.flags) == ("(?m)^b(c)?", re.compile("(?m)^b(c)?", re.IGNORECASE).flags)


def test_a_lazy_pattern_is_not_compiled_before_its_first_use() -> None:
    pattern = lazy_pattern("(")
    with pytest.raises(re.error):
        pattern.search("x")
