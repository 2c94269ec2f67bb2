"""The built-in tools, declared once per process: each file of a tool family registers here, and every runtime copies them."""

from __future__ import annotations

from .registry import ToolRegistry

registry = ToolRegistry()
