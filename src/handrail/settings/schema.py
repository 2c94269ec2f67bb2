"""What can be configured: every section under its name in config.yaml, and all of it as JSON Schema.

A setting's text, limits and default are in one place, its section; `json_schema()` carries them to whoever checks or
documents the configuration.
"""

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from . import sections, services
from .sections import Section, Texts, named, settings_of, texts

ANYTHING = ("string", "boolean", "integer", "number", "array", "object", "null")


class Config(Section):
    """Everything that can be set in config.yaml, and the folder in which it was found."""

    # Not a setting: where the runtime keeps its configuration, state and cache. Empty: where this user has them.
    home: str = field(default="", metadata={"internal": True})

    toolsets: Mapping[str, sections.ToolsetConfig] = named("Your own toolsets, by name.")
    tools: sections.ToolsConfig = field(default_factory=sections.ToolsConfig)
    files: sections.FilesConfig = field(default_factory=sections.FilesConfig)
    terminal: sections.TerminalConfig = field(default_factory=sections.TerminalConfig)
    protect: sections.ProtectConfig = field(default_factory=sections.ProtectConfig)
    effects: sections.EffectsConfig = field(default_factory=sections.EffectsConfig)
    network: services.NetworkConfig = field(default_factory=services.NetworkConfig)
    code: sections.CodeConfig = field(default_factory=sections.CodeConfig)
    processes: sections.ProcessesConfig = field(default_factory=sections.ProcessesConfig)
    results: sections.ResultsConfig = field(default_factory=sections.ResultsConfig)
    calls: sections.CallsConfig = field(default_factory=sections.CallsConfig)
    approvals: sections.ApprovalsConfig = field(default_factory=sections.ApprovalsConfig)
    model: services.ModelConfig = field(default_factory=services.ModelConfig)
    messages: services.MessagesConfig = field(default_factory=services.MessagesConfig)
    media: services.MediaConfig = field(default_factory=services.MediaConfig)
    skills: sections.SkillsConfig = field(default_factory=sections.SkillsConfig)
    schedule: sections.ScheduleConfig = field(default_factory=sections.ScheduleConfig)
    rollouts: sections.RolloutsConfig = field(default_factory=sections.RolloutsConfig)
    web: services.WebConfig = field(default_factory=services.WebConfig)
    browser: services.BrowserConfig = field(default_factory=services.BrowserConfig)
    gateway: services.GatewayConfig = field(default_factory=services.GatewayConfig)
    homeassistant: services.HomeConfig = field(default_factory=services.HomeConfig)
    telemetry: services.TelemetryConfig = field(default_factory=services.TelemetryConfig)
    plugins: Mapping[str, sections.PluginConfig] = named("What each plugin may do, by the plugin's name.")
    hooks: Mapping[str, tuple[sections.HookCommandConfig, ...]] = named(
        "Commands to run around calls, by the event: `pre_tool_call` or `PreToolUse`, `post_tool_call`..."
    )
    mcp_servers: Mapping[str, services.McpServerConfig] = named("MCP servers whose tools are offered, by name.")
    secrets: Mapping[str, services.SecretConfig] = named("Keys that commands use and never see, by name.")
    approval_rules: Mapping[str, sections.ApprovalRuleConfig] = named("Your own rules about commands, by their id.")
    command_allowlist: Texts = texts(
        "Kinds of action that need no asking, because someone answered 'always': a rule and how far it reaches, such as "
        "fs.rm.recursive@project:/srv/app."
    )


def json_schema() -> dict[str, Any]:
    """The configuration as JSON Schema (draft 2020-12), with each setting's documentation and default."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Handrail configuration",
        **_object_schema(Config),
    }


def _object_schema(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {
        "type": "object",
        "description": kind.__doc__ or "",
        "properties": {item.name: _property_schema(hints[item.name], item) for item in settings_of(kind)},
        "additionalProperties": False,
    }


def _property_schema(hint: Any, item: dataclasses.Field[Any]) -> dict[str, Any]:
    schema = {**_schema_of(hint), **item.metadata.get("limits", {})}
    if "doc" in item.metadata:  # a section is documented by its class
        _describe(schema, item.metadata["doc"])
    if item.default_factory is dict:
        schema["default"] = {}
    if item.default is not dataclasses.MISSING:
        schema["default"] = list(item.default) if isinstance(item.default, tuple) else item.default
    return schema


def _describe(schema: dict[str, Any], doc: str) -> None:
    """What is under names of the user's choice is documented by its class, or else by the same text."""
    schema["description"] = doc
    group = schema.get("additionalProperties")
    if group and "description" not in group:
        _describe(group, doc)


def _schema_of(hint: Any) -> dict[str, Any]:
    if hint is Any:  # whoever uses the setting checks it
        return {"type": list(ANYTHING)}
    simple = {str: "string", bool: "boolean", int: "integer", float: "number"}
    if hint in simple:
        return {"type": simple[hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _object_schema(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is tuple:
        items = _schema_of(arguments[0])
        return {"type": "array", "items": {**items, "minLength": 1} if items["type"] == "string" else items}
    if origin is Mapping:
        group = _schema_of(arguments[1])
        return {
            "type": "object",
            "propertyNames": {"minLength": 1},
            "additionalProperties": {"description": "One of them.", **group},
        }
    if optional := optional_of(hint):
        inner = _schema_of(optional)
        return {**inner, "type": [inner["type"], "null"]}
    raise TypeError(f"no JSON Schema is known for a setting of type {hint}")


def optional_of(hint: Any) -> Any:
    """`X` for a hint `X | None`, else None."""
    if get_origin(hint) not in (types.UnionType, Union):
        return None
    others = [argument for argument in get_args(hint) if argument is not type(None)]
    return others[0] if len(others) == 1 else None
