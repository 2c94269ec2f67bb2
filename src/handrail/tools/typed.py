"""Turn a typed function into a tool: the schema from its signature and docstring, real parameters at the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ..errors import InvalidArguments, RegistrationError
from ..types import JsonDict, ToolContext

_UNNAMED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


def typed_tool(function: Callable[..., Any]) -> TypedTool:
    return TypedTool(function)


class TypedTool:
    """A handler around a typed function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        documented = docstring_parser.parse(inspect.getdoc(function) or "")
        self.description = "\n\n".join(filter(None, (documented.short_description, documented.long_description)))
        hints = _hints(function)
        self.context_parameter = next((name for name, hint in hints.items() if hint is ToolContext), None)
        self._model = self._arguments_model(hints, {param.arg_name: param.description for param in documented.params})
        self.parameters = _without_titles(self._model.model_json_schema())

    def __call__(self, args: JsonDict, *, context: ToolContext | None = None, **_: object) -> Any:
        try:
            arguments = self._model.model_validate(args)
        except ValidationError as error:
            places = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidArguments(places) from None
        values = {name: getattr(arguments, name) for name in self._model.model_fields}
        if self.context_parameter:
            values[self.context_parameter] = context or ToolContext()
        return self.function(**values)

    def _arguments_model(self, hints: dict[str, Any], described: dict[str, str | None]) -> type[BaseModel]:
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.name == self.context_parameter:
                continue
            if parameter.kind in _UNNAMED:
                raise RegistrationError(
                    f"tool {self.function.__name__!r}: parameter {parameter.name!r} has no name that a model could use; "
                    "take every argument by keyword"
                )
            default = ... if parameter.default is parameter.empty else parameter.default
            field = Field(default, description=described.get(parameter.name))
            fields[parameter.name] = (hints.get(parameter.name, Any), field)
        return create_model(f"{self.function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise RegistrationError(f"tool {function.__name__!r}: cannot resolve its annotations: {error}") from None
    hints.pop("return", None)
    return hints


def _without_titles(schema: Any) -> Any:
    """Pydantic titles every field after its own name: words that cost context and say nothing."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    return {
        key: {name: _without_titles(sub) for name, sub in value.items()}
        if key == "properties"
        else _without_titles(value)
        for key, value in plain.items()
    }
