"""An agent in one line, from the configuration: its model, its tools, its store of sessions.

with open_agent() as agent:
    print(agent.run("What is in this folder?").answer)
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from ..app import Handrail
from ..config.paths import state_dir
from ..errors import SessionNotFound
from ..model_tools import default
from ..plugins.api import Contributions
from ..protocols import Model
from ..settings.services import ModelConfig
from ..store.sessions import SessionInfo, SessionStore
from ..types import NO_CALLER, Caller, JsonDict
from .agent import Agent
from .events import Budgets
from .models.base import ModelRequests, StreamingModel, ask_aside, streaming
from .models.model_selection import build, build_helper, known_providers
from .telemetry import Telemetry, start_exporting

# In place of a session's id: the one that was used last in this folder.
LAST = "last"
_MAX_SEARCHED = 50
_NO_SESSION = {"session_id": "", "platform": ""}


def open_store(home: str = "") -> SessionStore:
    """The session store in `home`, by default this user's. Close it."""
    return SessionStore(state_dir(home) / "sessions.db")


def open_agent(  # noqa: PLR0913  each is an option that a user may set at the start
    app: Handrail | None = None,
    *,
    model: str | None = None,
    models: Sequence[Model | StreamingModel] | None = None,
    resume: str | None = None,
    store: SessionStore | None = None,
    toolsets: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
    budgets: Budgets | None = None,
    platform: str = "cli",
    cwd: str | None = None,
    id: str | None = None,  # noqa: A002  the session's
    environment: Mapping[str, Any] | None = None,
    caller: Caller = NO_CALLER,
) -> Agent:
    """What is not given comes from the configuration and the environment. Closing the agent closes a store that it opened.
    `model` is a name, `models` are the models themselves, in the order in which they are asked. `resume` is a session's id or
    `LAST`; `id` is one to continue, or to begin under that name. `environment` and `caller` are as for `Agent`. Raises
    ModelError with what to do when there is no model, and SessionNotFound."""
    app = app or default()
    config, providers = app.config, known_providers(app.plugins)
    chosen = list(models) if models is not None else list(build(config.model, name=model, providers=providers))
    if app.mcp is not None:
        app.mcp.connections.requests.sampler = sampler_of(chosen, app.runtime.hooks.invoke)
    kept = store or open_store(config.home)
    try:
        session = _session(kept, resume, cwd or os.getcwd()) if resume else None
        if id is not None:
            session = kept.begin(id, platform=platform, model=streaming(chosen[0]).name, cwd=cwd or os.getcwd())
        agent = Agent(
            app,
            chosen,
            store=kept,
            session=session,
            toolsets=config.tools.enabled_toolsets if toolsets is None else toolsets,
            without=config.tools.disabled_toolsets if without is None else without,
            budgets=budgets or budgets_of(config.model),
            platform=platform,
            # A session continues in its folder, if that still exists.
            cwd=cwd or (session.cwd if session is not None and os.path.isdir(session.cwd) else None),
            environment=environment,
            caller=caller,
            telemetry=Telemetry(content=config.telemetry.content),
            helper=build_helper(config.model, name=model, providers=providers) if models is None else None,
        )
    except BaseException:
        if store is None:
            kept.close()
        raise
    if store is None:
        agent.closing.callback(kept.close)
    if config.telemetry.enabled:
        agent.closing.callback(start_exporting())
    return agent


def budgets_of(config: ModelConfig) -> Budgets:
    limits = (config.max_turn_tokens or None, config.max_turn_seconds or None, config.max_turn_cost or None)
    return Budgets(config.max_model_calls, *limits)


def _session(store: SessionStore, wanted: str, cwd: str) -> SessionInfo:
    if wanted != LAST:
        return store.get(wanted)
    # A session without a title has no message yet: it may be another terminal's.
    latest = next((info for info in store.recent(limit=_MAX_SEARCHED, cwd=cwd) if info.title), None)
    if latest is not None:
        return latest
    raise SessionNotFound(f"there is no session in {cwd} yet; `handrail sessions list` shows those of other folders")


async def answer_once(
    plugins: Contributions, messages: Sequence[Mapping[str, Any]], options: JsonDict, hook: Callable[..., object]
) -> tuple[Any, ...]:
    """One answer for a plugin: its text, the provider, the model and the usage. It comes from the models of the newest session,
    else from those that are configured. Raises ModelError."""
    agents, providers = list(plugins.sessions.values()), {**plugins.model_providers, **known_providers(None)}
    models = agents[-1].models if agents else build(plugins.config.model, providers=providers)
    about = {"session_id": agents[-1].session_id, "platform": agents[-1].platform} if agents else _NO_SESSION
    requests = ModelRequests(models).tuned(models[0].name, options)
    answer = await ask_aside(requests, messages, "plugin", partial(hook, **about))
    provider = next((getattr(each, "provider", "") for each in models if each.name == answer.model), "")
    sent, answered, cached, cost = answer.usage
    tokens = {"input_tokens": sent, "output_tokens": answered, "total_tokens": sent + answered}
    usage = SimpleNamespace(**tokens, cache_read_tokens=cached, cache_write_tokens=0, cost_usd=cost)
    return str(answer.message["content"]), provider, answer.model, usage


def sampler_of(
    models: Sequence[Model | StreamingModel], hook: Callable[..., object]
) -> Callable[[list[JsonDict]], Awaitable[tuple[str, str]]]:
    """Returns a function that asks: the text of the first model that answers, and its name. No tools are offered."""

    async def ask(messages: list[JsonDict]) -> tuple[str, str]:
        requests = ModelRequests([streaming(each) for each in models], attempts=1)
        answer = await ask_aside(requests, messages, "mcp", partial(hook, **_NO_SESSION))
        return str(answer.message["content"]), answer.model

    return ask
