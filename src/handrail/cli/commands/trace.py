"""Show a session's timeline: questions to the model, calls, approvals and child agents, with their times.

Arguments are shown, results are not. For spans in a tracing system see `telemetry` in the configuration.

\b
Examples:
  handrail trace
  handrail trace 20260703-1412 --json | jq '.moments[] | select(.kind == "tool")'
"""

from __future__ import annotations

from .. import options
from ..session_views import LAST, SessionId

cli = options.new_cli()


@cli.command()
def trace(session: SessionId = LAST, as_json: options.Json = False) -> None:
    from ...agent.agent_factory import open_store
    from ..output import emit, emit_json
    from ..session_views import chosen, session_view
    from ..timeline import as_view, lines, moments, summary
    from .approvals import open_store as open_approvals

    store = open_store()
    info = chosen(store, session)
    found = moments(store, open_approvals(), info.id)
    if as_json:
        emit_json({**session_view(info), "moments": [as_view(moment) for moment in found]})
        return
    emit(f"{info.id} · {info.title}")
    for line in lines(found):
        emit(line)
    emit(summary(found))
