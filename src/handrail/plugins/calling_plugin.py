"""Which plugin's code is calling.

A permission belongs to a plugin, however it calls: through a `functools.partial`, an object with `__call__` or a thread of its
own, its code is on the stack. Where nothing on the stack is known, the caller has no permissions.

This keeps plugins from replacing a tool by accident or by trick. It is not a security boundary: a plugin is Python in this
process and can change anything in it. The boundary is which plugins are loaded at all.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from ..errors import RegistrationError

NOBODY = "?"  # an owner with no rights
# These call what they are given: they say nothing about who gave it.
_GO_BETWEENS = frozenset(
    {__name__, "handrail.core.registry", "handrail.base.workers", "handrail.base.async_bridge", "handrail.base.loops"}
)


class Authorship:
    """Knows which modules belong to which plugin. A package includes all of its modules."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._thread = threading.local()
        self._refused: set[str] = set()

    def add(self, module_name: str, plugin: str) -> None:
        self._owners[module_name] = plugin

    def refuse(self, plugin: str) -> None:
        """Take nothing more from the thread that still loads this plugin."""
        self._refused.add(plugin)

    @contextlib.contextmanager
    def loading(self, plugin: str) -> Iterator[None]:
        """While a plugin is imported, everything in this thread counts as its code."""
        before = getattr(self._thread, "plugin", "")
        self._thread.plugin = plugin
        try:
            yield
        finally:
            self._thread.plugin = before

    def owner_of_caller(self) -> str:
        """The plugin whose code called, "" for code outside plugins, `NOBODY` when the stack does not tell."""
        loading: str = getattr(self._thread, "plugin", "")
        if loading in self._refused:
            raise RegistrationError(f"plugin {loading!r} took too long to load, and is switched off in this process")
        if loading or not self._owners:
            return loading
        known = False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            module = frame.f_globals.get("__name__")
            module = module if isinstance(module, str) else ""
            owner = self._owner(module)
            if owner:
                return owner
            known = known or _vouches(module)
            frame = frame.f_back
        return "" if known else NOBODY

    def _owner(self, module: str) -> str:
        while module:
            if module in self._owners:
                return self._owners[module]
            module = module.rpartition(".")[0]
        return ""


def _vouches(module: str) -> bool:
    return bool(module) and module not in _GO_BETWEENS and module.partition(".")[0] not in sys.stdlib_module_names
