"""Hooks and middleware as plugins of Hermes Agent write them, for our own hooks."""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..types import JsonDict
from .hook_specs import Change
from .middleware import VERSIONS, Traces, note_change, traced


@cache
def original_hooks() -> Any:
    """For hooks as plugins of Hermes Agent write them: why some are never called here; the arguments that are documented for the
    others; our names for these; and our hooks by the events that other agents name."""
    return json.loads(Path(__file__).with_name("hook_names.json").read_text("utf-8"))


def with_their_names(callback: Callable[..., Any], hook: str = "") -> Callable[..., Any]:
    """A function that calls theirs with every argument that it names, and with all that are documented for the hook if it takes
    whatever comes. None stands for one that there is not here."""
    parameters = inspect.signature(callback).parameters.values()
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
    named = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    if takes_all:
        named += original_hooks()["arguments"].get(hook, "").split()

    def call(**payload: Any) -> Any:
        return callback(**(payload if takes_all else {}) | {name: _value(name, payload) for name in named})

    call.__qualname__ = getattr(callback, "__qualname__", type(callback).__name__)
    return call


def adapted(hook: str, callback: Callable[..., Any], traces: Traces) -> Callable[..., Any]:
    """A hook of ours that calls theirs."""
    theirs = with_their_names(callback, hook)

    def call(**payload: Any) -> Any:
        trace = {"middleware_trace": traces.get(traced(payload), [])}
        result = theirs(**payload, **trace, telemetry_schema_version=VERSIONS["telemetry_schema_version"])
        if not isinstance(result, dict):
            return result
        if result.get("action") == "modify" and isinstance(result.get("args"), dict):
            return {**result, "args": {**payload.get("args", {}), **result["args"]}}  # theirs names what it changes
        return result["context"] if "context" in result and "action" not in result else result

    call.__qualname__ = theirs.__qualname__
    return call


def judging_speech(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A `pre_tool_call` hook that lets their `pre_tts_synthesis` block or replace a text that is to be spoken."""

    def judge(tool_name: str, args: JsonDict) -> Any:
        answer = callback(text=args["text"], provider=None) if tool_name == "text_to_speech" else None
        text = answer.get("text") if isinstance(answer, dict) else None
        return Change({**args, "text": text}) if isinstance(text, str) else answer

    return judge


def following_skills(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A `post_tool_call` hook that calls their `on_skill_lifecycle` when a skill was read, written or removed."""
    theirs = with_their_names(callback, "on_skill_lifecycle")

    def follow(tool_name: str, args: JsonDict, status: str, task_id: str | None, session_id: str | None) -> Any:
        done = args.get("action") if tool_name == "skill_manage" else tool_name
        action = original_hooks()["skills"].get(done) if status == "ok" and not args.get("file_path") else None
        about = {"provenance": "unknown", "task_id": task_id, "session_id": session_id}
        return theirs(action=action, skill_name=args["name"], **about) if action else None

    return follow


def rewriting(theirs: Callable[..., Any], traces: Traces) -> Callable[..., Any]:
    """A `pre_tool_call` hook that lets a middleware of theirs replace the arguments."""

    def rewrite(**payload: Any) -> Change | None:
        answer = theirs(**VERSIONS, **payload)
        changed = answer.get("args") if isinstance(answer, dict) else None
        if not isinstance(changed, dict):
            return None
        note_change(traces, payload, answer)
        return Change(changed)

    return rewrite


def _value(name: str, payload: Mapping[str, Any]) -> Any:
    if name in ("completed", "interrupted", "failed") and name not in payload:
        return payload.get("reason") == ("answered" if name == "completed" else name)
    if name == "command" and name not in payload:
        return payload.get("args", {}).get(name)
    if name == "pattern_keys":
        return [payload.get("rule_key")]
    if name == "parent_session_id" and "child_session_id" not in payload:
        return None  # its own session is not its parent
    parts = {**(payload.get("request") or {}), **(payload.get("response") or {})}  # of an auxiliary call
    value = payload.get(name, payload.get(original_hooks()["names"].get(name), parts.get(name)))
    return "" if value is None and name in ("task_id", "session_id") else value
