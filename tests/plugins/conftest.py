"""Plugins on disk, and a registry of their own to load them into."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.config.paths import find_plugins
from handrail.core.registry import ToolRegistry
from handrail.plugins.hook_manager import HookManager
from handrail.plugins.loader import Plugin, Plugins
from handrail.settings.sections import PluginConfig


class Bench:
    """Write plugins, load them, and see what became of them."""

    def __init__(self, home: Path, project: Path, registry: ToolRegistry, hooks: HookManager) -> None:
        self.user, self.project = home / "plugins", project / ".handrail" / "plugins"
        self.registry, self.hooks = registry, hooks
        self.settings: dict[str, PluginConfig] = {}
        self.plugins: Plugins | None = None

    def write(self, name: str, source: str, *, project: bool = False, **more: str) -> Path:
        """A single file, or a package when there are more: `plugin_yaml="..."`, `inner_py="..."`."""
        folder = self.project if project else self.user
        folder.mkdir(parents=True, exist_ok=True)
        if not more:
            (folder / f"{name}.py").write_text(source)
            return folder / f"{name}.py"
        root = folder / name
        root.mkdir(exist_ok=True)
        (root / "__init__.py").write_text(source)
        for inner, text in more.items():
            (root / inner.replace("_yaml", ".yaml").replace("_py", ".py")).write_text(text)
        return root

    def load(self) -> dict[str, Plugin]:
        if self.plugins is not None:
            self.plugins.unload()
        self.plugins = Plugins(self.registry, self.hooks, self.settings)
        loaded = self.plugins.load(find_plugins(self.project.parent))
        return {plugin.name: plugin for plugin in reversed(loaded)}


@pytest.fixture
def bench(
    home: Path, tmp_path: Path, registry: ToolRegistry, hook_manager: HookManager, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench]:
    monkeypatch.chdir(tmp_path)
    bench = Bench(home, tmp_path, registry, hook_manager)
    yield bench
    if bench.plugins is not None:
        bench.plugins.unload()
    for name in [name for name in sys.modules if name.startswith("handrail_plugins")]:
        del sys.modules[name]


@pytest.fixture
def builtin(registry: ToolRegistry) -> Callable[[], Any]:
    """A tool of our own that plugins would like to replace; calling gives who answers."""
    schema = {"description": "x", "parameters": {"type": "object", "properties": {}}}
    registry.register(name="theirs", toolset="core", schema=schema, handler=lambda args, **_: "built in")
    return lambda: registry.dispatch("theirs", {})
