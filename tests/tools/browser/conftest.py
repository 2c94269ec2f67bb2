from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.model_tools import handle_function_call

from ...services.components import require
from .. import pages

Call = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True, scope="session")
def _browser_is_there() -> None:
    require("chromium", packages="chromium", modules=("playwright",))


@pytest.fixture
def site(home: Path) -> Iterator[pages.Site]:
    """A site that the browser may reach."""
    with pages.site() as made:
        (home / "config.yaml").write_text(
            f"web: {{allow_private: ['127.0.0.1:{made.port}']}}\nbrowser: {{timeout: 10}}\n"
        )
        yield made


@pytest.fixture
def browser() -> Call:
    """Call a tool by the end of its name: `browser("click", ref="e3")`."""

    def call(name: str, task: str | None = None, **arguments: Any) -> dict[str, Any]:
        return json.loads(handle_function_call(f"browser_{name}", arguments, task_id=task))

    return call
