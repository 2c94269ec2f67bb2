"""What bash reports about itself, and the state that a new bash starts with."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from . import wire

# Options under which nothing would run in the restored shell.
_UNUSABLE = {b"set -o " + option for option in (b"noexec", b"onecmd", b"privileged", b"restricted")}
_OPPOSITES = {b"shopt -s": b"shopt -u", b"shopt -u": b"shopt -s", b"set -o": b"set +o", b"set +o": b"set -o"}
_ON = (b"shopt -s", b"set -o")
# Variables that bash sets itself; restoring them takes time or is refused.
OF_BASH = re.compile(
    rb"(?m)^declare -\S+ (?:BASH|BASHOPTS|BASH_ARGC|BASH_ARGV|BASH_ARGV0|BASH_COMMAND|BASH_LINENO|BASH_LOADABLES_PATH"
    rb"|BASH_MONOSECONDS|BASHPID|BASH_SOURCE|BASH_SUBSHELL|BASH_VERSINFO|BASH_VERSION|COMP_WORDBREAKS|EPOCHREALTIME"
    rb"|EPOCHSECONDS|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTTYPE|LINENO|MACHTYPE|OSTYPE|PIPESTATUS|PPID|RANDOM|SECONDS|SHELLOPTS"
    rb"|SRANDOM|UID|_)(?:=.*)?\n"
)
_ARGUMENTS = re.compile(rb"(?m)^set --.*\n")
_KINDS = (b"R", b"S", b"D", b"E")
_END = re.compile(rb"\n#end (-?\d+) ([0-9a-f]*)\n\Z")


class Report(NamedTuple):
    """One report of bash on its STATE channel: see `bash_template`."""

    kind: bytes
    head: bytes
    variables: bytes
    options: bytes
    functions: bytes


class Reports:
    """Splits the stream of the STATE channel into reports. What is incomplete when bash dies does not count."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Report]:
        self._rest += data
        found = []
        while self._rest.count(b"\0") >= 4:
            head, variables, options, functions, self._rest = self._rest.split(b"\0", 4)
            if head[:1] in _KINDS:  # else a command wrote into the channel; the report that it spoiled is lost
                found.append(Report(head[:1], head[1:].rstrip(b"\n"), variables, options, functions))
        return found


class Snapshot:
    """The last known state, in memory that outlives the shell supervisor: the fork server holds it too."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        found = _END.search(wire.read_whole(fd))
        self.known = found is not None
        self.cwd = bytes.fromhex(found.group(2).decode()).decode("utf-8", "surrogateescape") if found else ""
        self._arguments = b""
        self.command = int(found.group(1)) if found else -1  # the last one that it includes
        self._other_ways: dict[bytes, tuple[bool, bytes]] = {}

    def begin(self, report: Report) -> None:
        """Remember which options a fresh bash has by itself: those need not be restored."""
        self._other_ways = dict(map(_other_way, report.options.splitlines()))

    def take(self, report: Report) -> None:
        variables = OF_BASH.sub(b"", report.variables)
        arguments = _ARGUMENTS.findall(variables)
        if arguments:
            self._arguments = arguments[-1]
        else:  # written inside a function, whose arguments are not the shell's
            variables += self._arguments
        names = set(report.options.split(b":"))
        options = [line for name, (is_on, line) in self._other_ways.items() if (name in names) is not is_on]
        body = variables + b"\n".join(options) + b"\n" + report.functions
        number, _, cwd = report.head.partition(b" ")
        self.command = int(number) if number.isdigit() else 0
        content = body + b"\n#end %d %s\n" % (self.command, cwd.hex().encode())
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, content, 0)
        self.known = True
        self.cwd = cwd.decode("utf-8", "surrogateescape")

    def forget(self) -> None:
        os.ftruncate(self.fd, 0)
        self.known = False


def _other_way(line: bytes) -> tuple[bytes, tuple[bool, bytes]]:
    """The name of an option that a fresh bash has set by this command, whether that is on, and the opposite command."""
    command, _, name = line.rpartition(b" ")
    opposite = _OPPOSITES.get(command, command) + b" " + name
    return name, (command in _ON, line if opposite in _UNUSABLE else opposite)


def of_another(state: bytes) -> bytes:
    """The state for another shell, whose commands have other numbers."""
    return _END.sub(rb"\n#end -1 \2\n", state)


def nearest(directory: str) -> str:
    """The directory, or the nearest one above it that can still be entered."""
    while not (os.path.isdir(directory) and os.access(directory, os.X_OK)) and directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
    return directory or "/"
