"""Names that are hard to quote."""

from __future__ import annotations

import shlex

from .check import check, expect, expect_that
from .place import Place

_ODD = (
    "with blanks  and more",
    'it\'s "quoted"',
    "new\nline",
    "tab\there",
    "-rf",
    "$HOME `x` $(y)",
    "back\\slash",
    "star*?[a]",
    "~",
    "ünïcödé 日本 🙂",
    "# not a comment; & | > <",
)


@check()
def directories_of_any_name_can_be_worked_in(place: Place) -> None:
    """A directory of any name can be entered, given for one command, and is reported as it is called."""
    for name in _ODD:
        directory = f"{place.folder}/{name}"
        result = place.run(f"mkdir -p -- {shlex.quote(directory)} && cd -- {shlex.quote(directory)}")
        expect(result.cwd, directory, "cwd of the result")
        place.says("pwd", directory + "\n")
        place.run("cd /")
        place.says("pwd", directory + "\n", cwd=directory)


@check()
def directories_of_any_name_outlive_the_shell(place: Place) -> None:
    """A new shell begins in the old one's directory, whatever its name."""
    directory = f"{place.folder}/{_ODD[1]} {_ODD[2]} {_ODD[9]}"
    place.run(f"mkdir -p -- {shlex.quote(directory)} && cd -- {shlex.quote(directory)}")
    place.run("exit")
    place.says("pwd", directory + "\n")


@check()
def files_of_any_name_can_be_read_and_written(place: Place) -> None:
    """A file of any name can be written, listed, read and removed, and commands see the same name."""
    files = place.env.files
    for name in _ODD:
        files.write(f"{place.folder}/{name}", name.encode())
    found = {entry.name for entry in files.entries(place.folder)}
    expect(found, set(_ODD), "names that were listed")
    place.says(f"cd {shlex.quote(place.folder)}; printf '%s\\0' * | LC_ALL=C sort -z | tr '\\0' '/'", _listed(_ODD))
    for name in _ODD:
        expect(files.read(f"{place.folder}/{name}", max_bytes=1000), name.encode(), f"content of {name!r}")
        files.remove(f"{place.folder}/{name}")
        expect_that(files.stat(f"{place.folder}/{name}") is None, f"{name!r} is still there")


def _listed(names: tuple[str, ...]) -> str:
    return "".join(name + "/" for name in sorted(names, key=str.encode))
