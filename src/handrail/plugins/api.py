"""The argument of a plugin's `register(api)`: everything that a plugin can add."""

import inspect
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from ..base.suggest import did_you_mean
from ..base.workers import run_async
from ..config.json_file import JsonFile
from ..config.paths import state_dir
from ..core.outcome import error_of, parsed
from ..core.registry import ToolRegistry
from ..errors import RegistrationError, ToolFailed
from ..settings.sections import ToolsetConfig
from ..settings.services import ProviderSpec
from ..types import JsonDict
from .hook_manager import HookManager
from .hook_specs import HOOK_NAMES
from .middleware import KINDS, Middleware
from .original_hooks import adapted, following_skills, judging_speech, original_hooks, rewriting, with_their_names

log = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable[..., Any])
# Takes the name of an argument and what is written of it so far, returns the values that it may become.
Complete = Callable[[str, str], Sequence[str]]


class Prompt(NamedTuple):
    """A prompt by name. `render(arguments, client)` returns its text, or messages `{"role": ..., "content": part}` with parts
    like those of a multimodal result; it may be async. Each argument has a name, and may have a description and `required`."""

    name: str
    description: str
    render: Callable[..., Any]
    arguments: tuple[JsonDict, ...] = ()
    complete: Complete | None = None


class Resource(NamedTuple):
    """Something to read by its address. An address with gaps, such as `notes://{id}`, is a template for many, and
    `read` gets what stands in the gaps by name. It returns text or bytes, and may be async."""

    uri: str
    name: str
    read: Callable[..., Any]
    description: str = ""
    mime_type: str = "text/plain"
    complete: Complete | None = None


class ChatCommand(NamedTuple):
    """A slash command of a plugin: `run` gets what is typed behind the name, and returns what the user sees."""

    run: Callable[[str], Any]
    about: str = ""
    hint: str = ""

    def reply(self, text: str) -> str:
        """What the user sees. Raises ToolFailed for whatever goes wrong in the plugin."""
        try:
            made = self.run(text)
            return str((run_async(made) if inspect.isawaitable(made) else made) or "")
        except Exception as error:  # a plugin may raise anything
            raise ToolFailed(f"the command failed: {type(error).__name__}: {error}") from error


@dataclass(slots=True)
class Contributions:
    """What the plugins added besides tools and hooks, by name. The first plugin with a name keeps it."""

    toolsets: dict[str, ToolsetConfig] = field(default_factory=dict)
    environments: dict[str, Any] = field(default_factory=dict)
    approval_rules: dict[str, Any] = field(default_factory=dict)
    approvers: dict[str, Any] = field(default_factory=dict)
    commands: dict[str, Callable[[Any], None]] = field(default_factory=dict)
    model_providers: dict[str, ProviderSpec] = field(default_factory=dict)
    chat_commands: dict[str, ChatCommand] = field(default_factory=dict)
    prompts: dict[str, Prompt] = field(default_factory=dict)
    resources: dict[str, Resource] = field(default_factory=dict)
    skills: dict[str, str] = field(default_factory=dict)  # their folders
    config: Any = None  # of the Handrail that the plugins belong to
    sessions: dict[str, Any] = field(default_factory=dict)  # the agents that users talk to now, by session
    loaded: set[str] = field(default_factory=set)  # the plugins
    data: Path = field(default_factory=lambda: state_dir() / "plugin-data")


class _NoPlatformActions:
    """Every action on a chat platform is answered as for a plugin that may not act there."""

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def act(**_: Any) -> JsonDict:
            return {"ok": False, "error": "capability_not_granted", "detail": f"{verb} is not offered to plugins here"}

        return act


