"""Ends the servers that we started if we are killed.

A small shell holds the other end of a pipe. It is told which process groups run; when the pipe closes, because we are gone,
it ends those that are left. (A parent-death signal would come when the thread that started the server ends, and would
reach only the first process of a server that starts others.)
"""

from __future__ import annotations

import contextlib
import subprocess
import threading

_SCRIPT = """
trap '' INT TERM HUP
groups=
while read -r sign group; do
  left=
  for each in $groups; do [ "$each" = "$group" ] || left="$left $each"; done
  groups=$left
  [ "$sign" = + ] && groups="$groups $group"
done
[ -z "$groups" ] && exit 0
for each in $groups; do kill -s TERM -- "-$each"; done
sleep 1
for each in $groups; do kill -s KILL -- "-$each"; done
"""


class Watchdog:
    """One for all servers of a process; it is started with the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def watch(self, group: int) -> None:
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                )
            self._tell(f"+ {group}\n")

    def forget(self, group: int) -> None:
        with self._lock:
            self._tell(f"- {group}\n")

    def close(self) -> None:
        """It ends what is left, if anything is."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()
