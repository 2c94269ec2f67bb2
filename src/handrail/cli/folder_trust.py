"""Ask once whether what a folder brings for agents may be used: instructions, MCP servers, plugins and skills."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ..agent.system_prompt import FolderTrust, project_files
from ..base.own_process import started_by_agent
from ..config.paths import Source, find_plugins, project_mcp_file
from ..config.store import load_config
from ..config.trust import Trust
from ..tools.skills import library as skills
from .output import note, visible
from .runtime import confirmed_by_hand


def ask_about_folder(*, trust: bool) -> None:
    """A yes is for all that the question lists, as it is now. `trust` is a yes without a question, to the folder's
    instructions only: the rest runs code, and nobody has seen it."""
    here = Path.cwd()
    known = FolderTrust(here)
    if trust:
        known.answer(yes=True)
        return
    if known.is_answered() or started_by_agent() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not (brought := dict(_brought(here))):
        return
    named = visible(", ".join(brought).replace(f"{here}/", ""))
    note(f"handrail: {visible(str(known.project))} is new here. For agents it brings: {named}.")
    yes = confirmed_by_hand("Do you trust this folder?")
    known.answer(yes=yes)
    for use in brought.values() if yes else ():
        use()


def _brought(here: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything by what it is, with what trusts it as it is now. Skills that seem to hide something are left out."""
    for file, _ in project_files(here):
        yield str(file), lambda: None  # trusted with the folder
    for each in skills.Library(load_config().skills).all():
        if each.waits:
            yield f"the skill {each.name}", partial(Trust().trust, skills.TRUST_KIND, each.place.folder, each.digest)
    if (path := project_mcp_file()) is not None:
        from ..mcp_client.server_config import trust_project  # few folders have servers, and it imports much

        yield f"{path} (MCP servers, which run with your rights)", partial(trust_project, path)
    for found in find_plugins():
        if found.source is Source.PROJECT:
            from ..plugins.loader import trust_plugin  # likewise

            yield f"{found.place} (a plugin, which runs with your rights)", partial(trust_plugin, found)
