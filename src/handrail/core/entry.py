"""One registered tool, and what it must bring to be one: a handler, and parameters whose schema is checked and compiled."""

from __future__ import annotations

import inspect
import logging
import marshal
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ..base.lazy_module import named
from ..errors import RegistrationError
from ..protocols import Action
from ..settings.schema import Config
from ..types import JsonDict, Resources, ToolContext

if TYPE_CHECKING:
    import jsonschema_rs

log = logging.getLogger(__name__)

Handler = Callable[..., Any]
# Takes nothing, or a parameter `config`: the configuration of the runtime that asks.
CheckFn = Callable[..., object]
# The arguments of one call; or several steps: arguments of this tool, (tool, arguments) of another, or the name of a tool
# whose example comes first. An argument "$name" is the value that an earlier answer has under that name.
Example = Mapping[str, Any] | Sequence[Mapping[str, Any] | tuple[str, Mapping[str, Any]] | str]

new_entry = tuple.__new__  # half the cost of the named constructor, for those who register ten thousand tools


class ToolEntry(NamedTuple):
    """One registered tool. Immutable: a change of a tool is a new entry."""

    name: str
    toolset: str
    description: str
    contract: Contract
    handler: Handler
    check_fn: CheckFn | None = None
    requires_env: tuple[str, ...] = ()
    is_async: bool = False
    emoji: str = ""
    max_result_size_chars: int | float | None = None
    dynamic_schema_overrides: Callable[..., Mapping[str, Any]] | None = None
    read_only: bool = False
    resources: Callable[..., Resources] | None = None
    timeout: float | None = None
    needs_agent: bool = False
    owner: str = ""
    actions: Callable[[JsonDict, ToolContext], Sequence[Action]] | None = None
    toolset_description: str = ""
    example: Example | None = None
    waits: bool = False

    def __hash__(self) -> int:  # an example may hold what cannot be hashed
        return hash((self.name, self.contract, self.handler))

    @property
    def is_builtin(self) -> bool:
        """Whether its handler is code of this package."""
        handler = self.handler
        module = handler.target if isinstance(handler, Reference) else getattr(handler, "__module__", "")
        return str(module).startswith("handrail.") and not self.owner

    @property
    def schema(self) -> JsonDict:
        """The OpenAI function schema; a copy that belongs to the caller."""
        return {"name": self.name, "description": self.description, "parameters": self.contract.schema()}

    def fields_now(self, listed: frozenset[str], config: Config) -> JsonDict:
        """The schema fields that the tool gives at listing time; its function may take `listed` names and the `config`. One
        that fails, or gives what is no description or no parameters, leaves the static schema, which is still true."""
        function = self.dynamic_schema_overrides
        if function is None:
            return {}
        try:
            parameters = list(inspect.signature(function).parameters)
            known: JsonDict = {"config": config} if "config" in parameters else {}
            fields = dict(function(**known) if set(parameters) <= {"config"} else function(listed, **known))
            if "parameters" in fields:
                fields["parameters"] = Contract(self.name, fields["parameters"]).schema()
            if not isinstance(fields.get("description", ""), str):
                raise TypeError("its description is no text")
        except Exception as error:  # noqa: BLE001  whatever a plugin's function does
            log.warning("the schema of %s cannot be had as of now: %s: %s", self.name, type(error).__name__, error)
            return {}
        return {name: value for name, value in fields.items() if name in ("description", "parameters")}


