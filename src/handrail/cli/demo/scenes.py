"""What the scripted model does, scene by scene: `scenes.yaml`, and how its placeholders are filled while it plays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

from ...testing import ModelReply, Reply, call

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Scene:
    """Replies that belong together. `scenes.yaml` says what each field is for."""

    title: str
    look: str
    replies: list[Reply]
    on_slow_disk: bool = False
    notice_before: int | None = None
    needs: str = ""
    is_highlight: bool = False


def read_data(name: str) -> Any:
    """A YAML file of the demonstration."""
    return YAML(typ="safe", pure=True).load(files(__package__).joinpath(name).read_text("utf-8"))


def read_scenes() -> tuple[str, list[Scene]]:
    """The user's task, and the scenes in their order."""
    data = read_data("scenes.yaml")
    return data["task"], [
        Scene(**{**scene, "replies": [_reply(**reply) for reply in scene["replies"]]}) for scene in data["scenes"]
    ]


def _reply(says: str, calls: Sequence[Mapping[str, Any]] = ()) -> Reply:
    def reply(messages: Messages, _: Messages) -> ModelReply:
        made = [call(tool, **_filled(arguments, messages)) for each in calls for tool, arguments in each.items()]
        return ModelReply(says, made)

    return reply


def _filled(arguments: Mapping[str, Any], messages: Messages) -> dict[str, Any]:
    """The arguments with what only the results before them can say."""
    find = {"$stored": _stored, "$session": _session, "$port": _port}

    def fill(value: Any) -> Any:
        for placeholder, found in find.items():
            if isinstance(value, str) and placeholder in value:
                value = value.replace(placeholder, found(messages))
        return value

    return {name: fill(value) for name, value in arguments.items()}


def _stored(messages: Messages) -> str:
    return str(json.loads(messages[-1]["content"])["stored"]["output"]["id"])


def _session(messages: Messages) -> str:
    results = [json.loads(message["content"]) for message in messages if message["role"] == "tool"]
    return str(next(result["session_id"] for result in reversed(results) if "session_id" in result))


def _port(messages: Messages) -> str:
    return str(messages[-1]["content"]).partition(" port ")[2].split()[0]
