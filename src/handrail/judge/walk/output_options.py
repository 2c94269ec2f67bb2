"""Which files a program is told to write by an option that nearly every program calls the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..values.word_values import Arg
    from .program_handlers import Call

_SHORT = frozenset(("-o", "-out", "--output", "--out", "--outfile", "--output-file", "--out-file", "--outdir"))
_LONG = tuple(f"{option}=" for option in sorted(_SHORT) if option.startswith("--"))
_OTHERWISE = frozenset(
    "grep egrep fgrep zgrep rg ag ack ls ps find test [ set ssh scp sftp mount umount useradd usermod groupadd groupmod kubectl "
    "oc helm curl wget gpg openssl git aria2c http pv base64 docker sudo passwd ip iptables lsblk lsof sshfs column nl".split()
)
"""Programs to which `-o` means something else, and those whose files the rules know by themselves."""


def output_files(call: Call) -> Sequence[Arg]:
    """Absolute paths given with `-o`, `--output` and the like."""
    return () if len(call.args) == 0 or call.name in _OTHERWISE else list(_named(call))


def _named(call: Call) -> Iterator[Arg]:
    before = ""
    for arg in call.args:
        if before in _SHORT and arg[:1] in ("/", "~"):
            yield arg
        elif arg.startswith(_LONG) and (path := arg.partition("=")[2])[:1] in ("/", "~"):
            yield arg.like(path)
        before = arg
