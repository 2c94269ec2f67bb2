"""The listing that a model is shown."""

from __future__ import annotations

import json
import logging
from typing import Any

import jsonschema_rs
import pytest

from handrail.core.availability import Availability
from handrail.core.registry import ToolRegistry
from handrail.errors import UnknownToolset
from handrail.runtime.definitions import Definitions
from handrail.settings.sections import ToolsetConfig
from handrail.toolsets import Toolsets
from handrail.types import Unavailable
from tests.support import add, costs_less_than, in_threads, parameters

FORMATS = ("openai", "responses", "anthropic", "gemini", "mcp")


@pytest.fixture
def definitions(registry: ToolRegistry) -> Definitions:
    return Definitions(registry, Toolsets(registry, {"mine": ToolsetConfig(tools=("a_tool",), includes=("numbers",))}))


def names(listing: list[dict[str, Any]]) -> list[str]:
    return [definition["function"]["name"] for definition in listing]


def described(definitions: Definitions, name: str, **choice: Any) -> str:
    return next(d["function"]["description"] for d in definitions.list(**choice) if d["function"]["name"] == name)


class TestChoosing:
    @pytest.fixture(autouse=True)
    def _filled(self, registry: ToolRegistry) -> None:
        add(registry, "a_tool", toolset="letters")
        add(registry, "b_tool", toolset="letters")
        add(registry, "one", toolset="numbers")
        add(registry, "two", toolset="numbers")

    @pytest.mark.parametrize(
        ("enabled", "disabled", "expected"),
        [
            (None, None, ["a_tool", "b_tool", "one", "two"]),
            (["letters"], None, ["a_tool", "b_tool"]),
            (["letters", "numbers"], ["numbers"], ["a_tool", "b_tool"]),
            (None, ["letters"], ["one", "two"]),
            (["mine"], None, ["a_tool", "one", "two"]),
            (["all"], ["mine"], ["b_tool"]),
            ([], None, []),
            (["*"], [], ["a_tool", "b_tool", "one", "two"]),
        ],
    )
    def test_enabled_sets_are_the_only_ones_and_disabled_ones_are_subtracted(
        self, definitions: Definitions, enabled: Any, disabled: Any, expected: list[str]
    ) -> None:
        assert names(definitions.list(enabled, disabled)) == expected

    def test_an_unknown_set_is_an_error_that_suggests_the_nearest(self, definitions: Definitions) -> None:
        with pytest.raises(UnknownToolset, match="did you mean 'letters'"):
            definitions.list(["leters"])
        with pytest.raises(UnknownToolset):
            definitions.list(None, ["leters"])

    def test_a_tool_registered_later_is_in_the_next_listing_and_one_taken_out_is_not(
        self, definitions: Definitions, registry: ToolRegistry
    ) -> None:
        definitions.list()
        add(registry, "three", toolset="numbers")
        assert "three" in names(definitions.list())
        registry.deregister("one")
        assert "one" not in names(definitions.list())
        add(registry, "two", toolset="numbers", description="Changed.")
        assert described(definitions, "two") == "Changed."

    def test_each_caller_gets_a_copy_of_its_own(self, definitions: Definitions) -> None:
        for _ in range(3):  # the first listing, and those that come from what was kept
            listing = definitions.list()
            assert names(listing) == ["a_tool", "b_tool", "one", "two"]
            listing[0]["function"]["name"] = "poisoned"
            listing[0]["function"]["parameters"]["properties"]["x"] = {}
            listing.clear()

    @pytest.mark.parametrize("wanted", FORMATS)
    def test_every_format_lists_the_same_tools(self, definitions: Definitions, wanted: Any) -> None:
        listing = definitions.list(format=wanted)
        assert [d["function"]["name"] if wanted == "openai" else d["name"] for d in listing] == [
            "a_tool",
            "b_tool",
            "one",
            "two",
        ]


