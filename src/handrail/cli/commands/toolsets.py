"""List the toolsets, or show one of them.

A toolset is a group of tools, or of other toolsets. Define your own in config.yaml, under `toolsets`.

Examples:
  handrail toolsets
  handrail toolsets coding
  handrail toolsets safe --json
"""

from typing import Annotated

from ..options import Json, ToolsetName, option
from ..output import emit_either, emit_table, say
from ..runtime import open_runtime

_SURFACES = "handrail-"
Everything = Annotated[bool, option("--all", "Include those of surfaces and chat platforms.")]


def toolsets(name: ToolsetName = None, everything: Everything = False, as_json: Json = False) -> None:
    known = open_runtime().toolsets
    if name is not None:
        info = known.info(name)
        lines = [f"{info['name']}: {info['description']}"]
        lines += [f"includes: {', '.join(info['includes'])}"] if info["includes"] else []
        lines.append(f"tools: {', '.join(info['tools']) or 'none installed'}")
        emit_either(info, "\n".join(lines), as_json=as_json)
        return
    listed = [known.info(each) for each in known.names()]
    shown = [info for info in listed if everything or not info["name"].startswith(_SURFACES)]
    rows = [(info["name"], str(len(info["tools"])), info["description"]) for info in shown]
    emit_table(("TOOLSET", "TOOLS", "WHAT FOR"), rows, listed, as_json=as_json, wide=2)
    if len(shown) < len(listed) and not as_json:
        say(f"{len(listed) - len(shown)} more say what a surface or chat platform offers; `handrail toolsets --all`")
