"""What a client finds at our server besides tools: prompts, resources, completion, and what is said about the tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema_rs
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PromptReference, ResourceTemplateReference

from handrail.config.paths import state_dir
from handrail.core.registry import ToolRegistry
from handrail.model_tools import default
from handrail.store.sessions import SessionStore
from mcp import Client

from ...support import add
from .test_server import mode, talk  # noqa: F401  a fixture

SKILL = "---\nname: git-release\ndescription: How to release.\n---\nTag it, then push.\n"


@pytest.fixture(autouse=True)
def _skill(home: Path) -> None:
    folder = home / "skills" / "git-release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)


def test_a_skill_is_a_prompt_and_a_resource(mode: str) -> None:  # noqa: F811  the fixture
    async def work(client: Client) -> Any:
        prompts = {each.name: each.description for each in (await client.list_prompts()).prompts}
        prompt = await client.get_prompt("git-release", {"task": "Release 1.2."})
        uris = [str(each.uri) for each in (await client.list_resources()).resources]
        text = (await client.read_resource("handrail://skills/git-release")).contents[0].text
        return prompts, prompt.messages[0].content.text, uris, text

    prompts, said, uris, text = talk(work, mode=mode)
    assert prompts == {"git-release": "How to release."}
    assert said == "Tag it, then push.\n\nRelease 1.2."
    assert "handrail://skills/git-release" in uris
    assert text == SKILL


def test_results_and_sessions_are_read_by_their_id(home: Path, mode: str) -> None:  # noqa: F811  the fixture
    store = SessionStore(state_dir() / "sessions.db")
    session = store.create(platform="cli", model="m", cwd="/", title="Stairs")
    store.append(session.id, [{"role": "user", "content": "How high?"}])
    results = default().runtime.results
    assert results is not None
    stored = results.put("terminal", "all of it")

    async def work(client: Client) -> Any:
        templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
        result = (await client.read_resource(f"handrail://results/{stored.id}")).contents[0].text
        transcript = (await client.read_resource(f"handrail://sessions/{session.id}")).contents[0].text
        found = await client.complete(
            ResourceTemplateReference(uri="handrail://sessions/{id}"), {"name": "id", "value": session.id[:6]}
        )
        return templates, result, json.loads(transcript), found.completion.values

    templates, result, transcript, values = talk(work, mode=mode)
    assert {"handrail://results/{id}", "handrail://skills/{name}", "handrail://sessions/{id}"} <= templates
    assert result == "all of it"
    assert transcript["messages"] == [{"role": "user", "content": "How high?"}]
    assert values == [session.id]


def test_only_what_the_toolsets_would_show_is_offered(mode: str) -> None:  # noqa: F811  the fixture
    async def work(client: Client) -> Any:
        with pytest.raises(MCPError) as unknown:
            await client.read_resource("handrail://skills/git-release")
        with pytest.raises(MCPError):
            await client.get_prompt("git-release")
        with pytest.raises(MCPError):
            await client.complete(PromptReference(name="git-release"), {"name": "task", "value": ""})
        return (await client.list_resources()).resources, unknown.value

    resources, unknown = talk(work, mode=mode, toolsets=("file",))
    assert resources == []
    assert (unknown.code, unknown.data) == (INVALID_PARAMS, {"uri": "handrail://skills/git-release"})


def test_tools_are_described_and_keep_the_promise_of_their_output_schema(
    tmp_path: Path,
    mode: str,  # noqa: F811  the fixture
) -> None:
    (tmp_path / "note.txt").write_text("hello\n")

    async def work(client: Client) -> Any:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        # The SDK's client itself refuses a result that breaks the schema.
        read = await client.call_tool("read_file", {"path": str(tmp_path / "note.txt")})
        ran = await client.call_tool("terminal", {"command": "seq 100000"})
        return tools, read, ran, client.instructions, client.server_capabilities

    tools, read, ran, instructions, capabilities = talk(work, mode=mode)
    assert (tools["read_file"].title, tools["read_file"].annotations.open_world_hint) == ("Read a file", False)
    assert tools["terminal"].annotations.destructive_hint is True
    for name, result in (("read_file", read), ("terminal", ran)):
        assert jsonschema_rs.is_valid(tools[name].output_schema, result.structured_content), name
    assert "read_result" in instructions
    assert capabilities.tools.list_changed
    assert all(tool.title for tool in tools.values()), "every built-in tool has one"
    assert "💻" in unquote(tools["terminal"].icons[0].src)
    assert tools["terminal"].icons[0].src.startswith("data:image/svg+xml,%3Csvg")


def test_a_schema_reaches_the_client_with_all_its_words(
    default_registry: ToolRegistry,
    mode: str,  # noqa: F811  the fixture
) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}},
        "allOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}],
        "if": {"required": ["a"]},
        "then": {"properties": {"a": {"minLength": 1}}},
    }
    add(default_registry, "choosy", schema=schema, toolset="art")

    async def work(client: Client) -> Any:
        return (await client.list_tools()).tools

    (tool,) = talk(work, mode=mode, toolsets=("art",))
    assert tool.input_schema == schema
