"""What holds for every registered tool, whoever wrote it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from handrail import model_tools
from handrail.core.builtin import registry, scan_builtin
from handrail.core.entry import Reference
from handrail.core.registry import ToolEntry
from handrail.model_tools import get_tool_definitions, handle_function_call
from handrail.runtime.definitions import names_in
from handrail.runtime.provider_formats import Format
from handrail.toolsets import COMPOSITES, Toolsets

FAILED = scan_builtin().failed
TOOLS = [registry.get_entry(name) for name in registry.get_all_tool_names()]
FORMATS: tuple[Format, ...] = ("openai", "responses", "anthropic", "gemini", "mcp")
NONSENSE = ("", "nonsense", "[]", "{", '{"a": NaN}', "null", 7, [], "\ud800", "{" * 3000)


def _id(entry: ToolEntry) -> str:
    return entry.name


every_tool = pytest.mark.parametrize("tool", TOOLS, ids=_id)


@pytest.fixture
def _everything_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract holds whatever is configured and installed here."""
    monkeypatch.setattr(model_tools.default().registry.availability, "unavailable", lambda tools: {})


with_everything = pytest.mark.usefixtures("_everything_can_be_used")


def _call(tool: ToolEntry, arguments: Any) -> dict[str, Any]:
    result = handle_function_call(tool.name, arguments)
    assert isinstance(result, str)
    parsed = json.loads(result)
    assert isinstance(parsed, dict)
    return parsed


def test_every_tool_module_imports() -> None:
    assert FAILED == {}


@every_tool
def test_its_schema_is_json_schema_2020_12(tool: ToolEntry) -> None:
    parameters = {"$schema": "https://json-schema.org/draft/2020-12/schema", **tool.schema["parameters"]}
    jsonschema_rs.meta.validate(parameters)
    assert parameters["type"] == "object"


def undescribed(schema: dict[str, Any], at: str = "") -> Iterator[str]:
    """The arguments that have no description, also those inside others."""
    for name, inner in schema.get("properties", {}).items():
        if not inner.get("description"):
            yield f"{at}{name}"
        yield from undescribed(inner, f"{at}{name}.")
    for inner in (
        schema.get("items"),
        schema.get("additionalProperties"),
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
    ):
        if isinstance(inner, dict):
            yield from undescribed(inner, at)


@every_tool
def test_its_texts_are_short_and_there(tool: ToolEntry) -> None:
    assert 20 <= len(tool.description) <= 1024
    assert tool.emoji
    assert not list(undescribed(tool.schema["parameters"]))
    assert len(json.dumps(tool.schema)) <= 4096


@every_tool
def test_its_toolset_is_one_that_people_can_name(tool: ToolEntry) -> None:
    assert registry.get_toolset_description(tool.toolset)
    assert tool.name in Toolsets(registry).resolve(tool.toolset)


@every_tool
def test_what_it_refers_to_by_name_is_there(tool: ToolEntry) -> None:
    functions = (tool.handler, tool.check_fn, tool.resources, tool.actions, tool.dynamic_schema_overrides)
    for function in functions:
        if isinstance(function, Reference):
            assert callable(function.resolve())


@every_tool
def test_its_example_takes_only_what_its_schema_has(tool: ToolEntry) -> None:
    for call in registry.get_example(tool.name):
        entry = registry.get_entry(call.name)
        assert entry is not None
        assert call.arguments.keys() <= entry.schema["parameters"]["properties"].keys()


@every_tool
@with_everything
def test_a_missing_argument_is_named(tool: ToolEntry) -> None:
    required = tool.schema["parameters"].get("required", [])
    if not required:
        _call(tool, {})
        return
    answer = _call(tool, {})
    assert answer["error_type"] == "invalid_arguments"
    assert required[0] in answer["error"]


@every_tool
@with_everything
def test_an_unknown_argument_is_named(tool: ToolEntry) -> None:
    answer = _call(tool, {"no_such_argument": 1})
    assert answer["error_type"] == "invalid_arguments"
    assert "no_such_argument" in answer["error"]


@every_tool
@with_everything
def test_whatever_it_is_given_the_answer_is_json(tool: ToolEntry) -> None:
    for arguments in NONSENSE:
        _call(tool, arguments)


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dict[Format, dict[str, dict[str, Any]]]:
    """What each provider is given, by the name of the tool."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("HANDRAIL_")]:
            patch.delenv(name)
        patch.setenv("HANDRAIL_HOME", str(tmp_path_factory.mktemp("defined")))
        model_tools.reset()
        patch.setattr(model_tools.default().registry.availability, "unavailable", lambda tools: {})
        defined = {provider: _definitions(provider) for provider in FORMATS}
        model_tools.reset()
    return defined


def _definitions(provider: Format) -> dict[str, dict[str, Any]]:
    definitions = (
        *get_tool_definitions(format=provider),
        *get_tool_definitions(format=provider, context_tokens=1),  # with what is there only when there is no room
    )
    functions = [definition.get("function") or definition for definition in definitions]
    return {function["name"]: function for function in functions}


@every_tool
def test_every_provider_gets_a_definition_that_it_takes(
    tool: ToolEntry, definitions: dict[Format, dict[str, dict[str, Any]]]
) -> None:
    for provider in FORMATS:
        definition = definitions[provider][tool.name]
        parameters = next(
            (definition[key] for key in ("parameters", "input_schema", "inputSchema") if key in definition), {}
        )
        if parameters:
            jsonschema_rs.meta.validate(parameters)
            assert parameters["type"] == "object", provider
            assert not {"anyOf", "oneOf", "allOf", "$ref"} & parameters.keys(), provider
        assert definition["description"], provider


@pytest.mark.parametrize("toolset", [*COMPOSITES, *registry.get_toolsets()])
@with_everything
def test_no_text_names_a_tool_that_the_set_does_not_have(toolset: str) -> None:
    definitions = get_tool_definitions(enabled_toolsets=[toolset], quiet_mode=True)
    given = {definition["function"]["name"] for definition in definitions}
    absent = set(registry.get_all_tool_names()) - given
    for definition in definitions:
        assert not names_in(definition["function"]["description"]) & absent
        assert not names_in(definition["function"]["parameters"]) & absent


def test_the_safe_set_has_only_tools_that_change_nothing() -> None:
    names = Toolsets(registry).resolve("safe")
    assert "read_file" in names
    assert all(entry.read_only for name in names if (entry := registry.get_entry(name)))
    assert "write_file" not in names


def test_untrusted_input_reaches_no_tool_that_touches_the_machine() -> None:
    touching = {
        name for leaf in ("file", "terminal", "code_execution", "browser") for name in Toolsets(registry).resolve(leaf)
    }
    assert not touching & set(Toolsets(registry).resolve("handrail-webhook"))
