"""Conditions of rules that need more than options and words, by the name that usage patterns use."""

from __future__ import annotations

from collections.abc import Callable

from . import file_conditions, network_conditions, process_conditions, store_conditions, tool_conditions
from .command import Command

CONDITIONS: dict[str, Callable[[Command, str], bool]] = {
    **tool_conditions.CONDITIONS,
    **file_conditions.CONDITIONS,
    **process_conditions.CONDITIONS,
    **network_conditions.CONDITIONS,
    **store_conditions.CONDITIONS,
}
