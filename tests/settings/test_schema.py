from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import jsonschema_rs
import pytest

from handrail.config.store import load_config
from handrail.settings.schema import Config, json_schema

SCHEMA = json_schema()


def walk(schema: dict[str, Any], key: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every schema in the configuration's, with its key."""
    below = [(f"{key}.{name}", part) for name, part in schema.get("properties", {}).items()]
    if isinstance(schema.get("additionalProperties"), dict):
        below.append((f"{key}.<name>", schema["additionalProperties"]))
    return [(key, schema), *(found for name, part in below for found in walk(part, name))]


def test_defaults_are_the_documented_ones():
    config = Config()
    assert config.files.max_read_bytes == config.files.max_write_bytes == 10 * 1024 * 1024
    assert (config.results.max_chars, config.results.turn_max_chars) == (100_000, 200_000)
    assert (config.calls.batch_timeout, config.calls.hook_timeout) == (600, 5)
    assert config.tools.enabled_toolsets is None
    assert config.tools.on_collision == "refuse"
    assert config.command_allowlist == config.files.roots == ()
    assert config.toolsets == config.plugins == {}


def test_the_schema_is_valid_json_schema():
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(SCHEMA)


@pytest.mark.parametrize(("key", "schema"), walk(SCHEMA))
def test_every_setting_is_documented_and_closed(key: str, schema: dict[str, Any]):
    assert schema["description"], f"{key} has no documentation"
    if schema["type"] == "object" and "properties" in schema:
        assert schema["additionalProperties"] is False
    if schema["type"] in ("integer", "number"):
        assert "minimum" in schema or "exclusiveMinimum" in schema
        assert "maximum" in schema


def _defaults(schema):
    return {
        name: _defaults(part) if "properties" in part else part["default"]
        for name, part in schema["properties"].items()
        if "properties" in part or "default" in part
    }


def _plain(value):
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return list(value) if isinstance(value, tuple) else value


def test_the_default_in_the_schema_is_the_default_of_the_configuration():
    sections = {name: part for name, part in SCHEMA["properties"].items() if "properties" in part}
    defaults = _defaults({"properties": sections})
    assert jsonschema_rs.validator_for(SCHEMA).is_valid(defaults)
    for section, values in defaults.items():
        for name, default in values.items():
            assert _plain(getattr(getattr(Config(), section), name)) == default


def test_documentation_can_be_read_from_the_fields():
    assert all(field.metadata["doc"] for field in dataclasses.fields(Config().calls))


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().files.max_read_bytes = 1  # type: ignore[misc]


def test_a_configuration_can_be_sent_to_another_process(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("toolsets:\n  web: {tools: [web_search]}\nplugins: {p: {allow_override: true}}\n")
    config = load_config(path, environ={})
    assert pickle.loads(pickle.dumps(config)) == config


def test_the_caller_owns_the_schema_it_gets():
    json_schema()["properties"].clear()
    assert json_schema() == SCHEMA
