"""One registered tool, and what it must bring to be one."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import RegistrationError
from ..protocols import Action
from ..settings.schema import Config
from ..types import JsonDict, Resources, ToolContext
from .availability import CheckFn
from .contract import NO_PARAMETERS, Contract

log = logging.getLogger(__name__)

Handler = Callable[..., Any]
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
        """The schema fields that the tool gives at listing time; its function may take `listed` names and the `config`.

        One that fails, or gives what is no description or no parameters, leaves the static schema, which is still true.
        """
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


def check_basics(name: object, handler: object) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise RegistrationError(f"tool name {name!r}: use 1 to 64 of the characters a-z A-Z 0-9 _ -")
    if not callable(handler):
        raise RegistrationError(f"tool {name!r}: handler must be callable, not {type(handler).__name__}")


def check_texts(name: str, toolset: object, description: object) -> None:
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


def check_options(name: str, timeout: object, *functions: object) -> None:
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise RegistrationError(f"tool {name!r}: timeout must be a positive number of seconds, not {timeout!r}")
    for function in functions:
        if function is not None and not callable(function):
            raise RegistrationError(
                f"tool {name!r}: check_fn, dynamic_schema_overrides, resources and actions must be callable, "
                f"not {function!r}"
            )


_FORM = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class Reference:
    """A callable that imports the function it names when it is first called or its signature is read.

    Two references to one function are equal, so a check that several tools name runs once for all of them.
    """

    __slots__ = ("_function", "target")

    def __init__(self, target: str) -> None:
        self.target = target
        self._function: Callable[..., Any] | None = None

    def resolve(self) -> Callable[..., Any]:
        if self._function is None:
            module, _, attribute = self.target.partition(":")
            self._function = getattr(import_module(module), attribute)
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
