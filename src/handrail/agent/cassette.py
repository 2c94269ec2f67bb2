"""Record a session's tool calls in a file, and replay a run from it instead of calling the tools.

cassette = Cassette.of_session(store, session_id)
player = Player(cassette)
agent = Agent(app, [model], store=SessionStore(), play=player.run)
for said in cassette.said:
    agent.run(said)
print(player.differences())
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..app import Handrail
from ..core.outcome import error_outcome
from ..errors import StoreError, ToolFailed
from ..runtime.provider_formats import tool_message
from ..store.sessions import SessionStore
from ..types import JsonDict
from .conversation import ADDED_BY
from .tool_calls import arguments_of

_VERSION = 1


class Recorded(NamedTuple):
    tool: str
    arguments: JsonDict
    result: Any


class Difference(NamedTuple):
    """Where a run differs from the recording. `kind` is "new" (a call that was not recorded), "missing" (a recorded call that
    was not made) or "result" (a different result)."""

    kind: str
    tool: str
    arguments: JsonDict
    recorded: Any = None
    now: Any = None


class Cassette(NamedTuple):
    """The user's messages, and every call with its result, in order."""

    session: str
    model: str
    said: tuple[Any, ...]
    calls: tuple[Recorded, ...]

    @classmethod
    def of_session(cls, store: SessionStore, session_id: str) -> Self:
        info = store.get(session_id)
        messages = [stored.message for stored in store.messages(info.id, hidden=True)]
        results = {each["tool_call_id"]: each["content"] for each in messages if each["role"] == "tool"}
        calls = [
            Recorded(call["function"]["name"], arguments_of(call["function"]), results[call["id"]])
            for message in messages
            for call in message.get("tool_calls") or ()
            if call["id"] in results
        ]
        said = [each["content"] for each in messages if each["role"] == "user" and ADDED_BY not in each]
        return cls(info.id, info.model, tuple(said), tuple(calls))

    def save(self, path: Path) -> None:
        """One line of JSON per entry. Only the owner may read the file: results can contain anything."""
        lines: list[JsonDict] = [{"handrail_cassette": _VERSION, "session": self.session, "model": self.model}]
        lines += [{"said": each} for each in self.said]
        lines += [{"call": each.tool, "arguments": each.arguments, "result": each.result} for each in self.calls]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from None

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            head = lines[0]
            if head["handrail_cassette"] != _VERSION:
                raise StoreError(f"{path} was recorded by another version of Handrail; record it again")
            said = tuple(line["said"] for line in lines if "said" in line)
            calls = tuple(Recorded(line["call"], line["arguments"], line["result"]) for line in lines if "call" in line)
            return cls(head["session"], head["model"], said, calls)
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, LookupError, TypeError):
            raise StoreError(f"{path} is not a recording; `handrail record SESSION` makes one") from None


class Player:
    """Answers calls from a cassette: each recorded call once, to the same tool with the same arguments."""

    def __init__(self, cassette: Cassette) -> None:
        self._left = list(cassette.calls)
        self._new: list[Difference] = []

    async def run(
        self, calls: Sequence[JsonDict], *, on_done: Callable[[str, Any], object] | None = None, **_: Any
    ) -> list[JsonDict]:
        """In place of `Batches.run`."""
        answers = []
        for call in calls:
            function = call["function"]
            outcome = self._answer(function["name"], arguments_of(function))
            if on_done is not None:
                on_done(call["id"], outcome)
            shown = outcome if isinstance(outcome, str) else {"_multimodal": True, "content": outcome}
            answers.append(tool_message(call["id"], function["name"], shown))
        return answers

    def _answer(self, tool: str, arguments: JsonDict) -> Any:
        for place, recorded in enumerate(self._left):
            if (recorded.tool, recorded.arguments) == (tool, arguments):
                return self._left.pop(place).result
        self._new.append(Difference("new", tool, arguments))
        return error_outcome(ToolFailed(f"{tool} was not called with these arguments when this was recorded"))

    def differences(self) -> list[Difference]:
        """Calls that were not recorded, and recorded calls that were not made."""
        return [*self._new, *(Difference("missing", each.tool, each.arguments, each.result) for each in self._left)]


async def run_again(cassette: Cassette, app: Handrail, *, task_id: str) -> list[Difference]:
    """Make the recorded calls with the current tools, one after the other, and return the results that differ. Calls of
    agent-level tools are left out: there is no agent."""
    found = []
    for number, call in enumerate(cassette.calls):
        entry = app.runtime.registry.get_entry(call.tool)
        if entry is not None and entry.needs_agent:
            continue
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        raw = {"id": f"call_{number}", "type": "function", "function": function}
        (message,) = await app.batches.run([raw], task_id=task_id, session_id=task_id)
        if message["content"] != call.result:
            found.append(Difference("result", call.tool, call.arguments, call.result, message["content"]))
    return found
