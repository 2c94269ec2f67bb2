"""What the tests of media share: a provider, the configuration that names it, and a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.config.config_file import ConfigFile
from handrail.model_tools import handle_function_call, reset

from .provider import Provider

Configure = Callable[..., None]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    found = Provider()
    monkeypatch.setenv("LAB_KEY", found.key)
    yield found
    found.close()


@pytest.fixture
def media(home: Path, provider: Provider) -> Configure:
    """Configure what is used, with a provider called `lab`: `media(vision_model="lab:eyes")`."""

    def configure(**settings: Any) -> None:
        lab = {"base_url": provider.base_url, "key_variable": "LAB_KEY"}
        ConfigFile().set("media", {"providers": {"lab": lab}, **settings})
        reset()

    return configure


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(tool: str, **arguments: Any) -> Any:
    return handle_function_call(tool, arguments)
