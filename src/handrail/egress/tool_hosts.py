"""The network policy for tools that connect by themselves: web and browser tools, and MCP servers.

What is denied is denied to them too. They ask about other hosts where `network.contain` is "on"; in "auto" they do not, because
their calls name the host and pass the gate, as those of commands do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidArguments
from ..net.url_guard import Guard, target_of
from .hosts import plain_host
from .policy import HostPolicy, Verdict
from .questions import Questions

if TYPE_CHECKING:
    from ..settings.schema import Config
    from ..types import ToolContext


class ToolHosts:
    """For the calls of one task. `program` is who wants to connect, for the question."""

    def __init__(self, config: Config, program: str) -> None:
        asks = config.network.contain == "on"
        self.applies, self._program = asks or bool(config.network.deny), program
        self._questions = Questions(HostPolicy(config.network, asks=asks), config.network.resolve)
        self.guard = Guard(config.web.allow_private, self._look_up if self.applies else None)

    def begin(self, context: ToolContext) -> None:
        """A call begins, whose approver is asked from now on."""
        self._questions.begin(context)

    async def _look_up(self, host: str, port: int) -> list[str]:
        try:
            return await self._questions.addresses(host, port, lambda: self._program)
        except ValueError as error:
            raise InvalidArguments(str(error)) from None


def tool_guard(context: ToolContext, program: str) -> Guard:
    """For one call."""
    hosts = ToolHosts(context.config, program)
    hosts.begin(context)
    return hosts.guard


def why_denied(url: str, config: Config) -> str:
    """Why nothing connects to the host of a URL that the user has configured; empty if it is not denied."""
    try:
        target = target_of(url)
        ruling = HostPolicy(config.network, asks=False).decide(plain_host(target.host), target.port)
    except (InvalidArguments, ValueError):  # it has none, or cannot be used
        return ""
    return ruling.why if ruling.verdict is Verdict.DENY else ""
