"""Decide about connections of commands that wait: by the network policy of their task, which asks where it has to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import Denied
from .held_calls import Decision, HeldCall, HeldCalls, Redirect
from .shell_host.held_calls import ALLOW

if TYPE_CHECKING:
    from ..egress.networks import Networks
    from ..types import ToolContext


def decide_connections(held_calls: HeldCalls, networks: Callable[[], Networks], task_id: str, *, asks: bool) -> None:
    """From now on. The task's network is made when its first connection waits. Without `asks` only what is denied is refused."""

    def decide(held: HeldCall, context: ToolContext) -> Decision | Redirect:
        host, _, port = held.target.rpartition(":") if held.kind == "connect" else (held.target, "", "0")
        where, is_udp = (host.strip("[]"), int(port)), held.detail == "udp" and held.operation == "connect"
        try:
            found = networks()
            found.prepare(task_id, context, asks=asks)
            to = found.decide(task_id, held.program, where, context.cancel, is_udp=is_udp)
        except Denied:  # the notes of the network say so
            return Decision.DENY
        return Redirect(f"{ALLOW} {to}") if to else Decision.ALLOW

    held_calls.deciders |= {"connect": decide, "lookup": decide}
