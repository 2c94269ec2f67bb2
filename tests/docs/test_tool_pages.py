"""Every tool has a page with an example that works: an agent makes the calls of each set, with the real things."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from handrail.agent.agent_factory import open_agent, open_store
from handrail.base.own_process import has_exited
from handrail.config.config_file import ConfigFile
from handrail.core.builtin import builtin_tools, registry
from handrail.core.outcome import error_of
from handrail.model_tools import default, reset
from handrail.protocols import Decision, ModelReply
from handrail.testing import RecordingApprover, ScriptedModel, ScriptedPerson, call
from handrail.testing.model_server import ModelServer
from handrail.tools.browser import actions, session
from handrail.tools.rollouts.runs import open_runs
from tests.services.components import require
from tests.services.homeassistant import HomeAssistant
from tests.services.searx import Searx
from tests.support import PATIENCE_SECONDS, wait_until
from tests.tools import pages
from tests.tools.media.provider import Provider, png

ROOT = Path(__file__).parent.parent.parent
SITE = "https://rails.example"
ORDER = (
    "<title>Order</title><img src='/rail.png' alt='a rail'><form onsubmit='return false'><input aria-label='Name'>"
    "<button onclick='alert(`Thank you`)'>Order</button></form><p style='margin-top: 3000px'>The end</p>"
)
SUMS = '''"""Sums."""
TASKS = ["Say the sum of 2 and 3."]


def reward(task, rollout):
    return float("5" in rollout.answer)
'''


def _calls_of(toolset: str) -> list[tuple[str, Any]]:
    """The calls of all examples of a set, in the order in which its tools registered; what several begin with is done once."""
    names = [entry.name for entry in registry.entries() if entry.toolset == toolset]
    calls = [(call.name, call.arguments) for name in names for call in registry.get_example(name)]
    return [call for number, call in enumerate(calls) if call not in calls[:number]]


builtin_tools()
TOOLSETS = sorted({entry.toolset for entry in registry.entries()})


def test_every_example_ends_with_a_call_of_its_own_tool() -> None:
    for entry in registry.entries():
        assert registry.get_example(entry.name)[-1].name == entry.name


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_the_calls_of_a_set_work(toolset: str, request: pytest.FixtureRequest, work: Path) -> None:
    needed = f"stage_of_{toolset}"
    stage = request.getfixturevalue(needed) if needed in globals() else {}
    steps = _calls_of(toolset)
    answers = _answers(steps, stage)
    assert len(answers) == len(steps)
    for (name, _), answer in zip(steps, answers, strict=True):
        assert error_of(answer) is None, f"{name}: {answer}"


def test_the_reference_is_made_from_the_code_with_a_page_for_every_tool(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "scripts" / "reference.py"), str(tmp_path)], check=True)
    builtin_tools()
    listed = (tmp_path / "tools" / "index.md").read_text()
    for name in registry.get_all_tool_names():
        page = (tmp_path / "tools" / f"{name}.md").read_text()
        entry = registry.get_entry(name)
        assert entry is not None
        assert entry.description in page
        assert f'"name": "{name}"' in page
        assert all(f"`{argument}`" in page for argument in entry.schema["parameters"]["properties"])
        assert f"]({name}.md)" in listed
    api = (tmp_path / "python.md").read_text()
    for face in "handrail.approval handrail.environments handrail.agent handrail.testing handrail".split():
        for name in import_module(face).__all__:
            assert name.startswith("_") or f"### `{name}`\n" in api, f"{face}.{name}"
    assert "interrupt(reason: str = 'the user interrupted')" in api
    assert "\nAgent(\n    app: Handrail,\n" in api  # not one line that nobody can read
    settings = (tmp_path / "configuration.md").read_text()
    assert "`batch_timeout`" in settings
    servers = settings.partition("## `mcp_servers`")[2].partition("\n## ")[0]
    assert "| `type` |" in servers  # a setting whose name is a word of JSON Schema
    assert "| `idle_seconds` |" in servers
    assert "pre_tool_call" in (tmp_path / "hooks.md").read_text()
    assert "handrail call" in (tmp_path / "cli.md").read_text()


def _answers(steps: Sequence[tuple[str, Mapping[str, Any]]], stage: Mapping[str, str]) -> list[Any]:
    """What an agent is told whose model makes these calls, one after the other."""

    def step(name: str, arguments: Mapping[str, Any]) -> Callable[[Any, Any], ModelReply]:
        def reply(messages: Any, _: Any) -> ModelReply:
            return ModelReply(tool_calls=[call(name, **_filled(arguments, messages, stage))])

        return reply

    script = [step(*each) for each in steps]
    children = [ModelReply("It is done.")] * 2  # of delegate_task
    default().runtime.approver = RecordingApprover([Decision.ONCE] * 20)
    default().runtime.person = ScriptedPerson(["brass"])
    with open_agent(models=[ScriptedModel([*script, *children, ModelReply("Done.")])], toolsets=["all"]) as agent:
        agent.run("Show what you can do.")
        with closing(open_store()) as sessions:
            said = [stored.message for stored in sessions.messages(agent.session_id)]
    return [message["content"] for message in said if message["role"] == "tool"]


def _filled(arguments: Any, messages: Any, stage: Mapping[str, str]) -> Any:
    """The arguments with the addresses of this test, and with what earlier answers said."""
    text = json.dumps(arguments)
    for shown, real in stage.items():
        text = text.replace(shown, real)
    filled = json.loads(text)
    told = [_read(message["content"]) for message in messages if message["role"] == "tool"]
    return {
        name: _found(value[1:], told) if isinstance(value, str) and value.startswith("$") else value
        for name, value in filled.items()
    }


def _read(content: Any) -> Any:
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return None


def _found(name: str, told: Any) -> Any:
    """What the latest answer that has such a field says there."""
    values = list(told.values()) if isinstance(told, dict) else list(reversed(told)) if isinstance(told, list) else []
    if isinstance(told, dict) and name in told:
        return told[name]
    return next((found for value in values if (found := _found(name, value)) is not None), None)


# What a set needs, and what stands in for the addresses in its calls.


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (40, 30), "green").save(tmp_path / "plan.png")
    return tmp_path


@pytest.fixture
def site(work: Path) -> Iterator[pages.Site]:
    with pages.site() as made:
        made.pages["/order"] = pages.html(ORDER)
        made.pages["/handrails"] = made.pages["/manual.pdf"] = pages.html(pages.ARTICLE)
        made.pages["/rail.png"] = lambda handler: handler.answer((work / "plan.png").read_bytes(), "image/png")
        _configure("web", {"allow_private": [f"127.0.0.1:{made.port}"]})
        yield made


@pytest.fixture
def stage_of_browser(site: pages.Site, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    require("chromium", packages="chromium", modules=("playwright",))
    _configure("browser", {"timeout": PATIENCE_SECONDS})
    monkeypatch.setattr(session, "_ALIVE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(actions, "_PART_LOADED_SECONDS", PATIENCE_SECONDS)
    return {SITE: site.url}


@pytest.fixture
def stage_of_web(site: pages.Site, searx_service: Searx) -> dict[str, str]:
    private = [f"127.0.0.1:{site.port}"]
    _configure("web", {"allow_private": private, "search_urls": {"searxng": searx_service.url}})
    return {SITE: site.url}


@pytest.fixture
def stage_of_homeassistant(home_service: HomeAssistant, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HASS_URL", home_service.url)
    monkeypatch.setenv("HASS_TOKEN", home_service.token)
    return {}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "a key")
        yield server


@pytest.fixture
def stage_of_rl(home: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    monkeypatch.setenv("HANDRAIL_MODEL", "scripted")
    (home / "rl_environments").mkdir()
    (home / "rl_environments" / "sums.py").write_text(SUMS)
    model.say(*[ModelReply("It is 5.")] * 2)
    yield {}
    with closing(open_runs()) as runs:
        [run] = runs.all()
    wait_until(lambda: has_exited(run.owner))


@pytest.fixture
def stage_of_image_gen(provider: Provider) -> dict[str, str]:
    provider.says["painter"] = (200, {"data": [{"b64_json": base64.b64encode(png()).decode()}]})
    return _lab(provider, image_model="lab:painter")


@pytest.fixture
def stage_of_moa(provider: Provider) -> dict[str, str]:
    provider.says |= {"ada": "The first.", "bob": "The second."}
    return _lab(provider, mixture_models=["lab:ada", "lab:bob"])


@pytest.fixture
def stage_of_messaging(site: pages.Site) -> dict[str, str]:
    site.pages["/hook"] = pages.html("{}")
    _configure("messages", {"targets": {"team": {"kind": "webhook", "url": f"{site.url}/hook"}}})
    return {}


def _lab(provider: Provider, **models: Any) -> dict[str, str]:
    _configure("media", {"providers": {"lab": {"base_url": provider.base_url, "key_variable": "LAB_KEY"}}, **models})
    return {}


def _configure(section: str, settings: Mapping[str, Any]) -> None:
    ConfigFile().set(section, settings)
    reset()
