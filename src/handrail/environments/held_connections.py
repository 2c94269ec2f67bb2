"""Decide about connections of commands that wait: by the network policy of their task, which asks where it has to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Denied
from .held_calls import Decision, HeldCall, HeldCalls, Redirect
from .shell_host.held_calls import ALLOW

if TYPE_CHECKING:
    from ..egress.networks import Networks
    from ..types import ToolContext


def decide_connections(held_calls: HeldCalls, networks: Networks | None, task_id: str) -> None:
    """From now on. Raises nothing: a connection that cannot be decided about is refused."""
    if networks is None:
        return

    def decide(held: HeldCall, context: ToolContext) -> Decision | Redirect:
        if held.detail == "own":  # a server that a command has started
            return Decision.ALLOW
        host, _, port = held.target.rpartition(":") if held.kind == "connect" else (held.target, "", "0")
        where, is_udp = (host.strip("[]"), int(port)), held.detail == "udp" and held.operation == "connect"
        try:
            to = networks.decide(task_id, held.program, where, context.cancel, is_udp=is_udp)
        except Denied:  # the notes of the network say so
            return Decision.DENY
        return Redirect(f"{ALLOW} {to}") if to else Decision.ALLOW

    held_calls.deciders |= {"connect": decide, "lookup": decide}
