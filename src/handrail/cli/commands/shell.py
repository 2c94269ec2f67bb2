"""Open a shell where a model's commands run, at your own terminal.

It has the same files, variables and limits. Nothing is asked: you are the one who would be asked. It ends with
`exit` or Ctrl-D and leaves nothing behind. It does not share the variables of the task's own shell.

Examples:
  handrail shell
  handrail shell --env docker:python:3.12
  handrail shell --task t1

The exit code is the shell's.
"""

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from typing import Annotated, Any

from ...environments.base import ProcessState, ProcessStatus, PtyProcess
from ...environments.errors import InputRefused
from ...errors import HandrailError
from ..chat.screen import keyboard
from ..options import Exit, Task, option, require_terminal
from ..output import ExitCode, note, refuse
from ..runtime import handling, open_runtime

Env = Annotated[
    str | None, option("--env NAME", "An environment (local, docker:python:3.12, …); default: the configured one.")
]


def shell(env: Env = None, task: Task = None) -> None:
    require_terminal("handrail call terminal command=...")
    app = open_runtime()
    try:
        if env is not None:
            app.environments.override(task or "default", {"backend": env})
        with app.environments.use(task) as environment:
            environment.start()
            note(f"{environment.name}, in {environment.cwd}; Ctrl-D ends it")
            rows, columns = window_size()
            process = environment.open_pty("exec bash -i", rows=rows, columns=columns)
            try:
                status = relay(process)
            finally:
                process.forget()
    finally:
        app.close()
    if status.state is not ProcessState.ENDED or status.exit_code is None:
        refuse("the shell was lost; its exit code is unknown", ExitCode.FAILED)
    raise Exit(status.exit_code)


_READ_BYTES = 1 << 16
_POLL_SECONDS = 30.0


def relay(process: PtyProcess) -> ProcessStatus:
    """Relay until the program has ended. The terminal is always restored afterwards."""
    relayed = _Relay(process)
    resize = handling(lambda *_: os.write(relayed.wake, b"w"), signal.SIGWINCH)
    with keyboard(shown=False), resize, handling(_end, signal.SIGTERM, signal.SIGHUP):
        tty.setraw(sys.stdin.fileno(), termios.TCSADRAIN)  # what was typed ahead counts
        return relayed.run()


def window_size() -> tuple[int, int]:
    """Rows and columns of this terminal."""
    size = os.get_terminal_size(sys.stdin.fileno())
    return size.lines or 24, size.columns or 80


class _Relay:
    def __init__(self, process: PtyProcess) -> None:
        self._process = process
        self._news, self.wake = os.pipe()  # wakes the wait for a key
        self._problem: HandrailError | None = None
        self._is_over = False

    def run(self) -> ProcessStatus:
        reader = threading.Thread(target=self._show, name="handrail-relay", daemon=True)
        reader.start()
        try:
            self._pass_keys()
        finally:
            self._is_over = True
            reader.join(1.0)
            os.close(self._news)
            os.close(self.wake)
        if self._problem is not None:
            raise self._problem
        return self._process.poll()

    def _pass_keys(self) -> None:
        keyboard = sys.stdin.fileno()
        watched = [keyboard, self._news]
        while True:
            ready, _, _ = select.select(watched, [], [])
            if self._news in ready:
                if b"e" in os.read(self._news, 100):
                    return
                self._process.resize(*window_size())
            if keyboard in ready:
                if not (keys := os.read(keyboard, _READ_BYTES)):  # this terminal was closed
                    self._process.close_stdin()
                    watched.remove(keyboard)
                with contextlib.suppress(InputRefused):  # it has just ended, or does not read: the key is lost
                    self._process.write(keys)

    def _show(self) -> None:
        offset = 0
        try:
            while not self._is_over:
                piece = self._process.read(offset, timeout=_POLL_SECONDS)
                offset = piece.offset + len(piece.data)
                view = memoryview(piece.data)
                while view:
                    view = view[os.write(sys.stdout.fileno(), view) :]
                if not piece.data and self._process.poll().state is not ProcessState.RUNNING:
                    break
        except HandrailError as error:
            self._problem = error
        except OSError:
            pass  # nobody sees it any more
        if not self._is_over:
            os.write(self.wake, b"e")


def _end(number: int, _: Any) -> None:
    raise SystemExit(128 + number)
