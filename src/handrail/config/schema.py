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

ANYTHING = ("string", "boolean", "integer", "number", "array", "object", "null")

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
class TerminalConfig:
    """Where commands run, and what bounds them."""

    backend: str = _option(
        "local",
        "Where tasks run that say nothing else: local, docker, ssh, ... `docker:python:3.12` names the image too.",
    )
    cwd: str | None = _option(None, "Directory that a task's shell begins in. null is where the runtime was started.")
    timeout: float = _option(
        180.0,
        "Seconds that a command may take when the call does not say.",
        exclusiveMinimum=0,
        maximum=_LONGEST_SECONDS,
    )
    max_timeout: float = _option(
        600.0, "Seconds that a command may take at most.", exclusiveMinimum=0, maximum=_LONGEST_SECONDS
    )
    idle_seconds: float = _option(
        1800.0,
        "Seconds after which an environment that nobody uses is closed. 0 keeps it open.",
        minimum=0,
        maximum=_LONGEST_SECONDS,
    )
    env: Mapping[str, str] = _named("Environment variables that commands get, by name.")
    allowed_secrets: tuple[str, ...] = _option(
        (), "Names of secret variables of the runtime that commands may see all the same."
    )
    max_output_chars: int = _option(
        50_000,
        "Longest output in characters that the model gets whole; of a longer one it gets the head and the tail.",
        minimum=1000,
        maximum=_LARGEST_SIZE,
    )
    max_stored_bytes: int = _option(
        4 * _MIB,
        "How much of a long output is kept for read_result, besides its tail.",
        minimum=0,
        maximum=_LARGEST_SIZE,
    )
    backends: Mapping[str, Mapping[str, Any]] = _named("The settings of each backend, by its name.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesConfig:
    """How many background processes there may be, and how long one is remembered."""

    max_running: int = _option(
        128, "Background processes that may run at once, of all tasks together.", minimum=1, maximum=_LARGEST_COUNT
    )
    max_running_per_task: int = _option(
        32, "Background processes of one task that may run at once.", minimum=1, maximum=_LARGEST_COUNT
    )
    max_finished: int = _option(
        64, "Ended processes that are remembered, with their logs.", minimum=0, maximum=_LARGEST_COUNT
    )
    keep_finished_hours: float = _option(
        24.0, "Hours that an ended process is remembered, with its log.", minimum=0, maximum=_LONGEST_DAYS * 24
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
class ApprovalsConfig:
    """Who decides about dangerous actions, and what needs no decision."""

    mode: Literal["manual", "smart", "off"] = _option(
        "manual",
        "manual asks a person; smart lets a small model decide about what stays in the project, and asks a person about "
        "the rest; off asks nobody. What can never run, and your deny list, hold in every mode.",
    )
    timeout: float = _option(
        300.0, "Seconds to wait for an answer; none by then is a no.", exclusiveMinimum=0, maximum=_LONGEST_SECONDS
    )
    headless: Literal["deny", "queue"] = _option(
        "deny",
        "Where no person can be asked: deny at once, or queue the question for `handrail approvals answer` in another "
        "terminal.",
    )
    task_minutes: float = _option(
        30.0, "Minutes that the answer 'task' holds.", exclusiveMinimum=0, maximum=_LONGEST_SECONDS
    )
    task_uses: int = _option(20, "How many times the answer 'task' holds.", minimum=1, maximum=_LARGEST_COUNT)
    allow: tuple[str, ...] = _option(
        (),
        "Commands that need no asking, by their first words: `git push origin`, `docker compose down`. `*` is any word.",
    )
    deny: tuple[str, ...] = _option(
        (), "Commands that never run, in the same form; also `tool:NAME` for a tool's name."
    )
    ask_tools: tuple[str, ...] = _option((), "Names of tools whose every call asks, such as `mcp__mail__*`.")
    smart_url: str = _option(
        "", "Address of an OpenAI-compatible API for the mode smart, such as http://127.0.0.1:11434/v1."
    )
    smart_model: str = _option("", "The model to ask there.")
    smart_key_env: str = _option("", "Environment variable that holds the key for it.")
    smart_timeout: float = _option(
        15.0, "Seconds that the model may take; then a person is asked.", exclusiveMinimum=0, maximum=600
    )
    history_max_bytes: int = _option(
        16 * _MIB,
        "Size of the record of all actions, for `handrail approvals simulate`; the oldest go first. 0 keeps none.",
        minimum=0,
        maximum=_LARGEST_SIZE,
    )


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
class ApprovalRuleConfig:
    """A rule of your own about commands, beside the built-in ones; how to write one is in the documentation."""

    severity: Literal["block", "ask", "note"] = _option(
        "ask", "Whether the command never runs, asks, or is only noted."
    )
    why: str = _option("", "Why it matters, in a few words; the person who is asked reads it.")
    uses: tuple[str, ...] = _option((), "Uses of programs, such as `make deploy|release !-n`.")
    pattern: str = _option("", "Instead of uses, a regular expression for the words of a command line.")
    match: tuple[str, ...] = _option((), "Commands that the rule must find; checked when the configuration is read.")
    spare: tuple[str, ...] = _option((), "Commands like those that it must not find.")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerConfig:
    """An MCP server whose tools are offered. `${NAME}` in a text stands for the environment variable."""

    enabled: bool = _option(True, "Connect to the server.")
    command: str = _option("", "The program to start, for a server that speaks over its standard input and output.")
    args: tuple[str, ...] = _option((), "Arguments of the program.")
    env: Mapping[str, str] = _named("Environment variables that the program gets; it gets few others.")
    cwd: str | None = _option(None, "Directory that the program starts in.")
    url: str = _option("", "Address of a server that is reached by HTTP.")
    type: Literal["auto", "stdio", "http", "sse"] = _option(
        "auto", "How to talk to it. auto: stdio for a command, http (streamable) for an address; sse is the old way."
    )
    headers: Mapping[str, str] = _named("HTTP headers that every request carries.")
    protocol: Literal["auto", "handshake"] = _option(
        "auto", "auto asks which revision the server speaks; handshake does not ask, for servers that cannot bear it."
    )
    include: tuple[str, ...] = _option((), "Only the tools whose names fit one of these, such as `get_*`.")
    exclude: tuple[str, ...] = _option((), "Not the tools whose names fit one of these.")
    ask: Literal["destructive", "writes", "always"] = _option(
        "destructive",
        "Whose calls ask first: tools that say they destroy, all that do not say they only read, or every tool.",
    )
    timeout: float = _option(120.0, "Seconds that one call may take.", exclusiveMinimum=0, maximum=_LONGEST_SECONDS)
    connect_timeout: float = _option(
        30.0, "Seconds that connecting may take.", exclusiveMinimum=0, maximum=_LONGEST_SECONDS
    )
    idle_seconds: float = _option(
        0.0,
        "Seconds without a call after which the program is ended, until the next call. 0 keeps it.",
        minimum=0,
        maximum=_LONGEST_SECONDS,
    )
    max_tools: int = _option(1000, "Tools that are taken from the server.", minimum=1, maximum=_LARGEST_COUNT)
    max_message_bytes: int = _option(
        32 * _MIB, "Size of the largest message that is taken from the server.", minimum=1024, maximum=_LARGEST_SIZE
    )
    elicitation: bool = _option(True, "Let the server ask the person something, by whoever approves.")
    roots: tuple[str, ...] = _option((), "Folders that the server is told to work in. An empty list tells it nothing.")


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
class SkillsConfig:
    """Which skills a model is told of."""

    folders: tuple[str, ...] = _option((), "Folders with skills of yours, besides `skills` beside config.yaml.")
    disabled: tuple[str, ...] = _option((), "Names of skills that no model is told of.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that can be set in config.yaml."""

    toolsets: Mapping[str, ToolsetConfig] = _named("Your own toolsets, by name.")
    tools: ToolsConfig = field(default_factory=ToolsConfig)
    files: FilesConfig = field(default_factory=FilesConfig)
    terminal: TerminalConfig = field(default_factory=TerminalConfig)
    processes: ProcessesConfig = field(default_factory=ProcessesConfig)
    results: ResultsConfig = field(default_factory=ResultsConfig)
    calls: CallsConfig = field(default_factory=CallsConfig)
    approvals: ApprovalsConfig = field(default_factory=ApprovalsConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    skills: SkillsConfig = field(default_factory=SkillsConfig)
    plugins: Mapping[str, PluginConfig] = _named("What each plugin may do, by the plugin's name.")
    hooks: Mapping[str, tuple[HookCommandConfig, ...]] = _named(
        "Commands to run around calls, by the event: `pre_tool_call` or `PreToolUse`, `post_tool_call`..."
    )
    mcp_servers: Mapping[str, McpServerConfig] = _named("MCP servers whose tools are offered, by name.")
    approval_rules: Mapping[str, ApprovalRuleConfig] = _named("Your own rules about commands, by their id.")
    command_allowlist: tuple[str, ...] = _option(
        (),
        "Kinds of action that need no asking, because someone answered 'always': a rule and how far it reaches, such as "
        "fs.rm.recursive@project:/srv/app.",
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
        _describe(schema, item.metadata["doc"])
    if item.default_factory is dict:
        schema["default"] = {}
    if item.default is not dataclasses.MISSING:
        schema["default"] = list(item.default) if isinstance(item.default, tuple) else item.default
    return schema


def _describe(schema: JsonDict, doc: str) -> None:
    """What is under names of the user's choice is documented by its class, or else by the same text."""
    schema["description"] = doc
    named = schema.get("additionalProperties")
    if named and "description" not in named:
        _describe(named, doc)


def _schema_of(hint: Any) -> JsonDict:
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
