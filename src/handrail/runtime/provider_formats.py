"""Write a tool's definition the way each provider takes it, and read the calls of a model's message in any of their shapes."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, cast

from ..core.entry import pointed_at
from ..core.outcome import Outcome
from ..errors import InvalidArguments
from ..types import JsonDict, ToolCall

Format = Literal["openai", "responses", "anthropic", "gemini", "mcp"]


def _openai(name: str, description: str, parameters: JsonDict, _: bool) -> JsonDict:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _responses(name: str, description: str, parameters: JsonDict, _: bool) -> JsonDict:
    # Strict is this API's default, and refuses every schema with an optional argument.
    return {"type": "function", "name": name, "description": description, "parameters": parameters, "strict": False}


def _gemini_declaration(name: str, description: str, parameters: JsonDict, _: bool) -> JsonDict:
    declaration: JsonDict = {"name": name, "description": description}
    if parameters.get("properties"):
        declaration["parameters"] = parameters
    return declaration


def _mcp(name: str, description: str, parameters: JsonDict, read_only: bool) -> JsonDict:
    annotations = {"readOnlyHint": read_only}
    return {"name": name, "description": description, "inputSchema": parameters, "annotations": annotations}


class Writer(NamedTuple):
    """One provider's way of writing: its parameters, and the definition around them."""

    parameters: Callable[[JsonDict], JsonDict]
    definition: Callable[[str, str, JsonDict, bool], JsonDict]


def writer(format: Format) -> Writer:  # noqa: A002  what it is
    return _WRITERS[format]


_UNIONS = ("anyOf", "oneOf")
_ONLY_NULL = {"type": "null"}
# References that double at every step would fill the memory; past so many, any object will do.
_MAX_FOLLOWED = 200
# What Gemini's schema type knows; anything else makes it refuse the whole request.
_GEMINI_WORDS = frozenset(
    "type format title description nullable enum items minItems maxItems properties required anyOf minimum maximum "
    "minLength maxLength pattern".split()
)
_GEMINI_FORMATS = frozenset(("enum", "date-time", "int32", "int64", "float", "double"))
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def repair(parameters: JsonDict) -> JsonDict:
    """The same parameters as an object schema that every provider takes. What it says less strictly, the runtime still
    checks: arguments are validated against the tool's own schema."""
    walk = _Repair(parameters)
    schema = _flattened(walk.schema(parameters), walk)
    schema["type"] = "object"
    if not isinstance(schema.get("properties"), dict):
        schema["properties"] = {}
    return schema


def for_gemini(parameters: JsonDict) -> JsonDict:
    """Gemini's dialect: no references, no unknown words, enums of strings only."""
    return cast("JsonDict", _gemini(_Repair(parameters, inline=True).schema(repair(parameters))))


