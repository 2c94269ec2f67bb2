"""Whether a program is waiting for input: the one in the foreground of a terminal, or one that reads a pipe of ours.

Derived from what the kernel says about its threads, not from silence: one of them sleeps in a call that reads the input, or that
waits until the input (and no network socket) has something to read.
"""

from __future__ import annotations

import os
import struct
import termios

from . import proc

_ARM = os.uname().machine == "aarch64"
_READ = {63} if _ARM else {0}
_SELECT = {72} if _ARM else {23, 270}
_POLL = {73} if _ARM else {7, 271}
_EPOLL = {22, 441} if _ARM else {232, 281, 441}
_POLLFD = struct.Struct("ihh")
_MAX_FDS = 1024
_TERMINAL = "/dev/pts/"


def waits_for_input(ours: int, root: int) -> bool:
    """`ours` is our end of the terminal or pipe; descendants of `root` are at the other end."""
    try:
        name = os.readlink(f"/proc/self/fd/{ours}")
        if name.startswith("pipe:"):
            return any(_process_waits(pid, name) for pid in proc.tree(root))
        group = os.tcgetpgrp(ours)
    except OSError:
        return False
    return any(stat.group == group and _process_waits(pid, _TERMINAL) for pid, stat in proc.tree(root).items())


def reader(ours: int, root: int) -> tuple[str, bool]:
    """The program that reads a terminal, and whether it hides what is typed, as one does that asks for a password.

    It is the foreground process that waits for input or, if that is unclear, the first of the foreground group. A line editor,
    such as a shell's, switches the echo off too, but it also reads single keys.
    """
    try:
        flags, group = termios.tcgetattr(ours)[3], os.tcgetpgrp(ours)
        ahead = [pid for pid, stat in proc.tree(root).items() if stat.group == group]
        waiting = [pid for pid in ahead if _process_waits(pid, _TERMINAL)]
        with open(f"/proc/{waiting[0] if len(waiting) == 1 else group}/comm") as file:
            name = file.read().strip()
    except (OSError, termios.error):
        return "", False
    return name, bool(flags & termios.ICANON) and not flags & termios.ECHO


def _process_waits(pid: int, source: str) -> bool:
    try:
        return any(
            _thread_waits(pid, f"/proc/{pid}/task/{thread}/syscall", source)
            for thread in os.listdir(f"/proc/{pid}/task")
        )
    except OSError:
        return False  # it has ended, or may not be inspected by us


def _thread_waits(pid: int, path: str, source: str) -> bool:
    with open(path) as file:
        words = file.read().split()
    if len(words) < 7:
        return False  # it runs
    number, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    if number in _READ:
        return _is_input(pid, first, source)
    if number in _POLL:
        return any(_is_input(pid, fd, source) for fd in _polled(pid, first, second))
    if number in _SELECT:
        return any(_is_input(pid, fd, source) for fd in _selected(pid, first, second))
    return number in _EPOLL and _epoll_waits(pid, first, source)


def _is_input(pid: int, fd: int, source: str) -> bool:
    target = _target(pid, fd)
    return target.startswith(source) or (source == _TERMINAL and target == "/dev/tty")


def _target(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""


def _polled(pid: int, address: int, count: int) -> list[int]:
    data = _memory(pid, address, min(count, _MAX_FDS) * _POLLFD.size)
    data = data[: len(data) - len(data) % _POLLFD.size]
    return [fd for fd, events, _ in _POLLFD.iter_unpack(data) if events & 1]


def _selected(pid: int, count: int, address: int) -> list[int]:
    data = _memory(pid, address, (min(count, _MAX_FDS) + 7) // 8) if address else b""
    return [fd for fd in range(len(data) * 8) if data[fd // 8] >> fd % 8 & 1]


def _epoll_waits(pid: int, fd: int, source: str) -> bool:
    """A dev server also listens to the keyboard: a process that waits for the network too is not waiting for input."""
    with open(f"/proc/{pid}/fdinfo/{fd}") as file:
        watched = [int(line.split()[1]) for line in file if line.startswith("tfd:")]
    targets = [_target(pid, one) for one in watched]
    return any(_is_input(pid, one, source) for one in watched) and not any(one.startswith("socket:") for one in targets)


def _memory(pid: int, address: int, count: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(count) or b""
