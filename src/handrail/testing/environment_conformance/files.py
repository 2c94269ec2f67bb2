"""The environment's files are the ones that its commands see, whatever their names."""

import os
import shlex
import tempfile

from ...errors import ToolError
from .place import Place, expect, expect_error, expect_that

_ODD = (
    "with blanks  and more", 'it\'s "quoted"', "new\nline", "tab\there", "-rf", "$HOME `x` $(y)", "back\\slash", "star*?[a]",
    "~", "ünïcödé 日本 🙂", "# not a comment; & | > <",
)  # fmt: skip


def files_and_commands_see_the_same(place: Place) -> None:
    """What is written is there for commands, what commands write can be read; relative paths begin where the shell is."""
    files = place.env.files
    files.write(f"{place.folder}/new/sub/file", b"content\n")
    place.says(f"cat {shlex.quote(place.folder)}/new/sub/file", "content\n")
    place.run(f"cd {shlex.quote(place.folder)}/new && echo more >>sub/file")
    expect(place.env.files.read("sub/file", max_bytes=1000), b"content\nmore\n", "content by a relative path")
    expect(place.env.files.resolve("sub/../sub/file"), f"{place.folder}/new/sub/file", "resolved path")


def files_of_any_content_are_read_in_pieces(place: Place) -> None:
    """Binary content of some megabytes is written and read byte for byte, from any offset."""
    files = place.env.files
    content = os.urandom(3 << 20)
    path = f"{place.folder}/blob"
    files.write(path, content)
    expect(files.read(path, max_bytes=len(content) + 10) == content, True, "whether the content is the same")
    expect(files.read(path, max_bytes=10, offset=(2 << 20) - 5), content[(2 << 20) - 5 :][:10], "a piece")
    expect(files.read(path, max_bytes=10, offset=len(content)), b"", "what is behind the end")
    files.write(path, b"short")
    expect(files.read(path, max_bytes=100), b"short", "content that was replaced")


def files_are_listed_and_described(place: Place) -> None:
    """Size, kind, mode and version of a file are told, and a folder's entries with theirs; what is not there is None."""
    files = place.env.files
    written = files.write(f"{place.folder}/file", b"12345", mode=0o640)
    found = files.stat(f"{place.folder}/file")
    expect(found, written, "what stat says of what was just written")
    about = found and (found.size, found.is_dir, found.mode & 0o777)
    expect_that(about == (5, False, 0o640), f"stat: {found}")
    files.write(f"{place.folder}/file", b"54321")
    expect_that(files.stat(f"{place.folder}/file") != found, "a changed file has the version of the old one")
    place.run(f"cd {shlex.quote(place.folder)} && mkdir folder && ln -s file link")
    entries = {entry.name: (entry.is_dir, entry.is_file) for entry in files.entries(place.folder)}
    expect(entries, {"file": (False, True), "folder": (True, False), "link": (False, False)}, "entries")
    expect(files.stat(f"{place.folder}/nothing"), None, "stat of what is not there")


def modes_are_kept(place: Place) -> None:
    """Replacing a file keeps its mode: a script stays executable."""
    path = f"{place.folder}/script"
    place.run(f"echo old >{shlex.quote(path)}; chmod 751 {shlex.quote(path)}")
    place.env.files.write(path, b"new\n")
    place.says(f"stat -c %a {shlex.quote(path)}; cat {shlex.quote(path)}", "751\nnew\n")


def files_can_be_removed(place: Place) -> None:
    """A file and an empty folder can be removed; a link is refused, and what it leads to stays."""
    place.run(f"cd {shlex.quote(place.folder)} && mkdir empty && touch file target && ln -s target link")
    files = place.env.files
    files.remove(f"{place.folder}/file")
    files.remove(f"{place.folder}/empty")
    expect_error(ToolError, lambda: files.remove(f"{place.folder}/link"), "removing a link")
    place.says("echo *", "link target\n", cwd=place.folder)


def what_cannot_be_done_to_a_file_is_said(place: Place) -> None:
    """Reading what is not there or is a folder is an error with a reason, and the environment goes on."""
    files = place.env.files
    expect_error(ToolError, lambda: files.read(f"{place.folder}/nothing", max_bytes=1), "reading what is not there")
    expect_error(ToolError, lambda: files.read(place.folder, max_bytes=1), "reading a folder")
    expect_error(ToolError, lambda: files.entries(f"{place.folder}/nothing"), "listing what is not there")
    expect_error(ToolError, lambda: files.write("/proc/nothing/x", b"x"), "writing where nothing can be")
    place.works()


def files_are_copied_both_ways(place: Place) -> None:
    """A file of this machine is copied in with its content and mode, and out again."""
    content = os.urandom((1 << 20) + 7)
    with tempfile.TemporaryDirectory() as here:
        source, back = os.path.join(here, "it's here"), os.path.join(here, "back")
        with open(source, "wb") as file:
            file.write(content)
        os.chmod(source, 0o750)
        there = f"{place.folder}/and there"
        place.env.upload(source, there)
        place.says(f"stat -c '%a %s' {shlex.quote(there)}", f"750 {len(content)}\n")
        place.env.download(there, back)
        with open(back, "rb") as file:
            expect(file.read() == content, True, "whether what came back is what was sent")
        missing = os.path.join(here, "none")
        expect_error(ToolError, lambda: place.env.download(f"{place.folder}/nothing", missing), "a copy of nothing")
        expect_that(not os.path.exists(missing), "a failed copy left a file behind")


def directories_of_any_name_can_be_worked_in(place: Place) -> None:
    """A directory of any name can be entered, given for one command, and is reported as it is called."""
    for name in _ODD:
        directory = f"{place.folder}/{name}"
        result = place.run(f"mkdir -p -- {shlex.quote(directory)} && cd -- {shlex.quote(directory)}")
        expect(result.cwd, directory, "cwd of the result")
        place.says("pwd", directory + "\n")
        place.run("cd /")
        place.says("pwd", directory + "\n", cwd=directory)


def directories_of_any_name_outlive_the_shell(place: Place) -> None:
    """A new shell begins in the old one's directory, whatever its name."""
    directory = f"{place.folder}/{_ODD[1]} {_ODD[2]} {_ODD[9]}"
    place.run(f"mkdir -p -- {shlex.quote(directory)} && cd -- {shlex.quote(directory)}")
    place.run("exit")
    place.says("pwd", directory + "\n")


def files_of_any_name_can_be_read_and_written(place: Place) -> None:
    """A file of any name can be written, listed, read and removed, and commands see the same name."""
    files = place.env.files
    for name in _ODD:
        files.write(f"{place.folder}/{name}", name.encode())
    found = {entry.name for entry in files.entries(place.folder)}
    expect(found, set(_ODD), "names that were listed")
    listed = "".join(name + "/" for name in sorted(_ODD, key=str.encode))
    place.says(f"cd {shlex.quote(place.folder)}; printf '%s\\0' * | LC_ALL=C sort -z | tr '\\0' '/'", listed)
    for name in _ODD:
        expect(files.read(f"{place.folder}/{name}", max_bytes=1000), name.encode(), f"content of {name!r}")
        files.remove(f"{place.folder}/{name}")
        expect_that(files.stat(f"{place.folder}/{name}") is None, f"{name!r} is still there")
