"""Hooks that are commands: they get the event as JSON on stdin, and answer with their exit code and JSON on stdout.

Exit code 0 lets the call pass, unless the output decides otherwise; 2 blocks, and the model gets what was written to stderr
(after a call, next to the result); any other is a failure, which blocks only if the hook is a policy. JSON on stdout may hold:

    {"decision": "allow" | "deny" | "ask", "reason": "...", "updatedInput": {...}}   before a call
    {"updatedOutput": "..."}                                                         where a text may be replaced
    {"additionalContext": "..."}, or just text                                       before a turn of the model
    {"decision": "block", "reason": "..."}                                           to have the agent go on (`pre_verify`)

The formats that other agents use (`hookSpecificOutput.permissionDecision`, `decision: block|approve|modify` with `tool_input`,
`action: block|approve|modify` with `args`, `context`) are understood too. "allow" means no objection: it does not override what
something else forbids.
"""

import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..base.safe_text import safe_error
from ..base.suggest import did_you_mean
from ..config.paths import config_path
from ..config.store import file_digest, resolved
from ..environments.local_environment import LocalEnvironment
from ..environments.output import OutputSink
from ..environments.protection import Protection
from ..errors import ConfigError
from ..protocols import HOOK, CallEffects
from ..settings.sections import HookCommandConfig
from ..types import JsonDict
from .hook_manager import HookManager
from .hook_specs import HOOK_NAMES, Ask, Block, Change, Verdict
from .original_hooks import original_hooks

BLOCKS = 2
# `python -m x` and `python -c` import from the current folder.
_MODULE = re.compile(r"python[\d.]*\s(?:.*\s)?-\w*[mc]\b")
_MAX_ANSWER_BYTES = 1_000_000
_START_SECONDS = 5.0  # that a shell may take
# The names that other agents have for the same moments.
EVENTS: dict[str, str] = original_hooks()["events"]
_FIELDS = {"args": "tool_input", "result": "tool_response"}
# Hermes Agent's hooks answer with an action; theirs to approve asks the user.
_ACTIONS = {"block": "deny", "approve": "ask", "modify": "modify"}


class Answer(NamedTuple):
    command: str
    exit_code: int
    stdout: bytes
    stderr: str


class HookShells:
    """Shells on this machine that run the commands, one at a time each. One is kept: to start it takes longer than most hooks.
    `protection` is what the kernel protects from the commands. With settings of the journal (`effects`), what they change is
    written down."""

    def __init__(self, protection: Protection | None = None, effects: Mapping[str, Any] | None = None) -> None:
        # Nobody is asked on behalf of a hook.
        self._protection = replace(protection, profile=None) if protection is not None else None
        self._effects = effects
        self._idle: list[tuple[str, LocalEnvironment]] = []  # each with the folder that it is for

    def run(self, command: str, event: bytes, *, timeout: float, record: CallEffects | None = None) -> Answer:
        """Raises TimeoutError when it takes too long. All that it has started is ended with it."""
        folder, done, shell = os.getcwd(), None, None
        with contextlib.suppress(IndexError):
            kept, shell = self._idle.pop()
            if kept != folder:  # what is protected depends on it
                shell.close()
                shell = None
        if shell is None:  # programs are not looked up in the current folder
            places = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
            shell = LocalEnvironment(folder, env={"PATH": os.pathsep.join(places)}, protection=self._protection)
        shell.effects = self._effects
        output, number = OutputSink(head_bytes=_MAX_ANSWER_BYTES), 0
        words = shlex.join(["/bin/sh", "-c", command])
        how: JsonDict = {"cwd": folder, "env": {"PYTHONSAFEPATH": "1"} if _MODULE.search(command) else {}}
        try:
            if record is not None and self._effects is not None and shell.coverage.how == "full":
                number = record.begin(command, folder=folder, environment=shell)
            how |= {"stdin": event, "timeout": timeout, "output": output, "call": number, "separate": True}
            done = shell.execute(words, **how)
            if record is not None:
                record.has_run(shell, changed=done.changed)
        finally:
            if done is None or done.timed_out or done.left_running or self._idle:
                shell.close()
            else:
                self._idle.append((folder, shell))
            if record is not None:
                record.end()
        if done.timed_out:
            raise TimeoutError(f"the hook {command!r} timed out after {timeout:g} s")
        message = safe_error(done.stderr.decode("utf-8", "replace").strip())
        return Answer(command, done.exit_code, done.output.head, message)

    def close_task(self, task_id: str) -> None:
        """They are of no task."""

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()


