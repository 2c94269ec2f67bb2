"""System calls of commands that wait for an answer: the runtime's side. shell_host/held_calls.py is the effect watcher's.

The watcher sends a `HeldCall`; `HeldCalls.answer` finds the call of the runtime that it belongs to and asks through that call's
gate, as about any other dangerous action: so the terminal, the console, chats, editors and the HTTP API can answer, grants and
modes hold, and the answer is recorded. The time of the command stands still meanwhile. An answer holds for the same target until
the call has ended. Nobody to ask is a no.

Another kind of hold is an entry of `KINDS`, and a handler in shell_host/effect_watcher.py that raises `Hold`. Its `go_on` runs
after the answer, maybe minutes later, and looks at everything again that it relies on. What decides otherwise than by asking is
in `HeldCalls.deciders`; that about connections follows the network policy of their task.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..base.workers import run_async
from ..errors import CallCancelled, CallTimeout, Denied
from ..protocols import Action, ActionKind
from .shell_host.held_calls import ALLOW, DENY, STOP, HeldCall

if TYPE_CHECKING:
    from ..egress.networks import Networks
    from ..types import ToolContext

__all__ = ["KINDS", "Decision", "HeldCall", "HeldCalls", "Kind", "Redirect", "ask", "held_calls", "question"]

_MAX_CALLS, _MAX_TOLD = 256, 5


class Decision(Enum):
    """What becomes of a system call that waits."""

    ALLOW = ALLOW
    DENY = DENY
    STOP = STOP  # it fails, and the command is ended


class Redirect(NamedTuple):
    """A yes, with what the watcher's `go_on` is to be told: `value` is "allow", a space, and that."""

    value: str


class Kind(NamedTuple):
    """`question` may name the fields of a HeldCall, and what the call does as `verb`. A lasting yes is kept under `rule`, for
    the folder or file that `covers` makes of the target; without `covers` it is kept under the rule and the target."""

    rule: str
    question: str
    covers: Callable[[str], str] | None = None
    no: Decision = Decision.DENY  # what a no means


def _folder_of(path: str) -> str:
    """The folder of a path, or the path itself where that folder has more in it than somebody would mean."""
    folder = os.path.dirname(path)
    is_wide = folder.count("/") < 2 or folder == os.path.expanduser("~") or os.path.dirname(folder) == "/home"
    return path if is_wide else folder


KINDS = {
    "write outside": Kind(
        "held.write", "{program} wants to {verb} {target}{detail} (outside of the work tree)", _folder_of
    ),
    "many deletions": Kind(
        "held.deletions", "{program} deletes much that is in no commit, below {target}{detail} so far", no=Decision.STOP
    ),
    "sensitive deletion": Kind("held.sensitive", "{program} wants to {verb} {target}", no=Decision.STOP),
    "connect": Kind("held.connect", "{program} wants to connect to {target}"),
    "lookup": Kind("held.lookup", "{program} wants to look up {target}"),
    "masked socket": Kind(
        "held.socket",
        "{program} wants to use {target}: whoever talks to it acts outside of what protects commands; terminal.allow_sockets "
        "allows it for good",
    ),
}
_VERBS = {
    **dict.fromkeys(("open", "openat", "openat2", "creat", "truncate", "ftruncate", "fallocate"), "write"),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), "remove"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "move"),
    **dict.fromkeys(("mkdir", "mkdirat"), "make the folder"),
    **dict.fromkeys(("link", "linkat", "symlink", "symlinkat", "mknod", "mknodat", "bind"), "make"),
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), "change the mode of"),
    **dict.fromkeys(("chown", "fchown", "lchown", "fchownat"), "change the owner of"),
}


def question(held: HeldCall) -> str:
    """For people: "make wants to write /etc/hosts (outside of the work tree)"."""
    kind, verb = KINDS[held.kind], _VERBS.get(held.operation, "change the attributes of")
    program, target = held.program or "a program", " to ".join(filter(None, (held.target, held.second)))
    return kind.question.format(**held._replace(program=program, target=target)._asdict(), verb=verb)


def ask(held: HeldCall, context: ToolContext) -> Decision:
    """Ask through the call's gate, and wait. Raises Denied with what the model is to be told."""
    kind, why = KINDS[held.kind], question(held)
    if context.gate is None:
        raise Denied(f"Not run: {why}, and nobody can be asked.", decided_by="policy")
    cwd = context.environments.cwd(context.task_id) if context.environments is not None else ""
    actions = []
    for target in filter(None, (held.target, held.second)):
        covers = {"path": target, "project": kind.covers(target)} if kind.covers is not None else {}
        actions.append(Action(ActionKind.HELD, target, cwd, details={"why": why, "rule": kind.rule, **covers}))
    waiting = context.gate.review(actions, context)
    if waiting is not None:
        run_async(waiting, cancel=context.cancel)
    return Decision.ALLOW


