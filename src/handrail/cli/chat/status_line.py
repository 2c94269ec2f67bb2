"""The line below the prompt: model, mode, how full the context is, cost, branch, background processes, todo list."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from shutil import get_terminal_size

from rich.cells import cell_len

from ...agent.agent import Agent
from ...agent.conversation import estimate
from ...app import Handrail
from ...approval.policy import Mode
from ...store.sessions import SessionStore

_FRESH_SECONDS = 1.0


class StatusLine:
    """Looked up at most once per second, not per key or frame."""

    def __init__(
        self, app: Handrail, store: SessionStore, agent: Callable[[], Agent], mode: Callable[[], Mode]
    ) -> None:
        self._app, self._store, self._agent, self._mode = app, store, agent, mode
        self._facts: list[str] = []
        self._at = -_FRESH_SECONDS

    def refresh(self) -> None:
        self._at, agent = time.monotonic(), self._agent()
        used, window = estimate(agent.loop.conversation), agent.models[0].context_tokens
        facts = [f"{used / window:.0%} context"] if used else []
        cost = self._store.get(agent.session_id).cost
        facts += [f"${cost:.2f}"] if cost else []
        todos = agent.todos.items()
        done = sum(1 for item in todos if item.status == "completed")
        facts += [f"todo {done}/{len(todos)}"] if todos else []
        running = sum(1 for one in self._app.processes.list() if one.record.ended_at is None)
        facts += [f"{running} in background"] if running else []
        facts += [git_branch(agent.cwd), agent.cwd.replace(os.path.expanduser("~"), "~", 1)]
        facts.append(str(self._app.environments.settings(agent.session_id).options.get("profile") or ""))
        self._facts = [*filter(None, facts), "/help"]

    def text(self, *, is_busy: bool = False) -> str:
        """What changes comes first; a fact that does not fit the terminal is left out whole."""
        if time.monotonic() - self._at > _FRESH_SECONDS:
            self.refresh()
        hint, room = "" if is_busy else " (Shift-Tab)", get_terminal_size().columns - 2
        line = f" {self._agent().models[0].name} · {self._mode().value}{hint}"
        for fact in self._facts:
            line += f" · {fact}" if cell_len(line) + cell_len(fact) + 3 <= room else ""
        return line


def git_branch(folder: str) -> str:
    """The branch that is checked out there, read from git's files; empty outside of a repository."""
    for place in (Path(folder), *Path(folder).parents):
        found = place / ".git"
        try:
            if found.is_file():  # a worktree or submodule
                found = place / found.read_text("utf-8").removeprefix("gitdir:").strip()
            if not found.is_dir():
                continue
            head = (found / "HEAD").read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:8]
    return ""
