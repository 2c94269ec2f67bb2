"""What the pages name exists: commands and their options, settings, headings that are linked to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from handrail.cli.app import build
from handrail.settings.schema import Config

from .page_blocks import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "reference" not in page.parts),
]
_CODE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def _id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _prose(page: Path) -> str:
    return _CODE.sub("", page.read_text())


def _commands(text: str) -> Iterator[list[str]]:
    """The words after `handrail` of each command in code or between backticks."""
    lines = [
        line
        for block in _CODE.findall(text)
        for line in re.findall(r"(?:^|\$ |bin/)handrail ([a-z].*)", block, re.MULTILINE)
    ]
    for line in [*lines, *re.findall(r"`handrail ([a-z][^`\n]*)`", text)]:
        try:
            yield shlex.split(re.split(r"[|>&]| #", line)[0])
        except ValueError:
            continue  # it ends inside of a quotation, which the split has cut


def _resolve(words: list[str]) -> tuple[Any, list[str]]:
    """The command that these words run, and its own words."""
    root: Any = get_command(build(words[:1]))
    command, rest = root.get_command(None, words[0]), words[1:]
    while rest and rest[0] in getattr(command, "commands", {}):
        command, rest = command.commands[rest[0]], rest[1:]
    # `handrail batch FILE` is short for `handrail batch run FILE`.
    if rest and "run" in getattr(command, "commands", {}):
        command = command.commands["run"]
    return command, rest


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_command_that_a_page_names_has_these_options(page: Path) -> None:
    for words in _commands(page.read_text()):
        command, rest = _resolve(words)
        assert command is not None, f"handrail {shlex.join(words)}"
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        own = rest[: rest.index("--")] if "--" in rest else rest
        given = {word.partition("=")[0] for word in own if re.match(r"--\w", word)}
        assert given <= known, f"handrail {shlex.join(words)}"


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    config = Config()
    for name in re.findall(r"`([a-z]\w*\.[a-z_.]+[a-z])(?:: [^`]*)?`", page.read_text()):
        section, _, rest = name.partition(".")
        # Home Assistant's services and files have such names, too.
        if not hasattr(config, section) or section == "homeassistant" or name.endswith(".jsonl"):
            continue
        value: Any = getattr(config, section)
        for part in rest.split("."):
            if not isinstance(value, dict | None):
                assert hasattr(value, part), name
                value = getattr(value, part)


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_heading_that_a_page_links_to_is_there(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", _prose(page)):
        if "reference/" in target:
            continue  # made by `make docs`
        linked = (page.parent / target).resolve() if target else page
        headings = re.findall(r"^#+ (.*)$", _prose(linked), re.MULTILINE)
        slugs = {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", each.lower()).strip()) for each in headings}
        assert heading in slugs, f"{target}#{heading}"


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_page_says_in_its_first_lines_what_it_is_for(page: Path) -> None:
    first = page.read_text().split("\n", 1)[1].lstrip()
    assert re.match(r"[\w`*“\[]", first), first[:60]
    assert not first.startswith("```")
