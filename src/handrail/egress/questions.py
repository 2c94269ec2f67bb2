"""Ask about hosts through the gate, once per call and host, and remember what was refused so that the model is told. Tools that
connect by themselves (web and browser tools, MCP servers) use `ToolHosts`. What is denied is denied to them too. They ask about
other hosts where `network.contain` is "on"; in "auto" they do not, because their calls name the host and pass the gate, as
those of commands do not. An MCP server is connected to before a call asks for it: with "on" its host has to be listed."""

import asyncio
import dataclasses
from collections import deque
from collections.abc import Callable, Mapping

from ..errors import Denied, InvalidArguments
from ..net.url_guard import Guard, addresses_of, literal_address, plain_host, target_of, with_port
from ..protocols import Action, ActionKind
from ..settings.schema import Config
from ..types import ToolContext
from .policy import HostPolicy, HostRuling, Verdict

_MAX_REFUSED, _MAX_SHOWN = 50, 6
_HOW = "The user can allow a host: network.allow in config.yaml."
_NOBODY = "no call runs that it could belong to, so nobody can be asked"


class Questions:
    """About the connections of one task. `begin` says which call runs; its approver is asked. An answer holds for the host
    until the next call begins: a program that opens ten connections asks once. Longer answers are the gate's grants. Everything
    but `begin` and `notes` runs in the proxy's loop. `is_far`: its commands run elsewhere, and the proxy must not lead them to
    services of this machine."""

    def __init__(self, policy: HostPolicy, fixed: Mapping[str, str], *, is_far: bool = False) -> None:
        self.policy, self._is_far = policy, is_far
        self._fixed = {plain_host(name): address for name, address in fixed.items()}
        self._context: ToolContext | None = None
        self._asked: dict[str, asyncio.Future[None]] = {}
        self._offered: set[str] = set()
        self._refused: deque[str] = deque(maxlen=_MAX_REFUSED)
        self._names: dict[str, str] = {}  # by address: what it was looked up as

    def begin(self, context: ToolContext) -> None:
        """A call begins: what is asked from now on belongs to it."""
        self._context = context
        self._asked = {}
        self._names = {address: name for address, name in self._names.items() if not _is_here(address)}
        self._refused.clear()

    def notes(self) -> list[str]:
        """What was refused during the call, for the model."""
        found = list(dict.fromkeys(self._refused))
        more = [f"And {len(found) - _MAX_SHOWN} more."] if len(found) > _MAX_SHOWN else []
        told = " ".join([*(f"{each.rstrip('.')}." for each in found[:_MAX_SHOWN]), *more])
        return [f"refused by the network policy: {told} {_HOW}"] if found else []

    async def addresses(self, host: str, port: int, program: Callable[[], str]) -> list[str]:
        """Where a connection to the host may go now. Raises Denied, or ToolFailed for a name that is not known."""
        host = plain_host(host)
        await self._settle(self.policy.decide(host, port), host, port, program)
        if literal_address(host) is not None:
            found = [host]
        else:
            found = [self._fixed[host]] if host in self._fixed else await addresses_of(host, port)
        if self._is_far and host not in self._fixed and any(map(_is_here, found)):
            why = f"{with_port(host, port)} is a service of the machine of Handrail, to which there is no way from here"
            await self._settle(HostRuling(Verdict.DENY, why), host, port, program)
        if found == [host]:
            return found
        for address in found:
            await self._settle(self.policy.decide_address(host, port, address), address, port, program)
        return found

    async def look_up(self, name: str, program: Callable[[], str]) -> list[str]:
        """The addresses of a name for a program that will connect by itself: it is not asked again about these."""
        found = await self.addresses(name, 0, program)
        self._names.update(dict.fromkeys(found, plain_host(name)))
        return found

    async def connect(self, address: str, port: int, program: Callable[[], str]) -> str:
        """A program connects by itself. Returns the name that it has looked up, or the address. Raises Denied."""
        address = plain_host(address)
        name = self._names.get(address, "")
        by_lookup, ruling = self.policy.decide(name or address, 0), self.policy.decide(name or address, port)
        if name and by_lookup.verdict is ruling.verdict is Verdict.ASK:
            # Its lookup was the question. Where a pattern allows the lookup, that says nothing about other ports.
            ruling, port = by_lookup, 0
        await self._settle(ruling, name or address, port, program)
        return name or address

    async def misplaced(self, secret: str, host: str, port: int, program: Callable[[], str]) -> None:
        """The placeholder of a secret is about to be sent to a host that may not have it. Raises Denied."""
        why = f"sends the placeholder of the secret {secret} to {with_port(host, port)}, which may not have it"
        details = {"rule": f"secret.{secret}.misplaced", "why": why, "once": True}
        await self._ask(f"{program()} wants {with_port(host, port)}: secret {secret}", details, why)

    def refuse(self, why: str) -> None:
        """Note for the model what was refused for another reason."""
        self._refused.append(why)

    async def _settle(self, ruling: HostRuling, host: str, port: int, program: Callable[[], str]) -> None:
        if ruling.verdict is Verdict.ALLOW:
            return
        where = with_port(host, port)
        rule, why = f"net.host.{where}", ruling.why
        if ruling.listed:
            rule = f"net.{ruling.listed}.host.{where}"
            if ruling.listed not in self._offered:
                self._offered.add(ruling.listed)
                rule = f"net.{ruling.listed}"
                some = ", ".join(pattern.text for pattern in self.policy.lists[ruling.listed][:5])
                why += f"; a longer yes is for the whole list {ruling.listed} ({some}, ...)"
        details = {"rule": rule, "why": why, "denied": ruling.verdict is Verdict.DENY}
        await self._ask(f"{program()} wants {where}", details, where)

    async def _ask(self, text: str, details: Mapping[str, object], key: str) -> None:
        """One question per key and call, whoever waits for it."""
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = asyncio.ensure_future(self._review(text, details))
        try:
            await asyncio.shield(asked)
        except Denied as error:
            self._refused.append(f"{text}: {str(error).removeprefix('Not run: ')}")
            raise

    async def _review(self, text: str, details: Mapping[str, object]) -> None:
        context = self._context
        gate = context.gate if context is not None else None
        if context is None or gate is None:
            raise Denied(f"{details['why']}; {_NOBODY}")
        # An answer that came with the call was given to another question.
        context = dataclasses.replace(context, caller=context.caller._replace(answered=()), effects=None)
        waiting = gate.review([Action(ActionKind.CONNECT, text, details=details)], context)
        if waiting is not None:
            await waiting


def _is_here(address: str) -> bool:
    literal = literal_address(address)
    return literal is not None and (literal.is_loopback or literal.is_unspecified)


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
    """Why an MCP server is not reached at a URL; empty if it is. No call is under way when it is connected to, so nobody can be
    asked about a host that is not listed."""
    try:
        target = target_of(url)
        policy = HostPolicy(config.network, asks=config.network.contain == "on")
        ruling = policy.decide(plain_host(target.host), target.port)
    except (InvalidArguments, ValueError):  # it has none, or cannot be used
        return ""
    if ruling.verdict is Verdict.ASK:
        return f"it {ruling.why}, and nobody can be asked before it is connected to. {_HOW}"
    return ruling.why
