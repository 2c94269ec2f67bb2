"""What there is in a folder of Hermes Agent, and what becomes of it here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ..agent.memory import Memory, Store
from ..app import Handrail
from ..config import ConfigFile
from ..config.validation import check
from ..errors import ConfigError, HandrailError
from ..tools.cron.job_requests import planned, save
from ..tools.skills.content import inspect
from ..tools.skills.sources import user_folder
from ..types import JsonDict

TAKEN, DIFFERS, LEFT_OUT = "taken over", "differs", "left out"
_SERVER_KEYS = ("command", "args", "env", "url", "headers", "enabled", "timeout", "connect_timeout", "cwd")


class Item(NamedTuple):
    """One thing that was found. `take` takes it over; None for what stays where it is."""

    what: str
    state: str
    note: str = ""
    take: Callable[[], object] | None = None


def plan_migration(folder: Path, app: Handrail) -> list[Item]:
    """Everything in the folder, in the order in which it is taken over. Nothing is changed yet."""
    return [*_settings(folder), *_memory(folder, app), *_skills(folder), *_jobs(folder, app), *_plugins(folder)]


def _settings(folder: Path) -> Iterator[Item]:
    try:
        found = YAML(typ="safe", pure=True).load((folder / "config.yaml").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        yield Item("config.yaml", LEFT_OUT, f"it cannot be read: {error}".partition("\n")[0])
        found = None
    theirs: JsonDict = found if isinstance(found, dict) else {}
    table = json.loads(Path(__file__).with_name("hermes_settings.json").read_text("utf-8"))
    values = {**_flat({key: value for key, value in theirs.items() if key != "mcp_servers"}), **_variables(folder)}
    file, wanted = ConfigFile(), {}
    for name, value in values.items():
        if name not in table:
            what = (
                "a secret or a setting of a program; set it in the environment"
                if name[0] == "."
                else "there is none here"
            )
            yield Item(name, LEFT_OUT, what)
        elif value not in (None, "", []) and wanted.setdefault(table[name], value) == value:
            yield _setting(name, tuple(table[name].split(".")), _converted(table[name], value), file)
    servers = theirs.get("mcp_servers")
    for name, given in (servers if isinstance(servers, dict) else {}).items():
        yield _server(str(name), given if isinstance(given, dict) else {}, file)


def _setting(name: str, steps: tuple[str, ...], value: Any, file: ConfigFile) -> Item:
    ours: Any = value
    for step in reversed(steps):
        ours = {step: ours}
    try:
        check(ours)
        now = file.get(steps)
    except ConfigError as error:
        return Item(name, LEFT_OUT, str(error))
    key, default = ".".join(steps), _default(steps)
    if now == value:
        return Item(name, TAKEN, f"{key} is that already")
    if now not in (default, None, [], ()):
        return Item(name, DIFFERS, f"{key} stays {now!r}; theirs is {value!r}")
    return Item(name, TAKEN, f"{key}: {value!r}", partial(file.set, steps, value))


def _default(steps: tuple[str, ...]) -> Any:
    from ..config.validation import schema_at  # beside its one use: it builds the schema

    return schema_at(steps).get("default")


def _converted(key: str, value: Any) -> Any:
    """Their value as ours: numbers from texts, lists from single words, names that differ."""
    if key == "approvals.mode":
        return {False: "off", "ask": "manual"}.get(value, value)
    if key == "terminal.backend":
        return {"singularity": "apptainer"}.get(value, value)
    if isinstance(value, str) and value.isdigit():
        return int(value)
    if isinstance(value, str) and key.endswith(("toolsets", "folders", "disabled", "deny", "allowlist", "secrets")):
        return [value]
    return value


def _server(name: str, given: JsonDict, file: ConfigFile) -> Item:
    tools = given.get("tools") if isinstance(given.get("tools"), dict) else {}
    ours = {key: given[key] for key in _SERVER_KEYS if given.get(key) is not None}
    ours |= {key: tools[key] for key in ("include", "exclude") if tools.get(key)}
    ours |= {"type": "sse"} if given.get("transport") == "sse" else {}
    left = sorted(given.keys() - {*_SERVER_KEYS, "tools", "transport"})
    what = f"MCP server {name}"
    try:
        check({"mcp_servers": {name: ours}})
        if name in file.load().mcp_servers:
            return Item(what, DIFFERS, "there is one of that name; yours stays")
    except ConfigError as error:
        return Item(what, LEFT_OUT, str(error))
    note = f"without {', '.join(left)}" if left else ""
    return Item(what, DIFFERS if left else TAKEN, note, partial(file.set, ("mcp_servers", name), ours))


def _memory(folder: Path, app: Handrail) -> Iterator[Item]:
    from ..config.paths import state_dir  # beside its one use

    theirs, ours = Memory(folder / "memories"), Memory(state_dir(app.config.home) / "memory")
    for store in Store:
        for entry in theirs.entries(store):
            what = f"memory: {entry.partition(chr(10))[0][:60]}"
            if entry in ours.entries(store):
                yield Item(what, TAKEN, "it is there already")
            else:
                yield Item(what, TAKEN, store.value[0], partial(ours.add, store, entry))


def _skills(folder: Path) -> Iterator[Item]:
    for file in sorted((folder / "skills").rglob("SKILL.md")):
        found, target = inspect(str(file.parent)), user_folder() / file.parent.name
        what = f"skill {file.parent.relative_to(folder / 'skills')}"
        if found.header is None:
            yield Item(what, LEFT_OUT, found.problem)
        elif target.exists():
            yield Item(what, DIFFERS, f"{target} is there already and stays")
        else:
            note = f"held back until you trust it: {found.suspicion}" if found.suspicion else ""
            take = partial(shutil.copytree, file.parent, target)
            yield Item(what, DIFFERS if note else TAKEN, note, take)


def _jobs(folder: Path, app: Handrail) -> Iterator[Item]:
    try:
        found = json.loads((folder / "cron" / "jobs.json").read_text("utf-8"))
    except (OSError, ValueError):
        return
    for job in found.get("jobs", []) if isinstance(found, dict) else found:
        what = f"job {job.get('name') or job.get('id')}"
        when = job.get("schedule")
        given = {
            "schedule": (when.get("expr") or when.get("display")) if isinstance(when, dict) else when,
            "prompt": job.get("prompt"),
            "name": job.get("name"),
        }
        if not job.get("enabled", True):
            yield Item(what, LEFT_OUT, "it is switched off there")
            continue
        lost = [
            key
            for key in ("skills", "model", "deliver", "script")
            if job.get(key) not in (None, "", [], "local", "origin")
        ]
        try:
            tools_of = app.toolsets.select
            made = planned(given, app.registry, None, config=app.config, cwd=str(Path.home()), tools_of=tools_of)
        except HandrailError as error:
            yield Item(what, LEFT_OUT, str(error))
            continue
        note = f"without {', '.join(lost)}" if lost else made.schedule
        yield Item(what, DIFFERS if lost else TAKEN, note, partial(save, made, app.config))


def _plugins(folder: Path) -> Iterator[Item]:
    for file in sorted((folder / "plugins").glob("*/plugin.yaml")):
        name = file.parent.name
        yield Item(f"plugin {name}", LEFT_OUT, f"copy it to the folder plugins, then `handrail plugins trust {name}`")


def _flat(settings: JsonDict, above: str = "") -> JsonDict:
    """Values by their dotted names. Lists are values."""
    made: JsonDict = {}
    for key, value in settings.items():
        made |= _flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return made


def _variables(folder: Path) -> JsonDict:
    try:
        lines = (folder / ".env").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = [line.removeprefix("export ").partition("=") for line in lines if "=" in line and not line.startswith("#")]
    return {f".env {name.strip()}": value.strip().strip("\"'") for name, _, value in pairs}
