"""What holds for every model provider, whoever wrote it."""

from __future__ import annotations

import inspect

import pytest

from handrail.agent.models.base import StreamingModel
from handrail.agent.models.model_selection import Choice, connect, known_providers
from handrail.settings.services import PROVIDERS, ModelConfig

NAMES = sorted(known_providers(None))
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(params=NAMES)
def model(request: pytest.FixtureRequest) -> StreamingModel:
    choice = Choice("some-model", request.param, NOWHERE, "", "asked for")
    return connect(choice, ModelConfig(context_tokens=5_000), known_providers(None))


def test_it_makes_a_model_with_the_name_and_the_window_that_are_configured(model: StreamingModel) -> None:
    assert (model.name, model.context_tokens) == ("some-model", 5_000)


def test_its_model_streams(model: StreamingModel) -> None:
    assert inspect.isasyncgenfunction(model.stream)
    assert list(inspect.signature(model.stream).parameters) == ["messages", "tools"]


def test_its_model_names_its_provider_for_telemetry(model: StreamingModel) -> None:
    assert getattr(model, "provider", None) in NAMES


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_a_provider_of_the_table_has_an_address_and_a_key(name: str) -> None:
    spec = PROVIDERS[name]
    assert spec.chat_url.startswith("https://")
    assert spec.key_variable.endswith("_API_KEY")
