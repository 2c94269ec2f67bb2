"""A caller's session: its tools, grants, approver, environment and MCP servers in one object, closed together.

`session` has the object and its sync twin, `formats` reads a model's message and writes the answers as its provider wants
them, `own_tools` is a Handrail's view for a session that brings MCP servers of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_module

if TYPE_CHECKING:
    from .session import Result, Session, SyncSession, session

_HOMES = dict.fromkeys(("Result", "Session", "SyncSession", "session"), "handrail.sessions.session")

__all__ = ["Result", "Session", "SyncSession", "session"]
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