def check_tool(
    name: object, handler: object, toolset: object, description: object, timeout: object, functions: Sequence[object]
) -> None:
    """Raises RegistrationError for what cannot be registered."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise RegistrationError(f"tool name {name!r}: use 1 to 64 of the characters a-z A-Z 0-9 _ -")
    if not callable(handler):
        raise RegistrationError(f"tool {name!r}: handler must be callable, not {type(handler).__name__}")
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise RegistrationError(f"tool {name!r}: timeout must be a positive number of seconds, not {timeout!r}")
    for function in functions:
        if function is not None and not callable(function):
            named = "check_fn, dynamic_schema_overrides, resources and actions"
            raise RegistrationError(f"tool {name!r}: {named} must be callable, not {function!r}")
    if not isinstance(toolset, str) or not toolset:
        raise RegistrationError(f"tool {name!r}: toolset must be a name, not {toolset!r}")
    if not isinstance(description, str):
        raise RegistrationError(f"tool {name!r}: its description must be text, not {type(description).__name__}")


def function_of(name: str, schema: object, description: str) -> tuple[object, object]:
    """The parameters and the description of a schema that has them elsewhere, or not at all."""
    if not isinstance(schema, dict):
        raise RegistrationError(f"tool {name!r}: schema must be a dict, not {type(schema).__name__}")
    function = schema.get("function", schema)
    if not isinstance(function, dict):
        raise RegistrationError(f"tool {name!r}: schema.function must be a dict, not {type(function).__name__}")
    return function.get("parameters", NO_PARAMETERS), description or function.get("description") or ""


_FORM = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class Reference:
    """A callable that imports the function it names when it is first called or its signature is read. Two references to one
    function are equal, so a check that several tools name runs once for all of them."""

    __slots__ = ("_function", "target")

    def __init__(self, target: str) -> None:
        self.target = target
        self._function: Callable[..., Any] | None = None

    def resolve(self) -> Callable[..., Any]:
        if self._function is None:
            self._function = named(self.target)
        assert self._function is not None
        return self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._function or self.resolve())(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.resolve())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other.target == self.target

    def __hash__(self) -> int:
        return hash(self.target)

    def __repr__(self) -> str:
        return self.target


def dereferenced(value: Any) -> Any:
    """A text of the form "module:attribute" as a `Reference`; any other value unchanged."""
    return Reference(value) if isinstance(value, str) and _FORM.fullmatch(value) else value


def resolved(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, which is imported if it is a `Reference`."""
    return function.resolve() if isinstance(function, Reference) else function


def keywords_of(handler: Callable[..., Any]) -> tuple[frozenset[str] | None, bool]:
    """The keyword arguments that a handler takes (None: all of them), and whether it wants the context."""
    try:
        parameters = inspect.signature(handler).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return None, False
    wants_context = "context" in parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None, wants_context
    return frozenset(parameters), wants_context


T = TypeVar("T")

NO_PARAMETERS: JsonDict = {"type": "object", "properties": {}}
_DIALECTS = [f"https://json-schema.org/draft/{date}/schema" for date in ("2020-12", "2019-09")]
_DIALECTS += [f"http://json-schema.org/draft-{number}/schema" for number in ("07", "06", "04")]
_COMBINATORS = ("allOf", "anyOf", "oneOf", "if", "$ref", "dependentSchemas")


class Contract:
    """One parameters schema. It is kept as bytes, so that nobody can change it and a copy is one call. The validator imports
    forty modules, and compiling takes time. So a schema that is plainly one is compiled at its second use, and at its first
    only for arguments that do not plainly fit."""

    __slots__ = ("_compiled", "_derived", "_frozen", "is_valid")

    def __init__(self, tool: str, parameters: object) -> None:
        schema = _plain(tool, parameters)
        kind = schema.get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            why = f"parameters.type must be 'object' (arguments are an object), not {kind!r}"
            raise RegistrationError(f"tool {tool!r}: {why}")
        _prune_required(tool, schema)
        self._compiled: jsonschema_rs.Validator | None = None
        self._frozen = marshal.dumps(schema)
        self._derived: dict[object, Any] = {}
        self.is_valid: Callable[[Any], bool] = self._is_first_valid
        if not _is_plainly_schema(schema):
            self._compile(tool, schema)

    def _is_first_valid(self, arguments: Any) -> bool:
        self.is_valid = self._is_next_valid
        return _plainly_fit(arguments, self.schema()) or self._is_next_valid(arguments)

    def _is_next_valid(self, arguments: Any) -> bool:
        return self._validator.is_valid(arguments)

    @property
    def _validator(self) -> jsonschema_rs.Validator:
        return self._compiled or self._compile("", self.schema())

    def _compile(self, tool: str, schema: JsonDict) -> jsonschema_rs.Validator:
        import jsonschema_rs  # see above

        try:
            # A dialect that is not built in would be fetched.
            dialect = schema.get("$schema", _DIALECTS[0])
            if (dialect.rstrip("#") if isinstance(dialect, str) else dialect) not in _DIALECTS:
                raise ValueError(f"its $schema {schema['$schema']!r} is not a known draft of JSON Schema")
            jsonschema_rs.meta.validate(schema)
            validator = jsonschema_rs.validator_for(_closed(schema), retriever=refuse_to_fetch)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            why = str(getattr(error, "message", "") or error).splitlines()[0]
            place = ".".join(["parameters", *map(str, getattr(error, "instance_path", None) or ())])
            raise RegistrationError(f"tool {tool!r}: {place} is not valid JSON Schema: {why}") from None
        self._compiled, self.is_valid = validator, validator.is_valid
        return validator

    def schema(self) -> JsonDict:
        """A copy that belongs to the caller."""
        return cast("JsonDict", marshal.loads(self._frozen))  # our own bytes

    def derived(self, key: object, make: Callable[[JsonDict], T]) -> T:
        """What someone works out from the schema, worked out once."""
        known = self._derived.get(key)
        if known is None:
            known = self._derived[key] = make(self.schema())
        return cast("T", known)

    def errors(self, arguments: object) -> Iterator[jsonschema_rs.ValidationError]:
        return iter(self._validator.iter_errors(arguments))


