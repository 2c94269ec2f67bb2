"""How a setting is declared: its default, its text and its limits in one place, grouped in sections."""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, dataclass_transform

MIB = 1024 * 1024
GIB = 1024 * MIB
# Larger values are typos, and would overflow a timer or a date.
MAX_SECONDS = 366 * 24 * 3600
MAX_DAYS = 36_500
MAX_COUNT = 1_000_000
MAX_SIZE = 2**53

T = TypeVar("T")


def option(default: T, doc: str, **limits: int) -> T:
    """A setting: its default, what it does, and JSON Schema limits such as `minimum=1`."""
    return field(default=default, metadata={"doc": doc, "limits": limits})


def seconds(default: float, doc: str, *, or_zero: bool = False) -> float:
    """A time in seconds; `or_zero`: 0 has a meaning of its own."""
    return option(default, doc, **{"minimum" if or_zero else "exclusiveMinimum": 0}, maximum=MAX_SECONDS)


def count(default: int, doc: str, *, minimum: int = 1) -> int:
    """How many of something."""
    return option(default, doc, minimum=minimum, maximum=MAX_COUNT)


def size(default: int, doc: str, *, minimum: int = 1) -> int:
    """Bytes, characters or tokens."""
    return option(default, doc, minimum=minimum, maximum=MAX_SIZE)


def named(doc: str) -> dict[str, Any]:
    """Groups of settings under names that the user chooses."""
    return field(default_factory=dict, metadata={"doc": doc})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Section:
    """A frozen dataclass whose methods are written here once: generating them for each of many sections would take a fifth of
    the start-up time."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **given: Any) -> None:
        values = self.__dict__
        for name, item in self.__dataclass_fields__.items():
            if name in given:
                values[name] = given.pop(name)
            else:
                values[name] = item.default if item.default_factory is MISSING else item.default_factory()
        if given:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(given)}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed; use dataclasses.replace")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"
