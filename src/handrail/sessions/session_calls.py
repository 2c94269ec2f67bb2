"""What the calls of a session have changed, and taking them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.loops import on_worker
from ..errors import CallNotFound

if TYPE_CHECKING:
    from ..app import Handrail
    from ..store.call_records import CallRecord
    from ..types import JsonDict


class SessionCalls:
    """For a session: those that end in `_now` are for sync code. A call of another session raises CallNotFound."""

    id: str
    _app: Handrail

    async def calls(self, count: int = 50) -> list[CallRecord]:
        """The session's calls that changed something, the newest first."""
        return await on_worker(lambda: self.calls_now(count))

    async def effects(self, number: int, *, diff: bool = False) -> JsonDict:
        """What a call has changed: paths `lost`, `changed`, `created` and `moved`, `hosts`, and what was not saved."""
        return await on_worker(lambda: self.effects_now(number, diff=diff))

    async def undo(self, number: int | None = None, **how: Any) -> JsonDict:
        """Take a call back, by default the last that changed something: see `Handrail.undo` (`only`, `force`, `dry_run`)."""
        return await on_worker(lambda: self.undo_now(number, **how))

    async def redo(self, number: int, **how: Any) -> JsonDict:
        """Bring back what an undo took back."""
        return await on_worker(lambda: self.redo_now(number, **how))

    def calls_now(self, count: int = 50) -> list[CallRecord]:
        return self._app.effects.latest(count, session=self.id)

    def effects_now(self, number: int, *, diff: bool = False) -> JsonDict:
        return self._app.effects.describe(self._own(number), diff=diff)

    def undo_now(self, number: int | None = None, **how: Any) -> JsonDict:
        if number is None:
            last = self._app.effects.last(1, session=self.id)
            if not last:
                raise CallNotFound("no call of this session has changed anything that could be undone")
            number = last[0].number
        return self._app.effects.undo(self._own(number), session=self.id, task=self.id, **how)

    def redo_now(self, number: int, **how: Any) -> JsonDict:
        return self._app.effects.redo(self._own(number), session=self.id, task=self.id, **how)

    def _own(self, number: int) -> int:
        if self._app.effects.records.get(number).session != self.id:
            raise CallNotFound(f"call {number} was made by another session; app.undo({number}) takes back any call")
        return number
