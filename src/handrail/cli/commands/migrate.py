"""Take over the configuration of another agent.

That is its settings, MCP servers, skills, memory and scheduled jobs.

Examples:
  handrail migrate hermes --dry-run
  handrail migrate hermes ~/.hermes --yes
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from ...agent.memory import Memory, Store
from ...app import Handrail
from ...base.safe_text import suspicion_of
from ...config.config_file import ConfigFile
from ...config.paths import state_dir
from ...config.validation import build, check, schema_at
from ...environments.backend_table import backends
from ...errors import ConfigError, HandrailError, UnknownToolset
from ...mcp_client.server_config import Server, problem_of
from ...plugins.command_hooks import register_external
from ...plugins.hook_manager import HookManager
from ...plugins.hook_specs import HOOK_NAMES
from ...settings.services import PROVIDERS
from ...tools.cron.job_requests import open_jobs, planned, save
from ...tools.cron.schedule import zone_of
from ...tools.skills.library import inspect, user_folder
from ...types import JsonDict
from ..options import DryRun, argument, new_cli, option
from ..output import ExitCode, emit, emit_table, refuse, say, visible
from ..runtime import open_runtime

cli = new_cli()
TAKEN, DIFFERS, LEFT_OUT = "taken over", "differs", "left out"
# A line of .env: a name, and a value in quotes or up to a comment.
_VARIABLE = re.compile(r"""\s*(?:export\s+)?(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*(?:\s#.*)?""")
_SWITCH = re.compile("(?i:yes|no|on|off)$")  # true and false in YAML 1.1, which they write
# What is known of theirs: our names of `settings`, why other sections and `files` are `left_out`, the `lists` among ours, the
# toolsets that are the `whole` choice, what holds for `servers_anyway`, and other `values` and `hook_keys`.
_THEIRS: JsonDict = json.loads(Path(__file__).parents[1].joinpath("hermes.json").read_text("utf-8"))
_TABLE: dict[str, str] = _THEIRS["settings"]
_WHOLE = {*_THEIRS["whole"]}
Folder = Annotated[Path | None, argument("[FOLDER]", "Its folder; default: HERMES_HOME, or ~/.hermes.")]
Yes = Annotated[bool, option("--yes", "Do not ask.")]


class Item(NamedTuple):
    """One thing that was found. `take` takes it over; None for what stays where it is."""

    what: str
    state: str
    note: str = ""
    take: Callable[[], object] | None = None


@cli.callback()
def _group() -> None:
    """The command has a name, as there may be others to migrate from."""


@cli.command()
def hermes(path: Folder = None, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Take over what Hermes Agent was configured with. Nothing of it is changed, and nothing of yours is overwritten.

    Exit codes: 0 done, or shown with --dry-run; 1 something could not be taken over, or you said no; 2 there is no such folder.
    """
    folder = (path or Path(os.environ.get("HERMES_HOME", "~/.hermes"))).expanduser()
    if not folder.is_dir():
        refuse(f"{folder} is not a folder; give the one that Hermes Agent keeps its files in")
    app = open_runtime(asks=False)
    theirs, problem = _config(folder)
    plugins = [*_plugins(folder, theirs, app)]
    found = [*_settings(folder, app, theirs), *_memory(folder, app), *_skills(folder), *_jobs(folder, app), *plugins]
    found = [Item("config.yaml", LEFT_OUT, problem), *found] if problem else found
    found += [Item(each, LEFT_OUT, why) for each, why in _THEIRS["files"].items() if (folder / each).exists()]
    if not found:
        refuse(f"{folder} has nothing to take over", ExitCode.OK)
    rows = [[visible(each.what), each.state, visible(each.note.partition("\n")[0])] for each in found]
    emit_table(("WHAT", "", "NOTE"), rows, wide=2)
    work = [(each.what, each.take) for each in found if each.take is not None]
    if dry_run or not work:
        return
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"Take over {len(work)} of them?", err=True)):
        refuse("nothing was changed; --yes does it without asking", ExitCode.FAILED)
    failed = 0
    for what, take in work:
        try:
            take()
        except (HandrailError, OSError) as error:
            failed += 1
            say(f"{what}: {error}")
    emit(f"{len(work) - failed} of {len(work)} are taken over")
    raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)


def _config(folder: Path) -> tuple[JsonDict, str]:
    """Their settings, and why they cannot be read."""
    try:
        yaml = YAML(typ="safe", pure=True)
        for letter in "yYnNoO":
            yaml.resolver.versioned_resolver.setdefault(letter, []).append(("tag:yaml.org,2002:bool", _SWITCH))
        found = yaml.load((folder / "config.yaml").read_text("utf-8")) or {}
        return (found, "") if isinstance(found, dict) else ({}, "it is no mapping of names to settings")
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        missing = isinstance(error, FileNotFoundError)
        return {}, "" if missing else f"it cannot be read: {' '.join(str(error).split())}"


def _settings(folder: Path, app: Handrail, theirs: JsonDict) -> Iterator[Item]:
    servers, file = _mapping(theirs.pop("mcp_servers", None)), ConfigFile()
    listed = [_server(str(name), given, file) for name, given in servers.items()]
    # There, the servers' tools go with any toolset.
    bundles = dict.fromkeys(f"mcp-{here}" for here, item in listed if item.take is not None)
    app.toolsets.expected |= bundles.keys()
    app.toolsets.unloaded = ()  # what is not known is not taken over
    yield from _fallbacks(theirs)
    theirs["toolsets"], is_choice = _choice(theirs)
    for each in [name for name in _mapping(theirs.pop("platform_toolsets", None)) if name != "cli"]:
        yield Item(f"platform_toolsets.{each}", LEFT_OUT, "tools.enabled_toolsets holds for every platform here")
    if isinstance(theirs["toolsets"], list):
        if not is_choice:
            yield Item("toolsets", TAKEN, "every toolset is offered here anyway")
        theirs["toolsets"] = [*theirs["toolsets"], *bundles] if is_choice else []
    wanted: JsonDict = {}
    left: dict[str, list[str]] = {}
    table = _TABLE | {f"hooks.{each}": f"hooks.{each}" for each in HOOK_NAMES}
    for name, value in _with_ssh_user({**_flat(theirs), **_variables(folder)}).items():
        if name not in table:
            section, inner = re.split(r"(?<=.)[. ]", f"{name}.", maxsplit=1)
            left.setdefault(section, []).append(inner.rstrip("."))
        elif value in (None, "", []):
            continue
        elif str(wanted.setdefault(table[name], value)) == str(value):
            yield _setting(name, table[name], value, file, app)
        else:
            yield Item(name, DIFFERS, f"their config.yaml says {wanted[table[name]]!r}, which holds")
    for section, inner_names in left.items():
        why = _THEIRS["left_out"].get(section, "there is nothing like it here")
        yield Item(section, LEFT_OUT, ": ".join(filter(None, (", ".join(filter(None, inner_names)), why))))
    names: set[str] = set()
    for here, item in listed:
        is_second = here in names and item.take is not None
        yield Item(item.what, LEFT_OUT, "another one has that name here") if is_second else item
        names.add(here)


def _choice(theirs: JsonDict) -> tuple[Any, bool]:
    """Their toolsets, and whether these are fewer than all."""
    sets = _mapping(theirs.get("platform_toolsets")).get("cli") or theirs.get("toolsets")
    return sets, isinstance(sets, list) and not _WHOLE & set(map(str, sets))


def _mapping(value: Any) -> JsonDict:
    return value if isinstance(value, dict) else {}


def _fallbacks(theirs: JsonDict) -> Iterator[Item]:
    """Leaves the names that ours can have in the settings: of a known provider, or at the place of the main model."""
    more, main = theirs.pop("fallback_providers", None), theirs.get("model")
    given = [theirs.pop("fallback_model", None), *(more if isinstance(more, list) else [more])]
    theirs["fallback_model"] = names = list[str]()
    for each in [each for each in given if isinstance(each, dict)]:
        provider, model, place = each.get("provider"), each.get("model"), each.get("base_url")
        is_same = isinstance(main, dict) and (provider, place) in ((main.get("provider"), None), (None, None))
        if not model or place or not (is_same or provider in PROVIDERS):
            why = "it has an address of its own" if place else "there is no such provider here" if model else "no model"
            yield Item(f"fallback {provider}:{model}", LEFT_OUT, why)
        else:
            names.append(model if is_same else f"{provider}:{model}")


def _setting(name: str, key: str, value: Any, file: ConfigFile, app: Handrail) -> Item:
    steps = tuple(key.split("."))
    if isinstance(value, str):
        value = _THEIRS["values"].get(value, value)
    elif value is False and key == "approvals.mode":
        value = "off"
    if key.endswith(".memory"):
        value = f"{value}m"  # theirs is a number of megabytes
    value, lost = _known(key, _typed(key, value), app)
    if value == []:
        return Item(name, LEFT_OUT, f"without {', '.join(lost)} nothing is left")
    ours: Any = value
    for step in reversed(steps):
        ours = {step: ours}
    try:
        check(ours)
        config = build(ours)  # it may be valid, and make commands fail
        register_external(HookManager(), config.hooks, plugin="config")
        backends.get(config.terminal.backend)
        if config.model.provider not in ("", *PROVIDERS):
            why = "without one, model.base_url is asked"
            raise ConfigError(f"there is no provider {config.model.provider!r} here; {why}")
        if config.schedule.timezone:
            zone_of(config.schedule.timezone)
        now = file.get(steps)
    except HandrailError as error:
        return Item(name, LEFT_OUT, str(error))
    if now == value:
        return Item(name, TAKEN, f"{key} is that already")
    if now not in (schema_at(steps).get("default"), None, [], ()):
        return Item(name, DIFFERS, f"{key} stays {now!r}; theirs is {value!r}")
    return _changed(name, lost, f"{key}: {value!r}", partial(file.set, steps, value))


def _typed(key: str, value: Any) -> Any:
    """Numbers that were written as text, texts that were written as numbers, and single words of lists."""
    if isinstance(value, str):
        return int(value) if value.isdigit() else [value] if key.endswith(tuple(_THEIRS["lists"])) else value
    if key.startswith("hooks.") and isinstance(value, list):
        return [{_THEIRS["hook_keys"].get(name, name): each for name, each in _mapping(hook).items()} for hook in value]
    if key == "args":
        return [_word(each) for each in value] if isinstance(value, list) else value
    if key in ("env", "headers"):
        return {name: _word(each) for name, each in value.items()} if isinstance(value, dict) else value
    return value


def _word(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, int | float) else value


def _known(key: str, value: Any, app: Handrail) -> tuple[Any, list[str]]:
    """The entries of a list that mean something here, and those that do not."""
    if not isinstance(value, list) or not key.endswith(("toolsets", "allowlist")):
        return value, []
    usable = [each for each in value if isinstance(each, str) and each.strip()]
    if key.endswith("toolsets"):
        usable = [each for each in usable if _is_toolset(each, app)]
    return usable, [repr(each) for each in value if each not in usable]


def _is_toolset(name: str, app: Handrail) -> bool:
    try:
        return bool(app.toolsets.canonical(name))
    except UnknownToolset:
        return False


def _server(name: str, given: Any, file: ConfigFile) -> tuple[str, Item]:
    """The name that it has here, and the server."""
    here = re.sub(r"[^A-Za-z0-9-]+", "_", name)[:32]
    what = f"MCP server {name}" + (f", here {here}" if here != name else "")
    if not isinstance(given, dict):
        return here, Item(what, LEFT_OUT, "it has no settings")
    ours: JsonDict = {}
    lost = ["ssl_verify: false"] if given.get("ssl_verify") is False else []
    for key, value in _flat(given, whole=("env", "headers")).items():
        known, is_usual = _TABLE.get(f"mcp_servers.{key}"), key.startswith("tools.") and value is True
        if known is not None and value is not None:
            ours[known] = _typed(known, value)
        elif known is None and key not in _THEIRS["servers_anyway"] and not is_usual:
            lost.append(key)
    ours |= {"type": "sse"} if given.get("transport") == "sse" else {}
    if isinstance(given.get("ssl_verify"), str):
        ours["ca_file"] = given["ssl_verify"]
    if given.get("client_cert"):
        cert = given["client_cert"]
        ours |= dict(zip(("tls_cert", "tls_key"), [cert] if isinstance(cert, str) else cert, strict=False))
    try:
        check({"mcp_servers": {here: ours}})
        if problem := problem_of(Server(here, build({"mcp_servers": {here: ours}}).mcp_servers[here], "")):
            return here, Item(what, LEFT_OUT, problem)
        if here in file.load().mcp_servers:
            return here, Item(what, DIFFERS, "there is one of that name; yours stays")
    except ConfigError as error:
        return here, Item(what, LEFT_OUT, str(error))
    return here, _changed(what, sorted(lost), "", partial(file.set, ("mcp_servers", here), ours))


def _changed(what: str, left: list[str], note: str, take: Callable[[], object]) -> Item:
    return Item(what, DIFFERS, f"without {', '.join(left)}", take) if left else Item(what, TAKEN, note, take)


def _memory(folder: Path, app: Handrail) -> Iterator[Item]:
    theirs, ours = Memory(folder / "memories"), Memory(state_dir(app.config.home) / "memory")
    for store in Store:
        for entry in theirs.entries(store):
            is_there, what = entry in ours.entries(store), f"memory: {entry.partition(chr(10))[0][:60]}"
            note = "it is there already" if is_there else store.value[0]
            taken = Item(what, TAKEN, note, None if is_there else partial(ours.add, store, entry))
            yield Item(what, LEFT_OUT, f"it {problem}") if (problem := suspicion_of(entry)) else taken


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
            yield Item(what, DIFFERS if note else TAKEN, note, partial(shutil.copytree, file.parent, target))


def _jobs(folder: Path, app: Handrail) -> Iterator[Item]:
    try:
        found = json.loads((folder / "cron" / "jobs.json").read_text("utf-8"))
    except (OSError, ValueError):
        return
    listed = found.get("jobs") if isinstance(found, dict) else found
    with closing(open_jobs(app.config)) as store:
        known = [(each.name, each.schedule, each.work) for each in store.all()]
    for job in [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else ():
        what, when = f"job {job.get('name') or job.get('id')}", job.get("schedule")
        if isinstance(when, dict):
            when = when.get("expr") or when.get("run_at") or when.get("display")
        times = _mapping(job.get("repeat"))
        given = {"schedule": when, "prompt": job.get("prompt"), "name": job.get("name")}
        given["repeat"] = max(1, times["times"] - (times.get("completed") or 0)) if times.get("times") else None
        skills = [each for each in (job.get("skill"), *(job.get("skills") or ())) if isinstance(each, str)]
        if skills and job.get("prompt"):  # theirs are read before a run; ours reads what it is told to
            given["prompt"] = f"First read these skills and follow them: {', '.join(skills)}.\n\n{job['prompt']}"
        model, provider = job.get("model"), job.get("provider")
        if model and (not provider or provider in PROVIDERS):
            given["model"] = f"{provider}:{model}" if provider else str(model)
        left = [key for key in ("script", "enabled_toolsets") if job.get(key)]
        left += ["model"] if model and "model" not in given else []
        left += ["deliver"] if job.get("deliver") not in (None, "local", "origin") else []
        cwd = str(job.get("workdir") or Path.home())
        plan = partial(planned, given, app.registry, None, cwd=cwd, tools_of=app.toolsets.select)
        try:
            made = plan(config=app.config)
        except HandrailError as error:
            yield Item(what, LEFT_OUT, str(error))
            continue
        if (made.name, made.schedule, made.work) in known:
            yield Item(what, TAKEN, "it is there already")
            continue
        is_on = job.get("enabled", True)
        take = partial(lambda plan: save(plan(config=ConfigFile().load()), app.config), plan)  # in the zone taken over
        yield _changed(what, left, made.schedule, take) if is_on else Item(what, LEFT_OUT, "it is switched off there")


def _plugins(folder: Path, theirs: JsonDict, app: Handrail) -> Iterator[Item]:
    """Those that are switched on there, which is all of them in versions without a choice."""
    settings, file = _mapping(theirs.get("plugins")), ConfigFile()
    # There, it is offered anyway.
    then = "; then add its toolset to tools.enabled_toolsets" if _choice(theirs)[1] else ""
    chosen, off, entries = (settings.pop(key, None) for key in ("enabled", "disabled", "entries"))
    top = folder / "plugins"
    places = [file.parent for depth in ("*", "*/*") for file in top.glob(f"{depth}/plugin.yaml")]
    files = {str(each.relative_to(top)): each for each in places}  # one in a category has both names
    elsewhere = {*map(str, chosen or ())} - {each.name for each in places}
    for name in sorted({*files, *elsewhere}):
        what, target = f"plugin {name}", user_folder().parent / "plugins" / name
        names = {name, files[name].name} if name in files else {name}
        if names & {*map(str, off or ())} or (isinstance(chosen, list) and not names & {*map(str, chosen)}):
            yield Item(what, LEFT_OUT, "it is switched off there")
        elif name not in files:
            yield Item(what, LEFT_OUT, "it is a part of Hermes Agent, or a package that is to be installed here")
        elif target.exists():
            yield Item(what, DIFFERS, f"{target} is there already and stays")
        else:
            copy = partial(shutil.copytree, files[name], target, ignore=shutil.ignore_patterns(".git", "__pycache__"))
            note = f"not loaded until you look at it and `handrail plugins trust {target.name}`{then}"
            yield Item(what, TAKEN, note, copy)
    for name, given in (entries := _mapping(entries)).items():
        if own := _mapping(given).pop("settings", None):
            yield _setting(f"plugins.entries.{name}.settings", f"plugins.{Path(name).name}.settings", own, file, app)
    for key in _flat(entries):
        yield Item(f"plugins.entries.{key}", LEFT_OUT, "what a plugin may do is set here under plugins.NAME")


def _flat(settings: JsonDict, above: str = "", *, whole: Sequence[str] = ()) -> JsonDict:
    """Values by their dotted names. Lists are values, and so is what `whole` names."""
    made: JsonDict = {}
    for key, value in settings.items():
        is_inner = isinstance(value, dict) and key not in whole
        made |= _flat(value, f"{above}{key}.") if is_inner else {f"{above}{key}": value}
    return made


def _with_ssh_user(settings: JsonDict) -> JsonDict:
    """The user of ssh goes before the host here."""
    made = dict(settings)
    for prefix, case in (("terminal.ssh_", str.lower), (".env TERMINAL_SSH_", str.upper)):
        host, user = prefix + case("host"), prefix + case("user")
        if made.get(user) and made.get(host):
            made[host] = f"{made.pop(user)}@{made[host]}"
    return made


def _variables(folder: Path) -> JsonDict:
    file = folder / ".env"
    lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    pairs = [found.groups("") for found in map(_VARIABLE.fullmatch, lines) if found is not None]
    return {f".env {name}": double or single or plain for name, double, single, plain in pairs}
