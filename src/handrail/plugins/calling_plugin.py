"""Whose code is it that calls: of which plugin.

A right is bound to the plugin that asks, not to how it asks: a `functools.partial`, an object with `__call__` or a thread of its
own are all found by the code that stands on the stack. Where nothing on the stack is known, nobody vouches for the caller.

This keeps plugins from replacing a tool by accident or by cunning. It is no wall against malice: a plugin is Python in this
process and can change anything in it. What keeps malice out is what is loaded at all.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import FrameType

NOBODY = "?"  # an owner with no rights
# They call what they are given: that they are on the stack says nothing of who gave it.
_GO_BETWEENS = frozenset(
    {__name__, "handrail.core.registry", "handrail.base.workers", "handrail.base.async_bridge", "handrail.base.loops"}
)


class Authorship:
    """Knows which modules belong to which plugin. A package stands for all that is in it."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._here = threading.local()

    def add(self, module_name: str, plugin: str) -> None:
        self._owners[module_name] = plugin

    @contextlib.contextmanager
    def loading(self, plugin: str) -> Iterator[None]:
        """While a plugin is imported, all that happens in this thread is its doing."""
        before = getattr(self._here, "plugin", "")
        self._here.plugin = plugin
        try:
            yield
        finally:
            self._here.plugin = before

    def owner_of_caller(self) -> str:
        """The plugin whose code called, "" for code that is no plugin's, `NOBODY` when no code tells."""
        loading: str = getattr(self._here, "plugin", "")
        if loading or not self._owners:
            return loading
        someone = False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            module = frame.f_globals.get("__name__")
            module = module if isinstance(module, str) else ""
            owner = self._owner(module)
            if owner:
                return owner
            someone = someone or _vouches(module)
            frame = frame.f_back
        return "" if someone else NOBODY

    def _owner(self, module: str) -> str:
        while module:
            if module in self._owners:
                return self._owners[module]
            module = module.rpartition(".")[0]
        return ""


def _vouches(module: str) -> bool:
    return bool(module) and module not in _GO_BETWEENS and module.partition(".")[0] not in sys.stdlib_module_names