class TestAvailable:
    def test_what_cannot_work_is_left_out_and_comes_back(self) -> None:
        now = [0.0]
        registry = ToolRegistry(availability=Availability(clock=lambda: now[0]))
        definitions = Definitions(registry, Toolsets(registry))
        answer: list[Any] = [Unavailable("the daemon is down", "start it")]
        add(registry, "docker", check_fn=lambda: answer[0])
        add(registry, "plain")
        assert names(definitions.list()) == ["plain"]
        answer[0] = True
        now[0] += 31
        assert names(definitions.list()) == ["docker", "plain"]

    def test_the_reason_is_told_unless_it_shall_be_quiet(
        self, registry: ToolRegistry, definitions: Definitions, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="handrail")
        add(registry, "docker", check_fn=lambda: Unavailable("the daemon is down", "start it"))
        definitions.list(quiet=True)
        assert caplog.text == ""
        definitions.list()
        assert "docker" in caplog.text
        assert "the daemon is down; start it" in caplog.text


class TestPatching:
    @pytest.fixture(autouse=True)
    def _filled(self, registry: ToolRegistry) -> None:
        text = "Open a page. For plain text prefer web_search or web_extract."
        where = {"type": "string", "description": "The address. Found by web_search."}
        add(registry, "browser_navigate", toolset="browser", description=text, schema=parameters(url=where))
        add(registry, "web_search", toolset="web")
        add(registry, "web_extract", toolset="web")

    def test_a_tool_names_another_only_if_it_is_there(self, definitions: Definitions) -> None:
        assert "web_search" in described(definitions, "browser_navigate")
        listing = definitions.list(["browser"])
        assert listing[0]["function"]["description"] == "Open a page."
        assert listing[0]["function"]["parameters"]["properties"]["url"]["description"] == "The address."

    @pytest.mark.parametrize("wanted", FORMATS)
    def test_in_every_format(self, definitions: Definitions, wanted: Any) -> None:
        assert "web_search" in json.dumps(definitions.list(format=wanted))
        assert "web_search" not in json.dumps(definitions.list(["browser"], format=wanted))

    def test_a_tool_that_cannot_work_now_is_not_named_either(
        self, registry: ToolRegistry, definitions: Definitions
    ) -> None:
        for name in ("web_search", "web_extract"):
            add(registry, name, toolset="web", check_fn=lambda: False)
        assert described(definitions, "browser_navigate") == "Open a page."

    def test_nor_is_one_that_was_never_registered(self, registry: ToolRegistry, definitions: Definitions) -> None:
        registry.deregister("web_search")
        registry.deregister("web_extract")
        text = json.dumps(definitions.list())
        assert "web_search" not in text
        assert "web_extract" not in text

    def test_fields_given_at_listing_time_know_what_is_listed(
        self, registry: ToolRegistry, definitions: Definitions
    ) -> None:
        add(
            registry,
            "execute_code",
            toolset="code_execution",
            dynamic_schema_overrides=lambda listed: {"description": f"Callable: {', '.join(sorted(listed))}."},
        )
        assert described(definitions, "execute_code", enabled=["code_execution", "web"]) == (
            "Callable: execute_code, web_extract, web_search."
        )
        assert described(definitions, "execute_code", enabled=["code_execution"]) == "Callable: execute_code."

    def test_they_are_asked_anew_each_time(self, registry: ToolRegistry, definitions: Definitions) -> None:
        number = iter(range(100))
        add(registry, "count", dynamic_schema_overrides=lambda: {"description": f"Number {next(number)}."})
        first, second = described(definitions, "count"), described(definitions, "count")
        assert first != second

    def test_parameters_given_at_listing_time_replace_the_static_ones(
        self, registry: ToolRegistry, definitions: Definitions
    ) -> None:
        add(registry, "pick", dynamic_schema_overrides=lambda: {"parameters": parameters(x={"enum": ["a", "b"]})})
        listing = [d for d in definitions.list() if d["function"]["name"] == "pick"]
        assert listing[0]["function"]["parameters"]["properties"] == {"x": {"enum": ["a", "b"]}}

    @pytest.mark.parametrize(
        "broken",
        [
            lambda: 1 / 0,
            lambda: None,
            lambda: "text",
            lambda: {"description": None},
            lambda: {"description": 5},
            lambda: {"parameters": "nonsense"},
            lambda: {"parameters": {"properties": [1]}},
            lambda: {"parameters": {"type": "object", "required": 5}},
            lambda: {"parameters": {"anyOf": [5]}},
            lambda: {"description": object()},
            lambda a, b, c: {},
        ],
        ids=range(11),
    )
    def test_one_that_fails_leaves_its_static_schema_and_disturbs_nobody(
        self, registry: ToolRegistry, definitions: Definitions, broken: Any
    ) -> None:
        add(
            registry,
            "odd",
            description="Static.",
            schema=parameters(x={"type": "string"}),
            dynamic_schema_overrides=broken,
        )
        listing = {d["function"]["name"]: d["function"] for d in definitions.list()}
        assert set(listing) == {"browser_navigate", "odd", "web_extract", "web_search"}
        assert listing["odd"]["description"] == "Static."
        assert listing["odd"]["parameters"] == parameters(x={"type": "string"})


