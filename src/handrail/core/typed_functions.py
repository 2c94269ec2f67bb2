"""Turn a typed function into a tool: the schema from its signature and docstring, real parameters at the call."""

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from ..errors import InvalidArguments, RegistrationError
from ..types import JsonDict, ToolContext

_UNNAMED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


class TypedTool:
    """A handler around a typed function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        documented = docstring_parser.parse(inspect.getdoc(function) or "")
        self.description = "\n\n".join(filter(None, (documented.short_description, documented.long_description)))
        try:
            hints = get_type_hints(function, include_extras=True)
        except NameError as error:
            raise RegistrationError(f"tool {function.__name__!r}: cannot resolve its annotations: {error}") from None
        hints.pop("return", None)
        self.context_parameter = next((name for name, hint in hints.items() if _means_context(hint)), None)
        described = {param.arg_name: param.description for param in documented.params if param.description}
        try:
            self._model = self._arguments_model(hints, described)
            self.parameters = self._model.model_json_schema(by_alias=True, schema_generator=_Untitled)
        except PydanticUserError as error:
            why = f"no schema can say its types: {error.message}"
            raise RegistrationError(f"tool {function.__name__!r}: {why}") from None

    def __call__(self, args: JsonDict, *, context: ToolContext | None = None, **_: object) -> Any:
        try:
            arguments = self._model.model_validate(args)
        except ValidationError as error:
            places = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidArguments(places) from None
        values = {field.alias or name: getattr(arguments, name) for name, field in self._model.model_fields.items()}
        if self.context_parameter:
            values[self.context_parameter] = context or ToolContext()
        return self.function(**values)

    def _arguments_model(self, hints: dict[str, Any], described: dict[str, str]) -> type[BaseModel]:
        """Fields are numbered, and the arguments' own names are aliases: any name will do then."""
        fields: dict[str, Any] = {}
        for number, parameter in enumerate(inspect.signature(self.function).parameters.values()):
            if parameter.name == self.context_parameter:
                continue
            if parameter.kind in _UNNAMED:
                why = f"parameter {parameter.name!r} has no name that a model could use; take every argument by keyword"
                raise RegistrationError(f"tool {self.function.__name__!r}: {why}")
            about: dict[str, Any] = {"alias": parameter.name}
            if parameter.name in described:
                about["description"] = described[parameter.name]
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[f"argument_{number}"] = (hints.get(parameter.name, Any), Field(default, **about))
        return create_model(f"{self.function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


class _Untitled(GenerateJsonSchema):
    """Pydantic titles everything after its own name: words that cost context and say nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  the signature is pydantic's
        return False

    def model_schema(self, schema: Any) -> Any:
        return {key: value for key, value in super().model_schema(schema).items() if key != "title"}


def _means_context(hint: Any) -> bool:
    return hint is ToolContext or any(_means_context(part) for part in get_args(hint))
