"""System calls that wait in the kernel until somebody has answered a question about them: the effect watcher's side. A handler
of the effect watcher that wants an answer first raises `Hold`, with what is asked, and what is done after a yes. The watcher
goes on with other processes meanwhile. The question goes to the client as a packet; nobody there is a no."""

from __future__ import annotations

import errno
import os
import signal
import struct
import threading
from fcntl import ioctl
from typing import Callable, Dict, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc
from .journal_log import JournalFailed
from .wire import Packet

_SEND, _IS_VALID, _ADD_FD = 0xC0182101, 0x40082102, 0x40182103
_CONTINUE = 1
_ANSWER = struct.Struct("<QqiI")  # struct seccomp_notif_resp
_ADDED_FD = struct.Struct("<QIIII")  # struct seccomp_notif_addfd
ALLOW, DENY, STOP = "allow", "deny", "stop"
Release = Callable[[str], None]
"""Takes the answer: ALLOW, DENY, or STOP, which ends the process as well."""


class HeldCall(NamedTuple):
    """What is asked: `operation` is the system call, `target` the path or host that it is about, `program` that of the process.
    `call` is the call of the runtime that the process belongs to; 0 for none."""

    kind: str  # such as "write outside"
    operation: str
    target: str
    call: int = 0
    program: str = ""
    pid: int = 0
    second: str = ""  # the second path of a rename
    detail: str = ""  # more for the question


class Reply(NamedTuple):
    """What a system call gets that was performed for its caller: its value, or a descriptor of ours, which is closed then."""

    value: int = 0
    fd: int = -1
    is_closed_on_exec: bool = False


class Hold(Exception):
    """Let the system call wait. After a yes `go_on` is called: None lets the kernel perform it, a number is an error, and a Reply
    is what the caller gets. After a no the caller gets `error`. `go_on` gets what follows after a space in the answer, if
    something does; one that `is_slow` has a thread of its own. `before` is called first, in the watcher's thread.
    With an `answer` nobody is asked."""

    def __init__(
        self,
        held: HeldCall,
        go_on: Callable[..., int | Reply | None],
        error: int,
        *,
        is_slow: bool = False,
        answer: str = "",
        before: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(held)
        self.held, self.go_on, self.error, self.is_slow, self.answer = held, go_on, error, is_slow, answer
        self.before = before


Ask = Callable[[HeldCall, Release], None]
"""Asks, and has the answer given to the function, now or later."""


def nobody(_: HeldCall, release: Release) -> None:
    release(DENY)


def answer_notice(listener: int, notice: int, error: int | None, value: int | None = None) -> None:
    """With a value the system call counts as performed. Without one and without an error the kernel performs it now."""
    flags = 0 if error or value is not None else _CONTINUE
    try:  # noqa: SIM105  `suppress` takes a microsecond of the effect watcher's hot path
        ioctl(listener, _SEND, _ANSWER.pack(notice, value or 0, -(error or 0), flags))
    except OSError:
        pass  # the process was killed meanwhile


class HeldNotices:
    """The notices of one listener that wait for an answer."""

    def __init__(self, listener: int, ask: Ask) -> None:
        self._listener, self._ask = listener, ask

    def hold(self, notice: int, pid: int, call: int, hold: Hold) -> None:
        if hold.answer:
            self._release(notice, pid, hold, hold.answer)
            return
        held = hold.held._replace(call=call, program=program_of(pid), pid=pid)
        self._ask(held, lambda answer: self._release(notice, pid, hold, answer))

    def _release(self, notice: int, pid: int, hold: Hold, answer: str) -> None:
        try:
            ioctl(self._listener, _IS_VALID, struct.pack("<Q", notice))
        except OSError:
            return  # the process was killed meanwhile, and another may have its number; or all of them have ended
        if answer == STOP:
            os.kill(pid, signal.SIGKILL)
        try:
            if answer.startswith(ALLOW):
                hold.before()
        except JournalFailed as failure:
            answer_notice(self._listener, notice, failure.errno)
            return
        if hold.is_slow:
            threading.Thread(target=self._finish, args=(notice, hold, answer), daemon=True).start()
        else:
            self._finish(notice, hold, answer)

    def _finish(self, notice: int, hold: Hold, answer: str) -> None:
        word, _, more = answer.partition(" ")
        try:
            reply = hold.go_on(*([more] if more else [])) if word == ALLOW else hold.error
        except JournalFailed as failure:
            reply = failure.errno
        except OSError as error:
            reply = error.errno or errno.EIO
        except Exception:  # noqa: BLE001  a fault here must neither let a change through nor end all shells
            reply = errno.EIO
        if isinstance(reply, Reply):
            self.give(notice, reply)
        else:
            answer_notice(self._listener, notice, reply)

    def give(self, notice: int, reply: Reply) -> None:
        """Answer for a system call that was performed. A descriptor is put into the caller's table first."""
        error, value = 0, reply.value
        if reply.fd >= 0:
            flags = os.O_CLOEXEC if reply.is_closed_on_exec else 0
            try:
                # Only for a buffer that can be changed it returns the number.
                value = ioctl(self._listener, _ADD_FD, bytearray(_ADDED_FD.pack(notice, 0, reply.fd, 0, flags)), True)
            except OSError as failed:  # it has too many open, or is gone
                error = failed.errno or errno.EIO
            finally:
                os.close(reply.fd)
        answer_notice(self._listener, notice, error, value)


class Questions:
    """The questions that the client has not answered yet. `send` raises OSError if the client is gone."""

    def __init__(self, send: Callable[[Packet], None] | None) -> None:
        self._send = send
        self._open: Dict[int, Release] = {}  # noqa: UP006  Python 3.8 knows no other
        self._last = 0

    def ask(self, held: HeldCall, release: Release, shell: str) -> None:
        """`shell` is the one that the process belongs to, or that has started its job."""
        self._last += 1
        self._open[self._last] = release
        try:
            if self._send is None:
                raise ConnectionError
            self._send({"op": "held", "held": self._last, "shell": shell, "about": held})
        except OSError:
            self.answered({"held": self._last})

    def answered(self, packet: Packet) -> None:
        release = self._open.pop(packet["held"], None)
        if release is not None:
            release(packet.get("answer", DENY))

    def deny_all(self) -> None:
        """Nobody is left who could answer, now or later."""
        self._send = None
        for held in list(self._open):
            self.answered({"held": held})


def program_of(pid: int) -> str:
    return os.fsdecode(proc.content(f"/proc/{pid}/comm").strip())
