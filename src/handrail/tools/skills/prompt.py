"""The list of skills in the system prompt: names and descriptions, never their text."""

from __future__ import annotations

from .library import Library

MAX_CHARS = 12_000
_SHORT = 160
_INTRODUCTION = "Before a task that one of these is about, read it with skill_view and follow it:"


def skills_prompt(library: Library) -> str:
    """The part of a system prompt for a model that has the tool skill_view. Empty when there are no skills."""
    skills = library.ready()
    if not skills:
        return ""
    lines = [f"- {skill.name}: {skill.header.description}" for skill in skills]
    if sum(len(line) + 1 for line in lines) > MAX_CHARS:
        lines = [line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…" for line in lines]
        fit = MAX_CHARS // (_SHORT + 1)
        if len(lines) > fit:
            lines = [*lines[:fit], f"- and {len(lines) - fit} more, which skills_list shows"]
    return "\n".join([_INTRODUCTION, *lines])