class PluginApi:
    """Adds things for one plugin. `settings` is what the user configured under `plugins.NAME.settings`."""

    def __init__(
        self,
        plugin: str,
        registry: ToolRegistry,
        hooks: HookManager,
        contributions: Contributions,
        settings: Mapping[str, Any] | None = None,
        root: Path | None = None,
    ) -> None:
        self.plugin = plugin
        self.settings = dict(settings or {})
        self.provided: dict[str, list[str]] = {}
        self._registry, self._hooks, self._contributions = registry, hooks, contributions
        self._hooked: set[tuple[str, Callable[..., Any]]] = set()
        self._root = root  # the plugin's file, or its folder
        self._warned: set[str] = set()

    def close(self) -> None:
        """Take nothing more: the plugin took too long to load."""
        self._registry, self._hooks, self._contributions = ToolRegistry(), HookManager(), Contributions()

    def register_tool(self, name: str, *places: Any, **properties: Any) -> bool:
        """Add a tool, with the arguments of `registry.register`. False when the name is taken."""
        added = self._registry.register(name, *places, **properties | {"owner": self.plugin})
        if added:
            self._note("tools", name)
        return added

    def tool(self, *, toolset: str, **properties: Any) -> Callable[[Function], Function]:
        """Add a typed function as a tool, as a decorator."""

        def decorate(function: Function) -> Function:
            self._registry.tool(toolset=toolset, **properties | {"owner": self.plugin})(function)
            self._note("tools", properties.get("name") or function.__name__)
            return function

        return decorate

    def deregister_tool(self, name: str) -> bool:
        """Remove a tool: the plugin's own, or any other if the user's configuration allows it."""
        return self._registry.deregister(name, owner=self.plugin)

    def hook(self, name: str, function: Callable[..., Any], **options: Any) -> None:
        """Add a function for one hook; the options are those of `@hookimpl`. The same function is added once."""
        if (name, function) in self._hooked:
            return
        self._hooked.add((name, function))
        self._hooks.register_hook(name, function, plugin=self.plugin, **options)
        self._note("hooks", name)

    def register_hook(self, name: str, callback: Callable[..., Any]) -> None:
        """`hook` for plugins of Hermes Agent: arguments by their names there, and hooks that are never called here."""
        if name == "pre_tts_synthesis":
            self.hook("pre_tool_call", judging_speech(callback), policy=True)
        elif name == "on_skill_lifecycle":
            self.hook("post_tool_call", following_skills(callback))
        elif name not in HOOK_NAMES:
            why = original_hooks()["never_called"].get(name)
            told = f"is never called: {why}" if why else f"is not known; {did_you_mean(name, HOOK_NAMES)}"
            self._warn(f"the hook {name}", told)
        elif (name, callback) not in self._hooked:
            # There, too, a failure blocks the call.
            self.hook(name, adapted(name, callback, self._hooks.traces), policy=name == "pre_tool_call")
            self._hooked.add((name, callback))

    def register_command(
        self, name: str, handler: Callable[[str], Any], description: str = "", args_hint: str = ""
    ) -> None:
        """Add a slash command for chats: a function of what is typed behind its name, which returns the reply."""
        name = name.lstrip("/")
        if name in self._contributions.chat_commands:
            self._warn(f"register_command({name!r})", "is ignored: another plugin has that command")
        else:
            self._contribute("chat_commands", name, ChatCommand(handler, description, args_hint))

    def register_cli_command(
        self,
        name: str,
        help: str,  # noqa: A002  the name that plugins know
        setup_fn: Callable[[Any], None],
        handler_fn: Callable[[Any], Any] | None = None,
        description: str = "",
    ) -> None:
        """Add a command of `handrail` as plugins of Hermes Agent do: `setup_fn` describes to argparse what the handler gets."""

        def add_to(app: Any) -> None:
            from argparse import ArgumentParser  # of a command line, which has loaded both

            from typer import Context

            def run(context: Any) -> None:
                parser = ArgumentParser(prog=context.command_path, description=description or help)
                setup_fn(parser)
                given = parser.parse_args(context.args)
                sys.exit((handler_fn or given.func)(given))

            run.__annotations__["context"] = Context
            options = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
            app.command(name, help=help, context_settings=options)(run)

        self.command(name, add_to)

    def dispatch_tool(self, name: str, args: Mapping[str, Any], **context: Any) -> Any:
        """Call a tool, with the gate and limits of every call, for the agent that the user talks to."""
        if context.pop("parent_agent", None) is None and (agent := self._session(None)) is not None:
            context = {"agent": agent, "session_id": agent.session_id, **context}
        return self._registry.dispatch(name, dict(args), **context)

    def call_mcp(self, server: str, tool: str, arguments: Mapping[str, Any] | None = None, **_: Any) -> JsonDict:
        """Call a tool of an MCP server, with the gate and limits of every call: `ok`, and its `result` or `error`."""
        outcome = self.dispatch_tool(f"mcp__{server}__{tool}", arguments or {})
        if (failure := error_of(outcome)) is not None:
            return {"ok": False, "error": str(failure.get("error"))}
        found = parsed(outcome)
        if not isinstance(found, dict) or "content" not in found:
            return {"ok": True, "result": outcome}
        more = {"structuredContent": found["structured"]} if "structured" in found else {}
        return {"ok": True, "result": found["content"], **more}

    @property
    def state(self) -> JsonFile:
        """What the plugin keeps for itself from run to run."""
        return self._kept("json")

    def _kept(self, kind: str) -> JsonFile:
        return JsonFile(self._contributions.data / f"{quote(self.plugin, safe='')}.{kind}")

    def get_config(self, key: str, default: Any = None) -> Any:
        """A setting by its name, as `retry.attempts`: the user's, else what `set_config` has kept."""
        found: Any = self.settings
        for part in key.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return self._kept("settings.json").get(key, default) if found is None else found

    def set_config(self, key: str, value: Any) -> None:
        """Keep a setting beside the user's configuration, which is not changed and comes first."""
        self._kept("settings.json").set(key, value)

    def has_plugin(self, name: str) -> bool:
        """Whether another plugin is loaded; those of `requires_plugins` are loaded before this one."""
        return name in self._contributions.loaded

    def has_capability(self, name: str) -> bool:
        """Whether the user has granted it: of those of Hermes Agent there is the one to replace built-in tools."""
        return name == "tools.override" and self._registry.may_override(self.plugin)

    def inject_message(self, content: str, role: str = "user", *, session_key: str | None = None) -> bool:
        """Say something to an agent that a user talks to: before it asks its model again, or in its next turn. The model sees
        who says it. False if there is no such session; with several of them, `session_key` must be the id of one."""
        agent = self._session(session_key)
        if agent is None:
            self._warn("inject_message", "reached no session; it needs a running one, and its id if there are several")
            return False
        agent.inject(f"[Message from the plugin {self.plugin}] {'' if role == 'user' else f'[{role}] '}{content}")
        return True

    def _session(self, key: str | None) -> Any:
        sessions = self._contributions.sessions
        return sessions.get(key) if key else next(iter(sessions.values())) if len(sessions) == 1 else None

    def register_middleware(self, kind: str, callback: Callable[..., Any]) -> None:
        """Change or wrap calls of tools and requests to the model, as plugins of Hermes Agent do."""
        if kind not in KINDS:
            self._warn(f"register_middleware({kind!r})", "does nothing here")
        elif kind == "tool_request":  # before every hook, and before the gate
            self.hook("pre_tool_call", rewriting(with_their_names(callback), self._hooks.traces), tryfirst=True)
        else:
            made = Middleware(self.plugin, with_their_names(callback))
            self._hooks.middleware[kind] = (*self._hooks.middleware.get(kind, ()), made)
            self._note("middleware", kind)

    def register_skill(self, name: str, path: Any, description: str = "") -> None:  # noqa: ARG002  its header says it
        """Offer a skill of the plugin's folder, by its SKILL.md: `skill_view` reads it as `PLUGIN:NAME`."""
        file = Path(path)
        folder = (file.parent if file.name == "SKILL.md" else file).absolute()
        inside = self._root if self._root is None or self._root.is_dir() else self._root.parent
        if not (folder / "SKILL.md").is_file() or (inside is not None and not folder.is_relative_to(inside)):
            self._warn(f"register_skill({name!r})", f"is ignored: {file} is no SKILL.md in the plugin's folder")
        elif (known := f"{self.plugin}:{name}") not in self._contributions.skills:
            self._contribute("skills", known, str(folder))

    @cached_property
    def llm(self) -> Any:
        """The user's model, for questions of the plugin's own: `complete`, `complete_structured`, and both for async code."""
        from .completions import Completions  # few plugins ask

        async def ask(messages: Any, options: JsonDict) -> Any:
            # By name, as the agent is a row above.
            answer_once = import_module("handrail.agent.agent_factory").answer_once
            return await answer_once(self._contributions, messages, options, self._hooks.invoke)

        return Completions(self.plugin, ask)

    platform_actions = _NoPlatformActions()
    profile_name = "default"

    def __getattr__(self, name: str) -> Any:
        """What a plugin of Hermes Agent can register there and not here is reported, and the rest of it is loaded."""
        if not name.startswith("register_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda *_, **__: self._warn(name, "does nothing here")

    def _warn(self, call: str, what: str) -> None:
        """Once per plugin and call."""
        if call not in self._warned:
            self._warned.add(call)
            log.warning("plugin %s: %s %s", self.plugin, call, what)

    def toolset(
        self, name: str, *, description: str, tools: tuple[str, ...] = (), includes: tuple[str, ...] = ()
    ) -> None:
        """Add a named bundle of tools."""
        bundle = ToolsetConfig(description=description, tools=tuple(tools), includes=tuple(includes))
        self._contribute("toolsets", name, bundle)

    def environment(self, name: str, backend: Any) -> None:
        """Add a place where commands can run: a class with `name` and `from_settings`, like a built-in backend."""
        if getattr(backend, "name", None) != name:
            raise RegistrationError(f"plugin {self.plugin!r}: the environment's class must say name = {name!r}")
        self._contribute("environments", name, backend)

    def approval_rule(self, rule: Any) -> None:
        """Add a `handrail.judge.rules.Rule`, with its examples. It can make the gate stricter, never more lenient."""
        from ..judge import assess
        from ..judge.rules.custom import checked  # loads the judge, which few plugins need

        self._contribute("approval_rules", checked(rule, assess=assess).id, rule)

    def approver(self, name: str, approver: Any) -> None:
        """Add an approver, to be named in `approvals.approver`."""
        self._contribute("approvers", name, approver)

    def command(self, name: str, add_to: Callable[[Any], None]) -> None:
        """Add a command of `handrail`: a function that gets the typer application and adds the command to it."""
        self._contribute("commands", name, add_to)

    def model_provider(self, name: str, provider: Any, *, base_url: str = "", key_variable: str = "") -> None:
        """Add a provider of models, for `model.provider` and `NAME:MODEL`: called with a model's name, base_url, api_key and
        context_tokens, it returns the model. `base_url` is its OpenAI-compatible API, if it has one."""

        def model(model_name: str, *, base_url: Any, api_key: str, context_tokens: int, **_: Any) -> Any:
            return provider(model_name, base_url=base_url, api_key=api_key, context_tokens=context_tokens)

        self._contribute("model_providers", name, ProviderSpec(model, base_url, key_variable, needs_key=False))

    def prompt(self, name: str, render: Callable[..., Any], *, description: str, **more: Any) -> None:
        """Offer MCP clients a prompt; see `Prompt`."""
        self._contribute("prompts", name, Prompt(name, description, render, **more))

    def resource(self, uri: str, read: Callable[..., Any], *, name: str, **more: Any) -> None:
        """Offer MCP clients something to read; see `Resource`."""
        self._contribute("resources", uri, Resource(uri, name, read, **more))

    def _contribute(self, kind: str, name: str, value: Any) -> None:
        table: dict[str, Any] = getattr(self._contributions, kind)
        if name in table:
            raise RegistrationError(f"plugin {self.plugin!r}: another plugin has {kind.replace('_', ' ')} {name!r}")
        table[name] = value
        self._note(kind, name)

    def _note(self, kind: str, name: str) -> None:
        self.provided.setdefault(kind, []).append(name)