# What a schema may say whose every word we know. The values are the Python types that such a type surely takes.
_TYPES = {"string": (str,), "integer": (int,), "number": (int,), "boolean": (bool,), "array": (), "object": ()}
_NOTES = {"type", "description", "default", "title"}
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems")
_PLAIN_WORDS = {*_NOTES, *_LIMITS, "properties", "required", "items", "enum", "pattern", "additionalProperties"}
_PLAIN_PATTERN = re.compile(r"\^(?:\[a-z0-9_\]\+|\\\.)+\$")


def _is_plainly_schema(schema: Any, depth: int = 8) -> bool:
    """Whether it is a JSON Schema beyond doubt. What is not may still be one."""
    if type(schema) is not dict or not schema.keys() <= _PLAIN_WORDS or not depth:
        return False
    kind, names, values = schema.get("type", "object"), schema.get("required", []), schema.get("enum", ["x"])
    return (
        type(kind) is str
        and kind in _TYPES
        and all(type(schema.get(note, "")) is str for note in ("description", "title"))
        and all(type(limit := schema.get(word, 0)) is int and limit >= 0 for word in _LIMITS)
        and all(type(each) is list and set(map(type, each)) <= {str} for each in (names, values))
        and len(names) == len(set(names))
        and 0 < len(values) == len(set(values))
        and ("pattern" not in schema or _PLAIN_PATTERN.fullmatch(str(schema["pattern"])) is not None)
        and type(schema.get("additionalProperties", True)) is bool
        and type(properties := schema.get("properties", {})) is dict
        and all(
            _is_plainly_schema(each, depth - 1)
            for each in (*properties.values(), schema.get("items", {}))
            if each != {}
        )
    )


def _plainly_fit(arguments: Any, schema: JsonDict) -> bool:
    """Whether the arguments fit beyond doubt: the names are known, and each value has its type, of which no more is asked."""
    known = schema.get("properties", {})
    return (
        type(arguments) is dict
        and arguments.keys() >= set(schema.get("required", ()))
        and all(
            name in known and known[name].keys() <= _NOTES and type(value) in _TYPES[known[name].get("type", "object")]
            for name, value in arguments.items()
        )
    )


def _plain(tool: str, parameters: object) -> JsonDict:
    if not isinstance(parameters, dict):
        kind = type(parameters).__name__
        raise RegistrationError(f"tool {tool!r}: parameters must be a JSON Schema object, not {kind}")
    try:
        return cast("JsonDict", marshal.loads(marshal.dumps(parameters)))  # our own bytes
    except ValueError:
        pass  # an enum member or a subclass of str: JSON can still carry it
    import json

    try:
        return cast("JsonDict", json.loads(json.dumps(parameters)))
    except (TypeError, ValueError, RecursionError) as error:
        raise RegistrationError(f"tool {tool!r}: parameters cannot be written as JSON: {error}") from None


def _prune_required(tool: str, schema: JsonDict) -> None:
    """Take out of `required` what no call could give: a name that is not declared where only declared ones are taken."""
    names, declared = schema.get("required"), schema.get("properties", {})
    if isinstance(names, list) and isinstance(declared, dict) and _closed(schema).get("additionalProperties") is False:
        missing = [name for name in names if name not in declared and "patternProperties" not in schema]
        if missing and len(set(map(str, names))) == len(names):
            schema["required"] = [name for name in names if name not in missing]
            log.warning("tool %r requires %s, which its properties do not have; it is not required", tool, missing)


def _closed(schema: JsonDict) -> JsonDict:
    """The schema that arguments are held against: names it does not mention are refused, unless it says otherwise."""
    if "properties" not in schema or "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return schema
    if "patternProperties" in schema or any(word in schema for word in _COMBINATORS):
        return {**schema, "unevaluatedProperties": False}
    return {**schema, "additionalProperties": False}


def refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri}: nothing is fetched")


def pointed_at(root: JsonDict, reference: str) -> Any:
    """What a reference within a schema (`#/$defs/x`) leads to; None when that is nothing."""
    target: Any = root
    for step in filter(None, reference[1:].split("/")):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    return target
