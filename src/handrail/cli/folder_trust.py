"""Ask once whether what a folder brings for agents may be used: instructions, MCP servers, plugins and skills."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ..agent.system_prompt import FolderTrust, project_files
from ..base.own_process import started_by_agent
from ..config.paths import Source, find_plugins, project_mcp_file
from ..config.store import load_config
from ..config.trust import Trust
from ..mcp_client.server_config import trust_project
from ..plugins.loader import trust_plugin
from ..tools.skills import library as skills
from .output import note, visible
from .runtime import confirmed_by_hand

Offer = tuple[str, Callable[[], object]]


def ask_about_folder(*, trust: bool) -> None:
    """Whatever you have seen listed is trusted by a yes, as it is now. `trust` is a yes without a question, to the folder's
    instructions only: the rest runs code, and nobody has seen it."""
    here = Path.cwd()
    known = FolderTrust(here)
    if trust:
        known.answer(yes=True)
        return
    if known.is_answered() or started_by_agent() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    instructions = [part.title.removeprefix("What ").removesuffix(" says") for part in project_files(here)]
    running, offered = list(_that_run()), list(_skills())
    told = [f"It tells agents what to do, in {_listed(instructions)}."] if instructions else []
    told += [f"It has skills for agents: {_listed([name for name, _ in offered])}."] if offered else []
    told += [f"With your rights, it would run {_listed([name for name, _ in running])}."] if running else []
    if not told:
        return
    note(f"handrail: {visible(str(known.project))} is new here. {' '.join(told)}")
    yes = confirmed_by_hand("Do you trust this folder?")
    known.answer(yes=yes)
    for _, use in [*running, *offered] if yes else ():
        use()


def _that_run() -> Iterator[Offer]:
    if (path := project_mcp_file()) is not None:
        yield f"the MCP servers of {path}", partial(trust_project, path)
    for found in find_plugins():
        if found.source is Source.PROJECT:
            yield f"the plugin {found.place}", partial(trust_plugin, found)


def _skills() -> Iterator[Offer]:
    """Without those that seem to hide something."""
    for each in skills.Library(load_config().skills).all():
        if each.place.source is skills.Source.PROJECT and each.state is skills.State.UNTRUSTED:
            yield each.name, partial(Trust().trust, skills.TRUST_KIND, each.place.folder, each.digest)


def _listed(names: list[str]) -> str:
    return visible(", ".join(name.replace(f"{os.getcwd()}/", "") for name in names))