class _Call:
    """A call of the runtime, and what was answered in it so far."""

    def __init__(self, context: ToolContext) -> None:
        self.context = context
        self.lock = threading.Lock()  # one question at a time, so that the same is not asked twice
        self.answers: dict[tuple[str, str, str], Decision | Redirect] = {}
        self.folders: set[str] = set()  # that it made after a yes, with a slash: what it makes in them needs none
        self.refused: dict[str, None] = {}
        self.clock: Clock | None = None


class Clock(Protocol):
    """A timeout that stands still between `pause` and `resume`."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...


class HeldCalls:
    """The held system calls of one environment. Thread-safe. In a `sealed` one nobody is asked."""

    def __init__(self) -> None:
        self.is_sealed = self._is_persons = False
        self.deciders: dict[str, Callable[[HeldCall, ToolContext], Decision | Redirect]] = {}
        self._calls: dict[int, _Call] = {}

    @contextmanager
    def of_person(self) -> Iterator[None]:
        """Meanwhile what belongs to no call is the person's own doing: they need not answer themselves."""
        self._is_persons = True
        try:
            yield
        finally:
            self._is_persons = False

    def begin(self, call: int, context: ToolContext) -> None:
        """What waits on behalf of this call asks through the context from now on."""
        if call and call not in self._calls:
            self._calls[call] = _Call(context)
            if len(self._calls) > _MAX_CALLS:
                self._calls.pop(min(self._calls), None)

    def is_tried(self, call: int) -> bool:
        """Whether the call's connections wait as well, as it may be taken back."""
        known = self._calls.get(call)
        return known is not None and known.context.effects is not None and known.context.effects.is_tried

    def stop_clock(self, call: int, clock: Clock) -> None:
        """A timeout of the call that is not that of a command in the shell."""
        if call in self._calls:
            self._calls[call].clock = clock

    def refused(self, call: int) -> list[str]:
        """What the model has to be told of the call, each once."""
        known = self._calls.get(call)
        if known is None or not known.refused:
            return []
        told, known.refused = list(known.refused), {}
        more = [f"{len(told) - _MAX_TOLD} more were refused"] if len(told) > _MAX_TOLD else []
        return [*told[:_MAX_TOLD], *more]

    def is_stopped(self, call: int) -> bool:
        """Whether the call's command was ended because of an answer."""
        known = self._calls.get(call)
        return known is not None and Decision.STOP in known.answers.values()

    def answer(self, held: HeldCall) -> str:
        """The answer for the effect watcher. May take as long as a person does."""
        known = self._calls.get(held.call)
        if known is None:
            return ALLOW if self._is_persons and not held.call else DENY
        if known.clock is None:
            return self._answered(held, known)
        known.clock.pause()
        try:
            return self._answered(held, known)
        finally:
            known.clock.resume()

    def _answered(self, held: HeldCall, known: _Call) -> str:
        key = held.kind, held.target, held.second
        with known.lock:
            if key not in known.answers and (held.second or not held.target.startswith(tuple(known.folders))):
                known.answers[key] = self._decide(held, known)
                if held.operation.startswith("mkdir") and known.answers[key] is Decision.ALLOW:
                    known.folders.add(held.target + "/")
            return known.answers.get(key, Decision.ALLOW).value

    def _decide(self, held: HeldCall, known: _Call) -> Decision | Redirect:
        try:
            if self.is_sealed:
                why = f"Not run: {question(held)}, and in the profile sealed nobody is asked."
                raise Denied(why, decided_by="policy")
            # A connection that the network policy allows cannot be taken back either.
            decide = ask if self.is_tried(held.call) else self.deciders.get(held.kind, ask)
            return decide(held, known.context)
        except Denied as error:
            no = KINDS[held.kind].no
            failed = "It was stopped:" if no is Decision.STOP else "A part of it failed:"
            known.refused[str(error).replace("Not run:", failed, 1)] = None
            return no
        except (CallCancelled, CallTimeout):  # the command is ended
            return Decision.DENY


def held_calls(environment: object) -> HeldCalls:
    """Those of an environment; one that a plugin brings may have none."""
    return getattr(environment, "held", None) or HeldCalls()


def decide_connections(held_calls: HeldCalls, networks: Callable[[], Networks], task_id: str, *, asks: bool) -> None:
    """From now on. The task's network is made when its first connection waits. Without `asks` only what is denied is refused."""

    def decide(held: HeldCall, context: ToolContext) -> Decision | Redirect:
        host, _, port = held.target.rpartition(":") if held.kind == "connect" else (held.target, "", "0")
        where, is_udp = (host.strip("[]"), int(port)), held.detail == "udp" and held.operation == "connect"
        try:
            found = networks()
            found.prepare(task_id, context, asks=asks)
            to = found.decide(task_id, held.program, where, context.cancel, is_udp=is_udp)
        except Denied:  # the notes of the network say so; the task's own name server says that there is no such name
            return Decision.ALLOW if held.kind == "lookup" else Decision.DENY
        return Redirect(f"{ALLOW} {to}") if to else Decision.ALLOW

    held_calls.deciders |= {"connect": decide, "lookup": decide}
