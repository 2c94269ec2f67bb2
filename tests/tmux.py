"""A tmux of one's own: type into it, wait for what it shows."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .support import wait_until

PATIENCE_SECONDS = 120


class Tmux:
    """One window that runs a shell. `end` it, whatever happened."""

    def __init__(self, socket: Path, *, cwd: Path, env: dict[str, str], columns: int = 90, rows: int = 40) -> None:
        self._socket = str(socket)
        environment = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        size = ["-x", str(columns), "-y", str(rows)]
        begin = ["-f", "/dev/null", "set-option", "-g", "history-limit", "100000", ";"]
        self._tmux(*begin, "new-session", "-d", *size, *environment, "-c", str(cwd), "bash --norc")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, *arguments]
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "screen"}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout

    def type(self, *keys: str) -> None:
        """Keys by their names, others letter by letter."""
        self._tmux("send-keys", *keys)

    def paste(self, text: str) -> None:
        """As a terminal does it for a program that asked to be told."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def device(self) -> str:
        """The terminal that what runs in the window sees."""
        return self._tmux("display-message", "-p", "#{pane_tty}").strip()

    def screen(self, *, history: bool = False) -> str:
        return self._tmux("capture-pane", "-p", *(("-S", "-") if history else ()))

    def wait_for(self, *texts: str, history: bool = False) -> str:
        """The screen as it shows all of these at once; with `history` also what has moved out of it."""
        seen = ""

        def shows_all() -> bool:
            nonlocal seen
            seen = self.screen(history=history)
            return all(text in seen for text in texts)

        wait_until(
            shows_all,
            timeout=PATIENCE_SECONDS,
            otherwise=lambda: f"never showed {texts!r}: {self.screen(history=True)}",
        )
        return seen

    def end(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")


def need_tmux() -> None:
    if shutil.which("tmux") is None:
        if os.environ.get("CI"):
            pytest.fail("tmux is not installed; scripts/services/install.sh installs it")
        pytest.skip("needs tmux; install it with your package manager")
