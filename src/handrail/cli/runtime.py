"""The runtime as commands use it: it asks you at the terminal (also about new and changed plugins), logs to stderr, and its
calls end at Ctrl-C or a timeout."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from enum import Enum, auto
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from ..app import Handrail
from ..base.own_process import started_by_agent
from ..base.workers import pool
from ..config.paths import Source, find_plugins
from ..config.trust import Trust
from ..errors import HandrailError
from ..model_tools import default
from ..platforms.table import chosen
from ..types import CancelToken, Progress
from .output import colours, fitted, note, notes_held, paint, say, visible

if TYPE_CHECKING:
    from ..approval.approvers.terminal import Hold


def open_runtime(*, yolo: bool = False, asks: bool = True, hold: Hold = notes_held) -> Handrail:
    """`yolo` allows without asking; without `asks`, what would need approval is denied.

    `hold` keeps other lines away from a question. Raises ConfigError when the configuration cannot be used.
    """
    log_as_notes()
    ask_about_plugins()
    with contextlib.redirect_stdout(sys.stderr):  # what a plugin prints while it is loaded is not the command's result
        app = default()
    if not asks:
        app.runtime.person = None
    elif sys.stdin.isatty() and sys.stderr.isatty():  # someone is there who sees the question and can answer it
        app.runtime.person = TerminalPerson(hold)
    if yolo:
        app.gate.settings.lift_asking()
    elif asks:
        from ..approval.approvers.terminal import TerminalApprover, is_there
        from ..approval.requests import ChainApprover

        if is_there():
            at_terminal, otherwise = TerminalApprover(hold=hold), app.runtime.approver
            app.runtime.approver = at_terminal if otherwise is None else ChainApprover(at_terminal, otherwise)
    return app


def log_as_notes(show: Callable[[str], object] = say) -> None:
    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            show(record.getMessage())

    # We report what goes wrong with a server, once.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    if not logging.root.handlers:
        logging.root.addHandler(Notes(logging.WARNING))


def show_progress(progress: Progress) -> None:
    """One line of news from a running call, on stderr."""
    share = f" {progress.fraction:4.0%}" if progress.fraction is not None else ""
    note(f"{progress.tool}:{share} {progress.message}")


T = TypeVar("T")
# What a cancelled call may take to clean up before we go without it.
GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.25
_PATIENCE_SECONDS = 2.0


class Ending(Enum):
    """Why the wait was over."""

    DONE = auto()
    TIMED_OUT = auto()
    INTERRUPTED = auto()


def supervise(work: Callable[[CancelToken], T], *, timeout: float | None = None) -> tuple[T | None, Ending]:
    """Run `work` on another thread; its token tells it to stop. A second Ctrl-C does not wait for it.
    Returns the result, if there is one, and what ended the wait.

    This thread only waits, so that it receives the signal even if a tool blocks its own thread.
    """
    cancel = CancelToken()
    outcome: Future[T] = Future()  # made before the work starts, so that Ctrl-C in between loses nothing

    def run() -> None:
        try:
            outcome.set_result(work(cancel))
        except BaseException as error:  # noqa: BLE001  carried over to the thread that waits
            outcome.set_exception(error)

    try:
        pool.submit(run)
        end = float("inf") if timeout is None else time.monotonic() + timeout
        # A Ctrl-C that comes just before a wait is received only when the wait ends, so each is short.
        while not outcome.done() and (left := end - time.monotonic()) > 0:
            wait([outcome], min(_POLL_SECONDS, left))
        if outcome.done():
            return outcome.result(), Ending.DONE
        ending, reason = Ending.TIMED_OUT, f"timed out after {timeout:g} s"
    except KeyboardInterrupt:
        ending, reason = Ending.INTERRUPTED, "interrupted by Ctrl-C"
    cancel.cancel(reason, timed_out=ending is Ending.TIMED_OUT)
    done, _ = wait([outcome], GRACE_SECONDS)
    return outcome.result() if done else None, ending


@contextlib.contextmanager
def handling(handler: Callable[[int, FrameType | None], object] | signal.Handlers, *numbers: int) -> Iterator[None]:
    """Handle these signals like this for a while."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class TerminalPerson:
    """Questions on stderr, answers from stdin. An empty line asks again; the end of input (Ctrl-D) returns None.

    `hold` keeps other lines away while a question is shown. `interrupt` ends the question without an answer, so that it
    does not read what is typed for something else.
    """

    def __init__(self, hold: Hold = notes_held) -> None:
        self._hold = hold
        self._lock = threading.Lock()
        self._wake = -1  # a byte written here ends the current question

    def interrupt(self) -> None:
        with self._lock:
            if self._wake >= 0:
                os.write(self._wake, b".")

    def ask(self, question: str, choices: Sequence[str]) -> str | None:
        from ..approval.approvers.terminal import turns

        turn = turns.take()  # one question at a time, whoever asks
        try:
            turn.result()
            with self._hold(), _whole_lines(), self._interruptible() as gone:
                return self._asked(question, choices, gone)
        finally:
            turns.leave(turn)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[int]:
        gone, wake = os.pipe()
        with self._lock:
            self._wake = wake
        try:
            yield gone
        finally:
            with self._lock:
                self._wake = -1
            os.close(gone)
            os.close(wake)

    def _asked(self, question: str, choices: Sequence[str], gone: int) -> str | None:
        painted = colours(sys.stderr)
        sys.stderr.write(paint(fitted(f"? {visible(question)}", sys.stderr), "bold", on=painted) + "\n")
        for number, choice in enumerate(choices, 1):
            sys.stderr.write(f"  {paint(str(number), 'cyan', on=painted)}  {visible(choice)}\n")
        hint = f"1-{len(choices)}, or your own words" if choices else "your answer"
        while True:
            sys.stderr.write(paint(f"  {hint}: ", "dim", on=painted))
            sys.stderr.flush()
            if (line := _read_line(gone)) is None:
                sys.stderr.write("\n")
                return None
            if line.strip():
                return chosen(line, choices)


