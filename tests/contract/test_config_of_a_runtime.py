"""Two registries with different configurations in one process see different tools."""

from __future__ import annotations

import pytest

from handrail.core.availability import Availability
from handrail.core.builtin import builtin_tools
from handrail.core.builtin import registry as builtin
from handrail.core.registry import ToolRegistry
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.services import MediaConfig, MessagesConfig, ProviderConfig, WebConfig

NAMES = ("send_message", "web_search", "image_generate")
CONFIGURED = Config(
    messages=MessagesConfig(targets={"team": {"kind": "webhook", "url": "https://hooks.example/1"}}),
    web=WebConfig(search="searxng", search_urls={"searxng": "https://search.example"}),
    media=MediaConfig(image_model="lab:painter", providers={"lab": ProviderConfig(base_url="https://lab.example/v1")}),
)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEARXNG_URL", raising=False)


def registry_with(config: Config) -> ToolRegistry:
    builtin_tools()
    made = ToolRegistry(availability=Availability(config))
    made.restore({entry.name: entry for entry in builtin.get_entries(NAMES)})
    return made


def test_each_sees_what_its_own_configuration_allows() -> None:
    rich = registry_with(CONFIGURED)
    poor = registry_with(Config(web=WebConfig(search="searxng")))
    assert rich.unavailable_tools() == {}
    assert sorted(poor.unavailable_tools()) == sorted(NAMES)
    described = {one["function"]["name"]: one["function"]["description"] for one in rich.get_definitions(quiet=True)}
    assert "team (webhook)" in described["send_message"]


def test_a_call_is_refused_by_the_configuration_of_its_runtime() -> None:
    config = Config(web=WebConfig(search="searxng"))
    runtime = Runtime(registry_with(config), config=config)
    assert "web.search_urls.searxng" in str(runtime.handle("web_search", {"query": "rails"}))
