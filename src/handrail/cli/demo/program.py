"""Which scenes play, and in which order."""

from __future__ import annotations

from collections.abc import Callable

from . import approval, scenes

SCENES: tuple[Callable[[], scenes.Scene], ...] = (
    scenes.a_plan,
    scenes.reading_together,
    scenes.a_long_result,
    scenes.an_unknown_tool,
    scenes.a_bad_argument,
    scenes.a_patch,
    scenes.a_shell_that_stays,
    scenes.a_server_in_the_background,
    scenes.a_program_that_asks,
    scenes.a_tool_of_an_mcp_server,
    approval.a_question,
    approval.what_nobody_can_allow,
    scenes.an_unavailable_tool,
    scenes.the_end,
)
