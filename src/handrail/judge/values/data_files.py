r"""Read the files that hold what the judge knows: themes of rules (`.rules`) and tables of words (`.txt`).

    # A comment has a line of its own.
    [a section]
    key: a value
    longer: its first part
      and more of it, on indented lines

What comes before the first section belongs to a section without a name. `\u{200b}` stands for a character that a file cannot
show. Everything else is an error.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

_Record = TypeVar("_Record")
_ESCAPE = re.compile(r"\\u\{([0-9a-f]+)\}")


class DataFileError(ValueError):
    """A file that cannot be read; the message has its name and the line."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path.name}, line {line}: {message}")


class Entry(NamedTuple):
    line: int
    values: list[str]
    """What follows the key, and the indented lines below it."""


class Section(NamedTuple):
    name: str
    line: int
    entries: dict[str, Entry]


def read_sections(path: Path) -> list[Section]:
    """The sections of a file, the one without a name first. Raises DataFileError."""
    sections = [Section("", 0, {})]
    values: list[str] | None = None
    text = path.read_text("utf-8")
    has_escapes = "\\u{" in text
    for number, line in enumerate(text.split("\n"), 1):
        item = line.strip()
        if not item or item[0] == "#":
            continue
        if line[0] != " ":
            values = _heading(path, number, item, sections)
        elif values is None:
            raise DataFileError(path, number, "an indented line must follow a line such as 'key:'")
        else:
            values.append(_unescaped(item) if has_escapes else item)
    return sections


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)


def _heading(path: Path, number: int, line: str, sections: list[Section]) -> list[str] | None:
    """Begin a section, or an entry in the last one: the list that its values go to."""
    if line[0] == "[" and line[-1] == "]":
        if any(section.name == line[1:-1] for section in sections):
            raise DataFileError(path, number, f"there is another section {line}")
        sections.append(Section(line[1:-1], number, {}))
        return None
    key, colon, value = line.partition(":")
    if not colon:
        problem = f"cannot read {line!r}; write '[section]', 'key: value' or indent it below a key"
        raise DataFileError(path, number, problem)
    entries = sections[-1].entries
    if key in entries:
        raise DataFileError(path, number, f"{key!r} is given twice")
    value = value.strip()
    value = _unescaped(value) if "\\u{" in value else value
    entries[key] = entry = Entry(number, [value] if value else [])
    return entry.values


@functools.cache
def read_tables(module: str, name: str = "") -> dict[str, dict[str, str]]:
    """The words of each key, by section, in the `.txt` file beside a module (`__file__`) that has its name or this one."""
    path = Path(module)
    sections = read_sections(path.with_name(f"{name or path.stem}.txt"))
    return {title: {key: " ".join(entry.values) for key, entry in entries.items()} for title, _, entries in sections}


def read_records(table: Mapping[str, str], kind: type[_Record]) -> dict[str, _Record]:
    """NamedTuples of one kind, by name, whose fields have defaults: `nice: letters n; words adjustment; operands 1; raises`.

    `remote no` turns a field off, `like x` takes the fields of x, and several names share what they have in common.
    """
    made: Any = kind
    found: dict[str, Any] = {}
    for names, text in table.items():
        fields: dict[str, object] = {}
        for part in text.split(";") if text else ():
            field, _, value = part.strip().partition(" ")
            if field == "like":
                fields = found[value]._asdict()
                continue
            default = made._field_defaults.get(field)
            if default is None:
                raise ValueError(f"{names}: unknown field {field!r}; known: like, {', '.join(made._fields)}")
            read = value != "no" if isinstance(default, bool) else value if isinstance(default, str) else int(value)
            fields[field] = read
        found.update(dict.fromkeys(names.split(), made(**fields)))
    return found


class Words:
    """Sets of words by name: `Words(__file__).secret_stores` is `secret stores` in the section [words] of the module's file."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> frozenset[str]:
        words = frozenset(_entry(self._module, "words", name).split())
        setattr(self, name, words)  # found there from now on
        return words


class Patterns:
    """Regular expressions by name, from the section [patterns]. They are compiled at the first use: a command needs few."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> re.Pattern[str]:
        pattern = re.compile(_entry(self._module, "patterns", name))
        setattr(self, name, pattern)
        return pattern


def _entry(module: str, section: str, name: str) -> str:
    entries = read_tables(module).get(section, {})
    if (key := name.replace("_", " ")) not in entries:
        raise AttributeError(f"{Path(module).stem}.txt has no {key!r} in [{section}]")
    return entries[key]
