"""The agent: ask a model, run what it calls, give it the results, until it has answered. `agent.Agent` is one session;
`agent_factory.open_agent` makes one from the configuration. Inside a turn: `loop` (the turn), `models` (ask, retry, fall back;
one file per provider), `tool_calls`, `conversation` and its compaction, `events` (what a listener gets, and the budgets of a
turn), `telemetry`. What an agent keeps: `memory`, `system_prompt`; `delegation` runs child agents, `cassette` records and
replays, `agent_factory` also answers MCP servers that ask for a model."""

from ..base.lazy_module import lazy_face

__getattr__, __dir__ = lazy_face(__name__, __file__)
