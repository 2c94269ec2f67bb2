"""What can be configured: one frozen dataclass a section, one documented field a setting.

A field's text, limits and default are in one place, here; `json_schema()` carries them to whoever checks or documents
the configuration.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from ..types import JsonDict

_MIB = 1024 * 1024
_GIB = 1024 * _MIB
# Above these a value is a slip of the keyboard, and would overflow a timer or a date further down.
_LONGEST_SECONDS = 366 * 24 * 3600
_LONGEST_DAYS = 36_500
_LARGEST_COUNT = 1_000_000
_LARGEST_SIZE = 2**53

T = TypeVar("T")


def _option(default: T, doc: str, **limits: int) -> T:
    """A setting: its default, what it does, and JSON Schema limits such as `minimum=1`."""
    return field(default=default, metadata={"doc": doc, "limits": limits})


def _named(doc: str) -> dict[str, Any]:
    """Groups of settings under names that the user chooses."""
    return field(default_factory=dict, metadata={"doc": doc})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetConfig:
    """A named bundle of tools."""

    description: str = _option("", "What the set is for, in one line.")
    tools: tuple[str, ...] = _option((), "Names of the tools in the set.")
    includes: tuple[str, ...] = _option((), "Names of other sets whose tools are in this one too.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsConfig:
    """Which tools a model is offered."""

    enabled_toolsets: tuple[str, ...] | None = _option(
        None, "Offer only the tools of these sets. null offers every known set, an empty list none."
    )
    disabled_toolsets: tuple[str, ...] = _option((), "Never offer the tools of these sets.")
    on_collision: Literal["refuse", "replace"] = _option(
        "refuse", "What happens when a second toolset registers a tool's name: keep the first, or let the later win."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesConfig:
    """What the file tools may touch."""

    roots: tuple[str, ...] = _option((), "Folders that the file tools are kept inside. An empty list sets no limit.")
    max_read_bytes: int = _option(
        10 * _MIB,
        "Size of the largest file that is read whole; a larger one is read page by page.",
        minimum=1,
        maximum=_LARGEST_SIZE,
    )
    max_write_bytes: int = _option(
        10 * _MIB, "Size of the largest file that is written.", minimum=1, maximum=_LARGEST_SIZE
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsConfig:
    """How much of a tool's output the model gets, and how long the rest is kept."""

    max_chars: int = _option(
        100_000,
        "Longest result in characters that the model gets whole, for tools that set no length of their own.",
        minimum=1,
        maximum=_LARGEST_SIZE,
    )
    turn_max_chars: int = _option(
        200_000, "Characters that all results of one turn may have together.", minimum=1, maximum=_LARGEST_SIZE
    )
    keep_days: int = _option(7, "Days that a stored result is kept.", minimum=0, maximum=_LONGEST_DAYS)
    max_total_bytes: int = _option(
        _GIB, "Size of all stored results together; the oldest go first.", minimum=0, maximum=_LARGEST_SIZE
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsConfig:
    """What bounds the calls that run."""

    batch_timeout: float = _option(
        600.0,
        "Seconds that the calls of one model message may take together.",
        exclusiveMinimum=0,
        maximum=_LONGEST_SECONDS,
    )
    hook_timeout: float = _option(
        5.0, "Seconds that one plugin hook may take.", exclusiveMinimum=0, maximum=_LONGEST_SECONDS
    )
    max_argument_chars: int = _option(
        5_000_000, "Length of the longest arguments that a call may have.", minimum=1, maximum=_LARGEST_SIZE
    )
    max_threads: int = _option(128, "Threads that run calls in this process.", minimum=1, maximum=_LARGEST_COUNT)
    max_threads_per_session: int = _option(
        100, "Threads that run calls of one session.", minimum=1, maximum=_LARGEST_COUNT
    )
    max_async: int = _option(10_000, "Async calls that run at once in this process.", minimum=1, maximum=_LARGEST_COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginConfig:
    """What one plugin may do."""

    enabled: bool = _option(True, "Load the plugin.")
    allow_override: bool = _option(False, "Let the plugin replace or remove built-in tools.")
    settings: Mapping[str, Any] = _named("What the plugin itself wants to know, by its own names.")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCommandConfig:
    """A command that is told of what happens, and may stop it."""

    command: str = _option("", "What the shell runs. It gets the event as JSON on its standard input.")
    matcher: str = _option("", "Only for tools whose whole name fits this pattern, such as `terminal|write_.*`.")
    timeout: float = _option(60.0, "Seconds that the command may take.", exclusiveMinimum=0, maximum=_LONGEST_SECONDS)
    policy: bool = _option(False, "Block the call when the command fails or takes too long, instead of going on.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The model that an agent asks. Keys are never kept here: they come from the environment, or the system's keyring."""

    name: str = _option("", "The model's name at its provider. HANDRAIL_MODEL goes before it.")
    provider: Literal["openai", "anthropic"] = _option("openai", "The language that the server speaks.")
    base_url: str = _option("", "Where the server is; the provider's own if empty. OPENAI_BASE_URL is asked next.")
    key_variable: str = _option("", "Environment variable with the key; OPENAI_API_KEY or ANTHROPIC_API_KEY if empty.")
    context_tokens: int = _option(
        128_000, "How many tokens fit into one request.", minimum=1_000, maximum=_LARGEST_SIZE
    )
    fallbacks: tuple[str, ...] = _option((), "Models to ask when the first does not answer, at the same provider.")
    max_model_calls: int = _option(
        90, "How often the model is asked before a turn ends by itself.", minimum=1, maximum=_LARGEST_COUNT
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that can be set in config.yaml."""

    toolsets: Mapping[str, ToolsetConfig] = _named("Your own toolsets, by name.")
    tools: ToolsConfig = field(default_factory=ToolsConfig)
    files: FilesConfig = field(default_factory=FilesConfig)
    results: ResultsConfig = field(default_factory=ResultsConfig)
    calls: CallsConfig = field(default_factory=CallsConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    plugins: Mapping[str, PluginConfig] = _named("What each plugin may do, by the plugin's name.")
    hooks: Mapping[str, tuple[HookCommandConfig, ...]] = _named(
        "Commands to run around calls, by the event: `pre_tool_call` or `PreToolUse`, `post_tool_call`..."
    )
    command_allowlist: tuple[str, ...] = _option(
        (), "Kinds of command that run without asking, because someone once answered 'always'."
    )


def json_schema() -> JsonDict:
    """The configuration as JSON Schema (draft 2020-12), with each setting's documentation and default."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Handrail configuration",
        **_object_schema(Config),
    }


def _object_schema(kind: type) -> JsonDict:
    hints = get_type_hints(kind)
    return {
        "type": "object",
        "description": kind.__doc__ or "",
        "properties": {item.name: _property_schema(hints[item.name], item) for item in dataclasses.fields(kind)},
        "additionalProperties": False,
    }


def _property_schema(hint: Any, item: dataclasses.Field[Any]) -> JsonDict:
    schema = {**_schema_of(hint), **item.metadata.get("limits", {})}
    if "doc" in item.metadata:  # a section is documented by its class
        schema["description"] = item.metadata["doc"]
    if item.default is not dataclasses.MISSING:
        schema["default"] = list(item.default) if isinstance(item.default, tuple) else item.default
    return schema


def _schema_of(hint: Any) -> JsonDict:
    if hint is Any:
        return {"type": ["string", "number", "boolean", "array", "object", "null"]}
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
        named = _schema_of(arguments[1])
        return {
            "type": "object",
            "propertyNames": {"minLength": 1},
            "additionalProperties": {"description": "One of them.", **named},
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