@contextlib.contextmanager
def _whole_lines() -> Iterator[None]:
    """End the line of a question that Ctrl-C leaves."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise


def _read_line(gone: int) -> str | None:
    # Not `input()`: a call that is cancelled leaves its thread here, and one that waits inside of Python's buffered
    # reader holds a lock that the interpreter needs to end.
    line = b""
    while not line.endswith(b"\n"):
        if gone in select.select([0, gone], [], [])[0]:
            return None
        if not (piece := os.read(0, 4096)):
            break
        line += piece
    return line.decode("utf-8", "replace") if line else None


_DECLINED = "plugin-declined"
_YES_OR_NO = {"y": True, "yes": True, "n": False, "no": False, "": False}


def ask_about_plugins() -> None:
    """Ask once about each plugin of yours that is not trusted as it is now. A no is remembered, until it changes again."""
    found = [each for each in find_plugins() if each.source is not Source.PROJECT]
    if not found or not (sys.stdin.isatty() and sys.stderr.isatty()) or started_by_agent():
        return
    from ..plugins.loader import TRUST_KIND, plugin_content

    trust, danger = Trust(), "It would run with your rights, outside of every gate."
    for each in found:
        try:
            digest = plugin_content(each).digest
            if not any(trust.is_trusted(kind, each.place, digest) for kind in (TRUST_KIND, _DECLINED)):
                has_changed = trust.has_changed(TRUST_KIND, each.place, digest)
                what = "has changed since you trusted it" if has_changed else "is new"
                say(f"the plugin {each.name} ({visible(each.place)}) {what}. {danger}")
                yes = confirmed_by_hand("Load it from now on, as it is?")
                trust.trust(TRUST_KIND if yes else _DECLINED, each.place, digest)
        except HandrailError as error:
            say(f"plugin {each.name}: {error}")


def stdin_has_input() -> bool:
    """Whether something comes on stdin soon, or need not be waited for."""
    try:
        return bool(select.select([sys.stdin], [], [], _PATIENCE_SECONDS)[0])
    except (OSError, ValueError):  # not a stream of the operating system
        return True


def confirmed_by_hand(question: str) -> bool:
    """A yes at the terminal. Where there is none, nobody can say it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say("this needs a terminal, to ask you")
        return False
    with contextlib.suppress(termios.error):  # what was typed before the question was meant for something else
        termios.tcflush(0, termios.TCIFLUSH)
    while True:
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        with _whole_lines():
            line = sys.stdin.readline()
        word = line.strip().lower()
        if not line.endswith("\n") or word in _YES_OR_NO:
            return _YES_OR_NO.get(word, False)
        sys.stderr.write("Type y or n. ")