class TestRepairing:
    AWKWARD = (
        {"anyOf": [parameters(a={"type": "string"}), parameters(b={"type": "string"})]},
        {"$ref": "#/$defs/A", "$defs": {"A": parameters(a={"type": "string"})}},
        parameters(a={"type": ["string", "null"]}),
        parameters(a={"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}),
        {**parameters(a={"$ref": "#/$defs/A", "description": "d"}), "$defs": {"A": {"type": "string"}}},
        {"type": "object"},
        {},
    )

    @pytest.mark.parametrize("wanted", FORMATS)
    @pytest.mark.parametrize("schema", AWKWARD, ids=range(len(AWKWARD)))
    def test_what_a_provider_would_refuse_is_repaired(
        self, registry: ToolRegistry, definitions: Definitions, schema: dict[str, Any], wanted: Any
    ) -> None:
        add(registry, "awkward", schema=schema)
        (definition,) = definitions.list(format=wanted)
        keys = {"openai": "parameters", "responses": "parameters", "anthropic": "input_schema", "mcp": "inputSchema"}
        inner = definition["function"] if wanted == "openai" else definition
        written = inner.get(keys.get(wanted, "parameters"))
        if wanted == "gemini" and written is None:
            return  # a tool without arguments
        jsonschema_rs.meta.validate(written)
        assert written["type"] == "object"
        assert isinstance(written["properties"], dict)
        if wanted == "mcp":  # every word of JSON Schema is for its clients to read
            assert schema.items() <= written.items()
            return
        assert not {"anyOf", "oneOf", "allOf", "$ref"} & set(written)
        text = json.dumps(written)
        assert '"null"' not in text
        assert wanted != "gemini" or "$ref" not in text


class TestThreadsAndScale:
    def test_listings_and_changes_at_once_never_fail_and_never_lie(
        self, registry: ToolRegistry, definitions: Definitions
    ) -> None:
        for index in range(20):
            add(registry, f"steady_{index}", toolset="steady")

        def work(number: int) -> None:
            mine = f"mine_{number}"
            for _ in range(15):
                add(registry, mine, toolset=f"set{number}")
                assert mine in names(definitions.list())
                assert len(names(definitions.list(["steady"]))) == 20
                registry.deregister(mine)
                assert mine not in names(definitions.list())

        in_threads(16, work)

    def test_ten_thousand_tools_are_listed_in_linear_time(
        self, registry: ToolRegistry, definitions: Definitions
    ) -> None:
        for index in range(10_000):
            add(registry, f"tool_{index}", schema=parameters(x={"type": "string", "description": "Like other_tool."}))
        with costs_less_than(20):
            assert len(definitions.list()) == 10_000
        with costs_less_than(20):
            assert len(definitions.list()) == 10_000
