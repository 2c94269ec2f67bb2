"""See, trust and write plugins.

Examples:
  handrail plugins list
  handrail plugins new parrot
  handrail plugins trust parrot
"""

from pathlib import Path
from typing import Annotated

from ...base.suggest import did_you_mean
from ...config.config_file import ConfigFile
from ...config.paths import Found, Source, config_path
from ...config.trust import Trust
from ...plugins.hook_manager import hooks
from ...plugins.loader import TRUST_KIND, Plugin, trust_plugin
from ...plugins.plugin_files import write_template
from ...types import JsonDict
from ..options import Json, argument, new_cli, option
from ..output import emit, emit_json, emit_table, refuse
from ..runtime import open_runtime

cli = new_cli()
Name = Annotated[str, argument("NAME", "The plugin's name.", show_default=False)]
Revoke = Annotated[bool, option("--revoke", "Take the trust back.")]
Folder = Annotated[Path | None, option("--in FOLDER", "Where to put it; default: your plugin folder.")]


@cli.command("list")
def list_plugins(as_json: Json = False) -> None:
    """List the plugins that were found, and the state of each.

    They come from the folder `plugins` beside config.yaml, from pip (entry points of the group `handrail`), and from
    `.handrail/plugins` of the project, once they are trusted.
    """
    views, empty = [*map(_as_json, _found())], "No plugins. `handrail plugins new NAME` writes one to start from."
    rows = [(each["name"], each["from"], each["state"], each["reason"] or each["description"]) for each in views]
    emit_table(("PLUGIN", "FROM", "STATE", "ABOUT"), rows, views, as_json=as_json, wide=3, empty=empty)


@cli.command()
def info(name: Name, as_json: Json = False) -> None:
    """Show one plugin: where it is, what it provides, how often its hooks failed."""
    plugin = _get(name)
    about = _as_json(plugin)
    if as_json:
        emit_json(about)
        return
    for key, value in about.items():
        if value and key != "provides":
            emit(f"{key.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}")
    for kind, names in plugin.provides.items():
        emit(f"provides {kind.replace('_', ' ')}: {', '.join(names)}")


@cli.command()
def enable(name: Name) -> None:
    """Load a plugin again that was switched off."""
    _switch(name, on=True)


@cli.command()
def disable(name: Name) -> None:
    """Keep a plugin from being loaded, wherever it comes from."""
    _switch(name, on=False)


@cli.command()
def trust(name: Name, revoke: Revoke = False) -> None:
    """Let a plugin be loaded, as it is now.

    A plugin is Python that runs with your rights: read it first. Any change of its files has to be trusted again.
    """
    plugin = _get(name)
    if revoke:
        Trust().revoke(TRUST_KIND, plugin.place)
        emit(f"{name} is no longer trusted")
        return
    files = trust_plugin(Found(plugin.name, plugin.source, plugin.place))
    emit(f"{name} is trusted as it is now: {len(files.content)} files, {files.digest[:12]}")


@cli.command()
def new(name: Name, folder: Folder = None) -> None:
    """Write a working plugin with a test, to start from."""
    user_folder = config_path().parent / "plugins"
    for path in write_template(name, folder or user_folder):
        emit(str(path))
    if folder is None:  # it is ours as it is; a change of it is asked about
        trust_plugin(Found(name, Source.USER, str(user_folder / name)))


def _found() -> list[Plugin]:
    plugins = open_runtime().plugins
    return plugins.found if plugins is not None else []


def _get(name: str) -> Plugin:
    found = {plugin.name: plugin for plugin in reversed(_found())}
    if name not in found:
        refuse(f"no plugin {name!r}; {did_you_mean(name, found)}")
    return found[name]


def _as_json(plugin: Plugin) -> JsonDict:
    return {
        "name": plugin.name,
        "version": plugin.manifest.version,
        "description": plugin.manifest.description,
        "from": plugin.source.value,
        "place": plugin.place,
        "state": plugin.state.value,
        "reason": plugin.reason,
        "requires_env": list(plugin.manifest.requires_env),
        "promises": list(plugin.manifest.provides),  # as the manifest says, before it is loaded
        "provides": plugin.provides,
        "failed_hooks": hooks.failures.get(plugin.name, 0),
    }


def _switch(name: str, *, on: bool) -> None:
    _get(name)
    ConfigFile().set(("plugins", name, "enabled"), on)
    emit(f"{name} is {'loaded' if on else 'not loaded'} from the next start on")
