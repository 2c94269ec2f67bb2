"""An agent in one line, from what is configured: its model, its tools, its store of sessions.

with open_agent() as agent:
    print(agent.run("What is in this folder?").answer)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..config.paths import state_dir
from ..errors import SessionNotFound
from ..store.sessions import SessionInfo, SessionStore
from .agent import Agent
from .budgets import Budgets
from .models.model_selection import build, build_helper
from .sampling import sampler_of
from .telemetry import Telemetry, start_exporting

if TYPE_CHECKING:
    from ..app import Handrail
    from ..protocols import Model
    from ..settings.services import ModelConfig
    from .models.base import StreamingModel

# In place of a session's id: the one that was used last in this folder.
LAST = "last"
_LOOKED_AT = 50


def open_store() -> SessionStore:
    """The sessions of this user. Close it."""
    return SessionStore(state_dir() / "sessions.db")


def open_agent(  # noqa: PLR0913  each is something that a person may say at the start
    handrail: Handrail | None = None,
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
) -> Agent:
    """What is not given comes from the configuration and the environment. Closing the agent closes a store made here.

    `model` is a name, `models` are the models themselves, in the order in which they are asked. `resume` is a session's id
    or `LAST`. Raises ModelError with what to do when there is no model, and SessionNotFound.
    """
    if handrail is None:
        from ..model_tools import default

        handrail = default()
    config = handrail.config
    asked = list(models) if models is not None else list(build(config.model, name=model))
    if handrail.mcp is not None:
        handrail.mcp.ask_model_by(sampler_of(asked))
    kept = store or open_store()
    try:
        session = _session(kept, resume, cwd or os.getcwd()) if resume else None
        agent = Agent(
            handrail,
            asked,
            store=kept,
            session=session,
            toolsets=config.tools.enabled_toolsets if toolsets is None else toolsets,
            without=config.tools.disabled_toolsets if without is None else without,
            budgets=budgets or budgets_of(config.model),
            platform=platform,
            cwd=cwd or _folder_of(session),
            telemetry=Telemetry(content=config.telemetry.content),
            helper=build_helper(config.model, name=model) if models is None else None,
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
    """What a turn may take, as configured."""
    limits = (config.max_turn_tokens or None, config.max_turn_seconds or None, config.max_turn_cost or None)
    return Budgets(config.max_model_calls, *limits)


def _session(store: SessionStore, wanted: str, cwd: str) -> SessionInfo:
    if wanted != LAST:
        return store.get(wanted)
    # One without a title was opened, but nothing was said in it yet: it may be another terminal's.
    latest = next((info for info in store.recent(limit=_LOOKED_AT, cwd=cwd) if info.title), None)
    if latest is None:
        raise SessionNotFound(
            f"no session was held in {cwd} yet; `handrail sessions list` shows those of other folders"
        )
    return latest


def _folder_of(session: SessionInfo | None) -> str | None:
    """A session goes on where it was, if that is still there."""
    return session.cwd if session is not None and os.path.isdir(session.cwd) else None
