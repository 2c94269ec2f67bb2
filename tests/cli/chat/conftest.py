"""A chat without a process of its own: the person's lines are given to it, and what it shows is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.agent.agent_factory import open_store
from handrail.cli.chat.chat import Chat
from handrail.cli.chat.screen import Screen
from handrail.cli.chat.slash_commands import COMMANDS
from handrail.model_tools import default
from handrail.protocols import ModelReply
from handrail.testing import RecordingApprover, ScriptedModel


class Paper:
    """A terminal that only keeps what is written, lines that change too."""

    def __init__(self) -> None:
        self.wrote = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.wrote += text

    def flush(self) -> None: ...


class Talk:
    """`talk("...")` is what the person types; it gives what was shown from then on, without colours."""

    def __init__(self, chat: Chat, paper: Paper, approver: RecordingApprover) -> None:
        self.chat, self.approver, self._paper = chat, approver, paper

    def __call__(self, line: str) -> str:
        begin = len(self._paper.wrote)
        self.chat._do(line)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._paper.wrote[begin:])

    @property
    def sent(self) -> list[str]:
        """What the model was sent last, by message."""
        model = self.chat.agent.models[0]._model  # type: ignore[attr-defined]
        return [str(message.get("content")) for message in model.sent[-1].messages]


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Talk]]:
    """`talk(reply, ...)`: a chat with a model that will say these things."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    made: list[Chat] = []

    def begin(*replies: ModelReply, **options: object) -> Talk:
        app, paper, approver = default(), Paper(), RecordingApprover()
        app.runtime.approver = approver
        chat = Chat(app, Screen(paper), open_store(), COMMANDS, models=[ScriptedModel(replies)], **options)  # type: ignore[arg-type]
        made.append(chat)
        chat.open()
        return Talk(chat, paper, approver)

    yield begin
    for chat in made:
        chat.close()
        chat.store.close()
