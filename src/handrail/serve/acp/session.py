"""One session of an editor: an agent in a runtime of its own, so that its MCP servers, grants and mode are nobody else's."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import acp
from acp import schema

from ...agent.agent import Agent
from ...agent.agent_factory import open_agent, sampler_of
from ...agent.conversation import estimate
from ...agent.events import End, Event, ToolEnded, TurnEnded
from ...agent.models.model_selection import build, known_providers, models_at, provider_of
from ...app import Handrail
from ...approval.policy import Mode, usual_mode
from ...approval.requests import ChainApprover
from ...config.paths import state_dir
from ...config.trust import digest
from ...errors import HandrailError, ToolUnavailable
from ...mcp_client.server_config import Server, problem_of
from ...plugins.api import ChatCommand
from ...settings.services import McpServerConfig
from ...store.sessions import SessionStore
from ...tools.mcp.server_tools import McpTools
from ...types import JsonDict
from .editor_environment import EditorBackends
from .link import PRESENTATION, EditorLink
from .permissions import EditorApprover, EditorPerson
from .updates import plan_of, text_content, updates_of

log = logging.getLogger(__name__)
Prompt = str | list[JsonDict]
_TOOLSET = "handrail-acp"
# An editor that cancels has its answer in 200 ms, whatever the calls need to end.
_CANCEL_SECONDS, _INTERRUPT_EVERY = 0.12, 0.02
_LIST_SECONDS, _SERVERS_SECONDS = 10.0, 30.0
_STOPS: Mapping[End, Any] = {End.ANSWERED: "end_turn", End.INTERRUPTED: "cancelled", End.TOKENS: "max_tokens"}


class Session:
    """One conversation. The agent runs in `turns`, a loop of its own: tools that wait for the editor do not keep its messages
    from being read. `mcp` are servers to wait for, and `closing` ends it all."""

    def __init__(
        self, app: Handrail, agent: Agent, link: EditorLink, turns: asyncio.AbstractEventLoop, mcp: McpTools | None
    ) -> None:
        self.app, self.agent, self.link, self._turns, self._mcp = app, agent, link, turns, mcp
        self.closing = contextlib.ExitStack()
        self._title, self._models = "", [self.agent.models[0].name]
        self.mode = usual_mode(app.environments.settings(agent.session_id).options.get("profile")).value
        if self.mode != Mode.AUTO:  # otherwise the gate is loaded with the first action
            app.gate.modes.set(agent.session_id, Mode(self.mode))
        self._lock = asyncio.Lock()
        self._cancels: set[asyncio.Event] = set()
        self._ending: asyncio.Future[Any] | None = None  # a cancelled turn that still cleans up

    @property
    def id(self) -> str:
        return self.agent.session_id

    @property
    def plugin_commands(self) -> Mapping[str, ChatCommand]:
        return self.app.plugins.contributions.chat_commands if self.app.plugins else {}

    async def prompt(self, content: Prompt) -> schema.PromptResponse:
        """One turn. A prompt that comes during another turn waits for its end."""
        cancel = asyncio.Event()
        self._cancels.add(cancel)
        try:
            async with self._lock:
                if self._ending is not None:
                    await asyncio.wait({self._ending})
                return await self._turn(content, cancel)
        finally:
            self._cancels.discard(cancel)

    def cancel(self) -> None:
        for each in self._cancels:
            each.set()
        self.agent.interrupt("the user cancelled")

    async def _turn(self, content: Prompt, cancel: asyncio.Event) -> schema.PromptResponse:
        is_shown = not cancel.is_set()

        def listen(event: Event) -> None:
            for update in updates_of(event, self.link, self.agent.cwd) if is_shown else ():
                self.link.send(update)
            if isinstance(event, ToolEnded) and event.tool == "todo" and is_shown:
                self.link.send(plan_of(self.agent.todos.items()))

        work = asyncio.ensure_future(self.in_turns(self._answer(content, listen)))
        cancelled = asyncio.ensure_future(cancel.wait())
        await asyncio.wait({work, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        cancelled.cancel()
        if not work.done():
            self._ending = asyncio.ensure_future(self._stop(work))
            await asyncio.wait({self._ending}, timeout=_CANCEL_SECONDS)
        is_shown = False
        for call_id in list(self.link.open_calls):
            del self.link.open_calls[call_id]
            self.link.send(acp.update_tool_call(call_id, status="failed", content=text_content("cancelled")))
        ended = work.result() if work.done() else None
        if ended is not None:
            self._send_state(ended)
        await self.link.flush()
        if ended is None:
            return schema.PromptResponse(stop_reason="cancelled")
        if ended.end is End.FAILED:
            raise acp.RequestError(-32603, ended.reason)
        sent, answered, cached, _ = ended.usage
        counts: Any = {"input_tokens": sent, "output_tokens": answered, "cached_read_tokens": cached}
        usage = schema.Usage(total_tokens=sent + answered, **counts)
        return schema.PromptResponse(stop_reason=_STOPS.get(ended.end, "max_turn_requests"), usage=usage)

    async def _answer(self, content: Prompt, listen: Callable[[Event], object]) -> TurnEnded:
        if self._mcp is not None:  # a model should not begin without the tools that its user has just configured
            await asyncio.to_thread(self._mcp.connections.wait, _SERVERS_SECONDS)
            self._mcp = None
        return await self.agent.arun(content, listen)

    async def _stop(self, work: asyncio.Future[Any]) -> None:
        """Interrupt until it has ended: a turn that has not quite begun forgets an interruption."""
        while not work.done():
            self.agent.interrupt("the user cancelled")
            await asyncio.wait({work}, timeout=_INTERRUPT_EVERY)
        work.exception()  # nobody else may ask for it

    def _send_state(self, ended: TurnEnded) -> None:
        """Why a turn was cut short, the title if it is new, and how full the context is."""
        if ended.end not in (End.ANSWERED, End.INTERRUPTED, End.FAILED):
            self.link.send(acp.update_agent_message_text(f"\n[{ended.reason}]"))
        info = self.agent.store.get(self.id)
        if info.title and info.title != self._title:
            self._title = info.title
            self.link.send(schema.SessionInfoUpdate(session_update="session_info_update", title=info.title))
        cost = None if info.cost is None else schema.Cost(amount=info.cost, currency="USD")
        used, size = estimate(self.agent.loop.conversation), self.agent.models[0].context_tokens
        self.link.send(schema.UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost))

    def state(self) -> JsonDict:
        """The modes and options, for the answer to whoever opens the session."""
        may_lift = not self.app.gate.settings.started_by_agent
        modes = [each for each in PRESENTATION["modes"] if each["id"] != "yolo" or may_lift]
        state = schema.SessionModeState(current_mode_id=self.mode, available_modes=modes)
        return {"modes": state, "config_options": self.config_options()}

    def set_mode(self, mode: str) -> None:
        if mode not in [each.id for each in self.state()["modes"].available_modes]:
            raise acp.RequestError.invalid_params({"modeId": mode})
        self.mode = mode
        self.app.gate.modes.set(self.id, Mode(mode))

    def config_options(self) -> list[Any]:
        models = {name: name for name in self._models}
        options = [_select("model", "Model", self.agent.models[0].name, models, category="model")]
        if self.link.has_terminals:
            choices = {"own": "Handrail's own shell", "editor": "The editor's terminals"}
            now = "editor" if self.link.uses_terminals else "own"
            options.append(_select("terminal", "Commands run in", now, choices))
        return options

    async def set_config_option(self, name: str, value: object) -> None:
        option = next((each for each in self.config_options() if each.id == name), None)
        if option is None or value not in [each.value for each in option.options]:
            raise acp.RequestError.invalid_params({"configId": name, "value": value})
        if name == "terminal":
            self.link.uses_terminals = value == "editor"
            return
        config, providers = self.app.config.model, known_providers(self.app.plugins)
        self.agent.use(await asyncio.to_thread(build, config, name=str(value), providers=providers))

    async def list_models(self) -> None:
        """Offer the models that the provider has. What cannot be listed leaves the choice as it was."""
        config, providers = self.app.config.model, known_providers(self.app.plugins)
        with contextlib.suppress(HandrailError, TimeoutError, OSError):
            listing = models_at(provider_of(config, providers=providers), config, providers)
            names = await asyncio.wait_for(listing, _LIST_SECONDS)
            self._models = list(dict.fromkeys([*self._models, *config.fallbacks, *names]))
            options = self.config_options()
            self.link.send(schema.ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    async def in_turns(self, work: Awaitable[Any]) -> Any:
        """Do something with the agent in its own loop."""

        async def run() -> Any:
            return await work

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self._turns))

    async def close(self) -> None:
        self.cancel()
        if self._ending is not None:
            await asyncio.wait({self._ending}, timeout=5)
        await asyncio.to_thread(self.closing.close)
        self.link.close()


def open_session(
    link: EditorLink,
    turns: asyncio.AbstractEventLoop,
    store: SessionStore,
    *,
    cwd: str,
    servers: Sequence[Any] = (),
    **options: Any,
) -> Session:
    """A session with a runtime of its own, with the options of `open_agent`. Blocks; raises HandrailError."""
    with contextlib.ExitStack() as closing:
        app = Handrail(backends=EditorBackends(link), person=EditorPerson(link))
        closing.callback(app.close)
        if (mcp := _editor_servers(app, servers, cwd)) is not None:
            closing.callback(mcp.close)
        named = [[f"mcp-{name}" for name in each.connections.servers] if each else [] for each in (app.mcp, mcp)]
        enabled = [*(app.config.tools.enabled_toolsets or [_TOOLSET, *named[0]]), *named[1]]
        agent = open_agent(app, store=store, toolsets=enabled, platform="acp", cwd=cwd, **options)
        closing.callback(agent.close)
        link.session_id = agent.session_id
        if mcp is not None:
            mcp.connections.requests.sampler = sampler_of(agent.models, app.runtime.hooks.invoke)
        mine, otherwise = EditorApprover(link, cwd, app), app.runtime.approver
        app.runtime.approver = mine if otherwise is None else ChainApprover(mine, otherwise)
        session = Session(app, agent, link, turns, mcp)
        session.closing = closing.pop_all()
        return session


def _editor_servers(app: Handrail, given: Sequence[Any], cwd: str) -> McpTools | None:
    """The MCP servers that the editor passes, for this runtime alone. One that cannot be used is reported, and left out."""
    taken = {} if app.mcp is None else app.mcp.connections.servers
    servers: dict[str, Server] = {}
    for each in given:
        name = re.sub(r"[^A-Za-z0-9]+", "-", each.name).strip("-")[:24] or "editor"
        name = f"{name}-editor" if name in taken else name
        server = Server(name, _settings_of(each, cwd), "the editor")
        if problem := problem_of(server) or ("there are two of that name" if name in servers else ""):
            log.warning("MCP server %s of the editor is not used: %s", each.name, problem)
        else:
            servers[name] = server
    if not servers:
        return None
    # Definitions are pinned per set of servers: another project may pass another server under the same name.
    folder = state_dir(app.config.home) / "mcp" / f"editor-{digest({'servers': repr(servers).encode()})[:12]}"
    tools = McpTools(list(servers.values()), app.registry, folder=folder, config=app.config)
    try:
        tools.start()
    except ToolUnavailable as error:
        log.warning("%s", error)
        tools.close()
        return None
    app.toolsets.expected |= {f"mcp-{name}" for name in servers}
    return tools


def _settings_of(server: Any, cwd: str) -> McpServerConfig:
    if isinstance(server, schema.McpServerStdio):
        env = {each.name: each.value for each in server.env}
        return McpServerConfig(command=server.command, args=tuple(server.args), env=env, cwd=cwd)
    if isinstance(server, schema.HttpMcpServer | schema.SseMcpServer):
        headers = {each.name: each.value for each in server.headers}
        return McpServerConfig(url=server.url, headers=headers, type=server.type)
    return McpServerConfig()  # a transport that we did not offer


def _select(name: str, title: str, now: str, choices: Mapping[str, str], **more: Any) -> Any:
    options = [schema.SessionConfigSelectOption(value=value, name=label) for value, label in choices.items()]
    fields: Any = {"type": "select", "id": name, "name": title, "current_value": now, "options": options, **more}
    return schema.SessionConfigOptionSelect(**fields)