def register_external(
    hooks: HookManager,
    configured: Mapping[str, Sequence[HookCommandConfig]],
    *,
    plugin: str,
    folder: Path | None = None,
    pins: Mapping[str, str] | None = None,
    shells: Callable[[], HookShells] = HookShells,
    open_call: Callable[[str, str | None, str | None], CallEffects] | None = None,
) -> None:
    """Add the configured commands. Raises ConfigError for an unknown event, an invalid pattern, a file that is not there.
    Relative paths are looked up in `folder`, the configuration's. `pins` are the digests that the commands' files must have
    when they run; without one a file is taken as it is now. `open_call` begins the record of what one changes, given what has
    made it (`OpenCall`)."""
    for event, commands in configured.items():
        hook = EVENTS.get(event, event)
        if hook not in HOOK_NAMES:
            known = [*HOOK_NAMES, *EVENTS]
            raise ConfigError(f"is not an event; {did_you_mean(event, known)}", key=f"hooks.{event}")
        for number, each in enumerate(commands):
            key = f"hooks.{event}[{number}]"
            if not each.command.strip():
                raise ConfigError("must have a command", key=key)
            try:
                matches = re.compile(each.matcher if each.matcher not in ("", "*") else ".*").fullmatch
            except re.error as error:
                raise ConfigError(f"is not a regular expression: {error}", key=f"{key}.matcher") from None
            try:
                text, files = resolved(each.command, folder or config_path().parent)
            except ConfigError as error:
                raise ConfigError(str(error), key=f"{key}.command") from None
            digests = {path: (pins or {}).get(path) or file_digest(path) for path in files}
            limit = each.timeout + _START_SECONDS  # the command's own limit comes first, and ends it
            run = _CommandHook(event, hook, text, digests, each.timeout, matches, shells, open_call)
            hooks.register_hook(hook, run.call, plugin=plugin, policy=each.policy, timeout=limit)


class _CommandHook(NamedTuple):
    """A command for one event, and the digests of the files that it runs. The others are those of `register_external`."""

    event: str
    hook: str
    text: str
    files: Mapping[str, str]
    timeout: float
    matches: Callable[[str], object]
    shells: Callable[[], HookShells]
    open_call: Callable[[str, str | None, str | None], CallEffects] | None

    def call(self, **payload: Any) -> Any:
        """Raises PermissionError when one of the files is not what was confirmed."""
        if not self.matches(str(payload.get("tool_name", ""))):
            return None
        if changed := [path for path, digest in self.files.items() if file_digest(path) != digest]:
            look = "look at it, then `handrail config confirm`"
            raise PermissionError(f"the hook's file {changed[0]} has changed since it was confirmed; {look}")
        record = None
        if self.open_call is not None:
            record = self.open_call(HOOK, payload.get("session_id"), payload.get("task_id"))
        event: JsonDict = {"hook_event_name": self.event, "cwd": os.getcwd()}
        event |= {_FIELDS.get(name, name): value for name, value in payload.items()}
        data = json.dumps(event, default=str).encode()
        answer = self.shells().run(self.text, data, timeout=self.timeout, record=record)
        if self.hook in ("pre_tool_call", "post_tool_call"):
            decision = verdict(answer, payload["args"])
            return decision if self.hook == "pre_tool_call" or isinstance(decision, Block) else None
        if self.hook == "pre_verify":
            is_blocked = answer.exit_code == BLOCKS
            return {"decision": "block", "reason": answer.stderr} if is_blocked else _parsed(answer)[0]
        return _text(self.hook, answer)


def verdict(answer: Answer, args: JsonDict) -> Verdict:
    """What an answer means for the call. Raises for one that cannot be understood."""
    if answer.exit_code == BLOCKS:
        return Block(answer.stderr or "a hook forbids it")
    printed, inner = _parsed(answer)
    decision = inner.get("permissionDecision") or printed.get("decision") or "allow"
    decision = _ACTIONS.get(printed.get("action", ""), decision)
    said = inner.get("permissionDecisionReason") or printed.get("reason") or printed.get("message")
    reason, changed = safe_error(str(said or "")), inner.get("updatedInput", printed.get("updatedInput"))
    if decision == "modify":
        decision, changed = "allow", printed.get("args", printed.get("tool_input"))
    if decision in ("deny", "block"):
        return Block(reason or "a hook forbids it")
    if decision not in ("allow", "approve", "ask"):
        raise ValueError(f"the decision of {answer.command!r} is {decision!r}; it can be allow, deny or ask")
    if changed is not None and not isinstance(changed, dict):
        raise TypeError(f"the updatedInput of {answer.command!r} is not an object but {type(changed).__name__}")
    wanted = {**args, **changed} if changed is not None else None
    if decision == "ask":
        return Ask(reason or "a hook asks", args=wanted)
    return Change(wanted) if wanted is not None else None


def _text(hook: str, answer: Answer) -> str | None:
    """The text of an answer, for hooks that return only a text. Raises for a failure."""
    printed, inner = _parsed(answer)
    if hook == "pre_llm_call":
        plain = "" if _is_object(answer) else answer.stdout.decode("utf-8", "replace").strip()
        said = inner.get("additionalContext") or printed.get("additionalContext") or printed.get("context") or plain
        return str(said) or None
    changed = inner.get("updatedOutput", printed.get("updatedOutput"))
    return None if changed is None else str(changed)


def _parsed(answer: Answer) -> tuple[JsonDict, JsonDict]:
    """The object that was printed, and the part of it where other agents put the answer. Raises for a failure."""
    if answer.exit_code:
        raise RuntimeError(f"{answer.command!r} ended with {answer.exit_code}: {answer.stderr}")
    if not _is_object(answer):
        return {}, {}
    try:
        printed: JsonDict = json.loads(answer.stdout)
    except ValueError as error:
        raise ValueError(f"{answer.command!r} printed invalid JSON: {error}") from None
    return printed, printed.get("hookSpecificOutput") or {}


def _is_object(answer: Answer) -> bool:
    """Anything else that it prints is for people to read."""
    return answer.stdout.lstrip().startswith(b"{")