class _Repair:
    """One walk over a schema. References are followed where they have siblings, or everywhere with `inline`."""

    def __init__(self, root: JsonDict, *, inline: bool = False) -> None:
        self._root = root
        self._inline = inline
        self._following: list[str] = []
        self._followed = 0

    def schema(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return {}  # `true` and `false` are schemas, but not to any provider
        reference = schema.get("$ref")
        if isinstance(reference, str) and (self._inline or len(schema) > 1 or schema is self._root):
            return self.follow(reference, {key: value for key, value in schema.items() if key != "$ref"})
        fixed = _without_null({key: self._word(key, value) for key, value in schema.items()})
        if isinstance(fixed.get("$ref"), str) and len(fixed) > 1:
            return self.schema(fixed)
        return _with_shape(_with_one_type(fixed))

    def follow(self, reference: str, siblings: JsonDict) -> Any:
        target = pointed_at(self._root, reference) if reference.startswith("#") else None
        if not isinstance(target, dict):
            return siblings
        if reference in self._following or self._followed > _MAX_FOLLOWED:
            # A schema within itself stays a reference, or becomes anything of its type; the runtime checks the rest.
            return {"$ref": reference} if not self._inline else {"type": target.get("type", "object"), **siblings}
        self._following.append(reference)
        self._followed += 1
        try:
            return self.schema({**target, **siblings})
        finally:
            self._following.pop()

    def _word(self, key: str, value: Any) -> Any:
        if key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
            return {name: self.schema(sub) for name, sub in value.items()}
        if key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            return [self.schema(sub) for sub in value]
        if key in ("items", "not", "if", "then", "else", "contains", "propertyNames") and not isinstance(value, list):
            return self.schema(value)
        if key == "additionalProperties" and isinstance(value, dict):
            return self.schema(value)
        return value


def _without_null(schema: JsonDict) -> JsonDict:
    """Optional is said by leaving an argument out; many providers refuse a type list or a union with null."""
    types = schema.get("type")
    if isinstance(types, list) and "null" in types and len(types) > 1:
        schema = {**schema, "type": [kind for kind in types if kind != "null"]}
    if isinstance(schema.get("enum"), list) and None in schema["enum"] and len(schema["enum"]) > 1:
        schema = {**schema, "enum": [value for value in schema["enum"] if value is not None]}
    for union in _UNIONS:
        branches = schema.get(union)
        if isinstance(branches, list) and _ONLY_NULL in branches:
            rest = [branch for branch in branches if branch != _ONLY_NULL] or [_ONLY_NULL]
            outside = {key: value for key, value in schema.items() if key != union}
            schema = {**rest[0], **outside} if len(rest) == 1 else {**outside, union: rest}
    if "default" in schema and schema["default"] is None:
        schema = {key: value for key, value in schema.items() if key != "default"}
    return schema


def _with_one_type(schema: JsonDict) -> JsonDict:
    types = schema.get("type")
    if not isinstance(types, list):
        return schema
    if len(types) == 1:
        return {**schema, "type": types[0]}
    outside = {key: value for key, value in schema.items() if key in ("description", "title", "default", "$defs")}
    inside = {key: value for key, value in schema.items() if key not in outside and key != "type"}
    return {**outside, "anyOf": [_with_shape({"type": kind, **_words_for(kind, inside)}) for kind in types]}


def _words_for(kind: str, words: JsonDict) -> JsonDict:
    """The words that mean something for one type: `items` says nothing about a string."""
    objects = ("properties", "required", "additionalProperties")
    arrays = ("items", "minItems", "maxItems", "uniqueItems")
    foreign = (() if kind == "object" else objects) + (() if kind == "array" else arrays)
    return {key: value for key, value in words.items() if key not in foreign}


def _with_shape(schema: JsonDict) -> JsonDict:
    if schema.get("type") == "object" and "properties" not in schema:
        schema = {**schema, "properties": {}}
    if schema.get("type") == "array" and "items" not in schema and "prefixItems" not in schema:
        schema = {**schema, "items": {}}
    return schema


def _flattened(schema: JsonDict, walk: _Repair) -> JsonDict:
    """No unions at the top: every branch's properties side by side. What all branches require stays required."""
    flat = {key: value for key, value in schema.items() if key not in ("allOf", *_UNIONS, "if", "then", "else", "not")}
    properties: dict[str, list[Any]] = {name: [sub] for name, sub in (schema.get("properties") or {}).items()}
    required = list(schema.get("required") or [])
    for word in ("allOf", *_UNIONS):
        branches = [_branch(branch, walk) for branch in schema.get(word, ())]
        for branch in branches:
            for name, sub in branch.get("properties", {}).items():
                known = properties.setdefault(name, [])
                if sub not in known:
                    known.append(sub)
        needed = [set(branch.get("required", ())) for branch in branches]
        common = set.union(*needed) if needed and word == "allOf" else set.intersection(*needed) if needed else set()
        required += sorted(common.difference(required))
    if properties or "properties" in schema:
        flat["properties"] = {name: subs[0] if len(subs) == 1 else {"anyOf": subs} for name, subs in properties.items()}
    if required:
        flat["required"] = required
    return flat


def _branch(branch: Any, walk: _Repair) -> JsonDict:
    if isinstance(branch, dict) and isinstance(branch.get("$ref"), str):
        branch = walk.follow(branch["$ref"], {})
    return _flattened(branch, walk) if isinstance(branch, dict) and "$ref" not in branch else {}


def _gemini(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return {"type": "string"}
    source = dict(schema)
    if "const" in source:
        source["enum"] = [source.pop("const")]
    if "oneOf" in source:
        source["anyOf"] = source.pop("oneOf")
    if "allOf" in source:
        source = _flattened({**source, "anyOf": []}, _Repair({}))
    fixed = {key: value for key, value in source.items() if key in _GEMINI_WORDS}
    if fixed.get("format") not in _GEMINI_FORMATS:
        fixed.pop("format", None)
    if "anyOf" in fixed:
        fixed["anyOf"] = [_gemini(branch) for branch in fixed["anyOf"]]
    elif "type" not in fixed:
        fixed["type"] = _type_of(fixed)
    values = fixed.get("enum")
    if isinstance(values, list) and not all(isinstance(value, str) for value in values):
        del fixed["enum"]
        fixed["description"] = f"{fixed.get('description', '')} One of: {', '.join(map(str, values))}.".strip()
    if "properties" in fixed:
        fixed["properties"] = {name: _gemini(sub) for name, sub in fixed["properties"].items()}
        if "required" in fixed:
            fixed["required"] = [name for name in fixed["required"] if name in fixed["properties"]]
    if "items" in fixed or fixed.get("type") == "array":
        fixed["items"] = _gemini(fixed.get("items", {}))
    return fixed


def _type_of(schema: JsonDict) -> str:
    """The type that a schema without one means."""
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = schema.get("enum") or [""]
    return _JSON_TYPES.get(type(values[0]), "string")


_WRITERS: dict[Format, Writer] = {
    "openai": Writer(repair, _openai),
    "responses": Writer(repair, _responses),
    "anthropic": Writer(
        repair, lambda name, text, given, _: {"name": name, "description": text, "input_schema": given}
    ),
    "gemini": Writer(for_gemini, _gemini_declaration),
    "mcp": Writer(lambda given: {"properties": {}, **given, "type": "object"}, _mcp),  # it takes all of JSON Schema
}


def read_call(raw: Any) -> ToolCall:
    """One call: OpenAI chat (`function.name`), OpenAI Responses (`call_id`), Anthropic (`tool_use`), or `name`/`arguments`.
    Objects with the same attributes, as the providers' own clients give them, will do. Raises InvalidArguments."""
    function = field_of(raw, "function")
    source = raw if function is None else function
    name = field_of(source, "name")
    if not isinstance(name, str) or not name:
        raise InvalidArguments("this tool call has no name; it needs {'id', 'function': {'name', 'arguments'}}")
    arguments = next((v for key in ("arguments", "input", "args") if (v := field_of(source, key)) is not None), None)
    return ToolCall(
        name, arguments, str(field_of(raw, "call_id") or field_of(raw, "id") or field_of(raw, "tool_call_id") or "")
    )


def read_calls(message: Any) -> list[Any]:
    """The raw calls of a message, or the list itself when it is one already."""
    if isinstance(message, list | tuple):
        return list(message)
    calls = field_of(message, "tool_calls")
    if calls is None:
        content = field_of(message, "content")
        calls = (
            [part for part in content if field_of(part, "type") == "tool_use"] if isinstance(content, list) else None
        )
    if calls is None and (field_of(message, "function") is not None or field_of(message, "name") is not None):
        calls = [message]
    if not isinstance(calls, Iterable) or isinstance(calls, str | bytes | dict):
        raise InvalidArguments("this message has no tool_calls")
    return list(calls)


def tool_message(call_id: str, name: str, outcome: Outcome) -> JsonDict:
    content = outcome if isinstance(outcome, str) else outcome["content"]
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


def field_of(source: Any, key: str) -> Any:
    """A field of a JSON object, or of an object that a provider's client made of it."""
    return source.get(key) if isinstance(source, dict) else getattr(source, key, None)
