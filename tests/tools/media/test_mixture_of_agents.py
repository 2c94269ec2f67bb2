"""`mixture_of_agents`: several models answer, one merges."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from handrail.base.workers import run_async
from handrail.config.config_file import ConfigFile
from handrail.core.registry import registry
from handrail.errors import ToolUnavailable
from handrail.media.providers import Place, post
from handrail.model_tools import handle_function_call, reset
from handrail.settings.schema import Config
from handrail.types import Progress
from tests.support import error_in

from .conftest import Configure, call
from .provider import Provider

QUESTION = "What is six times seven?"


@pytest.fixture
def three(media: Configure, provider: Provider) -> Provider:
    media(mixture_models=["lab:a", "lab:b", "lab:c"], mixture_merger="lab:judge")
    provider.says |= {"a": "41", "b": "42", "c": "forty-two", "judge": "It is 42."}
    return provider


def test_they_are_asked_and_one_merges_what_they_said(three: Provider) -> None:
    answer = json.loads(call("mixture_of_agents", user_prompt=QUESTION))
    assert answer == {"answer": "It is 42.", "models": ["lab:a", "lab:b", "lab:c"], "merged_by": "lab:judge"}
    *asked, merged = three.requests
    assert sorted(request["model"] for request in asked) == ["a", "b", "c"]
    assert all(request["messages"] == [{"role": "user", "content": QUESTION}] for request in asked)
    material = merged["messages"][-1]["content"]
    assert all(text in material for text in (QUESTION, "41", "42", "forty-two"))


def test_they_answer_at_the_same_time(three: Provider) -> None:
    together = threading.Barrier(3)

    def wait(_: dict[str, Any]) -> str:
        together.wait(60)
        return "42"

    three.says |= {"a": wait, "b": wait, "c": wait}
    assert json.loads(call("mixture_of_agents", user_prompt=QUESTION))["answer"] == "It is 42."


def test_one_that_fails_is_named_and_does_not_stop_the_others(three: Provider) -> None:
    three.says["b"] = (500, {"error": {"message": "overloaded"}})
    answer = json.loads(call("mixture_of_agents", user_prompt=QUESTION))
    assert answer["models"] == ["lab:a", "lab:c"]
    assert "overloaded" in answer["failed"]["lab:b"]


def test_a_single_answer_needs_no_merging(three: Provider) -> None:
    three.says |= {"a": (500, {}), "c": (500, {})}
    assert json.loads(call("mixture_of_agents", user_prompt=QUESTION))["answer"] == "42"
    assert "judge" not in [request["model"] for request in three.requests]


def test_when_none_answers_all_reasons_are_told(three: Provider) -> None:
    three.says.clear()
    assert set(error_in(call("mixture_of_agents", user_prompt=QUESTION))["failed"]) == {"lab:a", "lab:b", "lab:c"}


def test_progress_is_told(three: Provider) -> None:
    news: list[Progress] = []
    handle_function_call("mixture_of_agents", {"user_prompt": QUESTION}, on_progress=news.append)
    assert len(news) == 3
    assert news[-1].fraction == pytest.approx(0.75)


def test_a_model_without_a_provider_is_where_the_agents_own_is(
    home: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", provider.key)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    ConfigFile().set("media.mixture_models", ["llama3:8b", "openai:b"])
    reset()
    registry.availability.forget()
    provider.says |= {"llama3:8b": "one", "b": "two"}
    assert json.loads(call("mixture_of_agents", user_prompt=QUESTION))["merged_by"] == "llama3:8b"
    assert {request["model"] for request in provider.requests} == {"llama3:8b", "b"}


def test_half_a_character_is_not_sent(three: Provider) -> None:
    error = error_in(call("mixture_of_agents", user_prompt="what is \ud83d?"))
    assert error["error_type"] == "invalid_arguments"
    assert three.requests == []


def test_with_fewer_than_two_models_it_says_what_it_needs(home: Path) -> None:
    registry.availability.forget()
    error = error_in(call("mixture_of_agents", user_prompt=QUESTION))
    assert error["error_type"] == "unavailable"
    assert "media.mixture_models" in error["fix"]


@pytest.mark.parametrize(
    ("lab", "why"),
    [
        ({"base_url": "http://127.0.0.1:9/v1"}, "cannot be reached"),
        ({"base_url": "http://127.0.0.1:9/v1", "key_variable": "NO_SUCH_KEY"}, "NO_SUCH_KEY is not set"),
        ({"base_url": "", "key_variable": "LAB_KEY"}, "has no known address"),
    ],
)
def test_a_model_that_cannot_be_asked_is_unavailable(home: Path, lab: dict[str, str], why: str) -> None:
    place = Place("m", lab["base_url"], lab.get("key_variable", ""), needs_key="key_variable" in lab)
    with pytest.raises(ToolUnavailable, match=why):
        run_async(post(place, "/chat/completions", {}, config=Config()))
