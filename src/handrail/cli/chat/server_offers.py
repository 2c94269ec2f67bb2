"""What MCP servers offer the user: prompts as `/SERVER:PROMPT`, resources as `@SERVER:URI`. Both are read by the servers' own
tools, so they pass the gate and its records like any call."""

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...app import Handrail
from ...core.outcome import error_of, parsed
from ...errors import InvalidArguments, ToolFailed
from ...store.export import text_of
from ...types import JsonDict
from ..output import visible

_LISTS = re.compile(r"mcp__(.+)__list_(prompts|resources)")
_MENTION = re.compile(r"(?<!\S)@([\w.-]+):(\S+)")


class Prompt(NamedTuple):
    """`text` gets what follows the name, and gives the message."""

    name: str
    usage: str
    about: str
    text: Callable[[str], str]


class ServerOffers:
    """Listed anew, on another thread, when the tools have changed: then a server has come or gone."""

    def __init__(self, app: Handrail) -> None:
        self._app = app
        self._listed = -1
        self._listing: threading.Thread | None = None
        self.prompts: list[Prompt] = []
        self.resources: list[str] = []

    def refresh(self, server: str = "") -> None:
        """With the name of a server, which may still be starting: return when what it offers is listed."""
        self._app.await_toolsets([f"mcp-{server}"])
        generation = self._app.runtime.registry.generation
        if generation != self._listed and self._app.mcp is not None:
            self._listed = generation
            self._listing = threading.Thread(target=self._list, name="handrail-offers", daemon=True)
            self._listing.start()
        if server and self._listing is not None:  # also for one that began before
            self._listing.join()

    def _list(self) -> None:
        """A server that does not answer offers nothing."""
        found = {"prompts": list[tuple[str, JsonDict]](), "resources": list[tuple[str, JsonDict]]()}
        for tool in filter(None, map(_LISTS.fullmatch, self._app.runtime.registry.get_all_tool_names())):
            page = parsed(self._app.handle_function_call(tool[0], {}))
            found[tool[2]] += [(tool[1], each) for each in page.get(tool[2], ())] if isinstance(page, dict) else []
        self.prompts = [_prompt(self._app, server, prompt) for server, prompt in found["prompts"]]
        self.resources = [f"{server}:{resource['uri']}" for server, resource in found["resources"]]

    def mentioned(self, text: str) -> Iterator[str]:
        """What `@SERVER:URI` in a message stands for, or why it cannot be read."""
        for match in _MENTION.finditer(text):
            self._app.await_toolsets([f"mcp-{match[1]}"])
            if self._app.runtime.registry.get_entry(f"mcp__{match[1]}__read_resource") is not None:
                try:
                    content = text_of(_answer(self._app, match[1], "read_resource", uri=match[2]))
                except ToolFailed as error:
                    content = f"[it cannot be read: {error}]"
                yield f"[{visible(match[0][1:])}:]\n{content}"


def _prompt(app: Handrail, server: str, prompt: JsonDict) -> Prompt:
    names = [str(each["name"]) for each in prompt.get("arguments") or ()]
    needed = [str(each["name"]) for each in prompt.get("arguments") or () if each.get("required")]
    usage = " ".join(name.upper() if name in needed else f"[{name.upper()}]" for name in names)

    def text(rest: str) -> str:
        given = dict(zip(names, rest.split(maxsplit=max(0, len(names) - 1)), strict=False))  # the last takes the rest
        if missing := [name for name in needed if name not in given]:
            raise InvalidArguments(f"/{server}:{prompt['name']} needs {', '.join(missing)}")
        answer = _answer(app, server, "get_prompt", name=prompt["name"], arguments=given)
        return "\n\n".join(str(each["content"].get("text", "")) for each in answer["messages"])

    about = visible(str(prompt["description"] or ""))[:60]
    return Prompt(f"{server}:{prompt['name']}".lower(), visible(usage), about, text)


def _answer(app: Handrail, server: str, tool: str, **arguments: Any) -> JsonDict:
    outcome = app.handle_function_call(f"mcp__{server}__{tool}", arguments)
    if (failure := error_of(outcome)) is not None:
        raise ToolFailed(str(failure["error"]))
    answer = parsed(outcome)
    return answer if isinstance(answer, dict) else {"content": str(outcome), "messages": []}
