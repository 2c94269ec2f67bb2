"""Read the files in which projects list commands under names: package.json, justfile, Taskfile, tox.ini, pyproject.toml."""

import configparser
import json
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..values.data_files import Patterns, read_tables
from ..values.word_values import UNKNOWN

_RE = Patterns(__file__)
_TABLES = read_tables(__file__)
_MAX_DEPTH = 8
CONFIG_FILES = {program: text.split() for program, text in _TABLES["files"].items()}
"""By program: the language, and the names of the files. Braces stand for one of several endings."""
TESTS = {program: text.split() for program, text in _TABLES["tests"].items()}
"""Test runners: the language, which names are tests, and the folders that hold them."""
LISTED = {program: text for programs, text in _TABLES["lists"].items() for program in programs.split()}
"""Programs that run what a file lists: the names of files, then a pattern that finds the commands in them."""
_MODULES = {name: lines for names, lines in _TABLES["playbook"].items() for name in names.split()}
COMPOSE_NAMES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
COMPOSE_OVERRIDES = tuple(name.replace(".y", ".override.y") for name in COMPOSE_NAMES)
_MAX_TEXT = 30_000
_MAX_SERVICES = 50
_LISTS = {"cap_add": "--cap-add", "devices": "--device", "security_opt": "--security-opt"}
_MODES = {"pid": "--pid", "ipc": "--ipc", "network_mode": "--network", "userns_mode": "--userns", "uts": "--uts"}


def package_scripts(text: str, key: str = "scripts") -> dict[str, str]:
    """The `scripts` of a package.json, or what a file like it has under another key."""
    found = _json(text).get(key)
    scripts = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in scripts if isinstance(value, str)}


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def package_workspaces(text: str) -> list[str]:
    """The folders of a package.json's workspaces, as it writes them: `packages/*`."""
    found = _json(text).get("workspaces", [])
    found = found.get("packages", []) if isinstance(found, dict) else found
    return [str(one) for one in found] if isinstance(found, list) else []


def composer_scripts(text: str) -> dict[str, list[str]]:
    """The `scripts` of a composer.json, each a list of commands."""
    scripts = _json(text).get("scripts")
    return {name: _commands(value) for name, value in scripts.items()} if isinstance(scripts, dict) else {}


def just_lines(text: str, recipes: list[str]) -> list[str]:
    """The command lines of these recipes, of what they need, and those that run while the file is read."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    variables: dict[str, str] = {}
    lines: list[str] = []
    current: list[str] | None = None
    for line in text.split("\n"):
        if line[:1] in (" ", "\t") and current is not None:
            current.append(line)
        elif match := _RE.just_variable.fullmatch(line.strip()):
            current = None
            lines += _RE.backticks.findall(match[2])
            value = match[2].strip()
            variables[match[1]] = value[1:-1] if re.fullmatch(r"'[^']*'|\"[^\"\\]*\"", value) else UNKNOWN
        elif match := _RE.just_recipe.fullmatch(line.strip()):
            current = []
            listed = (need.strip("()") for need in re.findall(r"\([^)]*\)|[\w-]+", match[3]))
            needs = [need.split()[0] for need in listed if need]
            found.setdefault(match[1], (needs, current))
    shell = re.search(r"(?m)^set\s+shell\s*:=\s*\[(.*?)\]", text)
    words = [one or other for one, other in re.findall(r"\"([^\"]*)\"|'([^']*)'", shell[1])] if shell else []
    wanted = [name for name in recipes if name in found] or list(found)[:1]
    for name in _with_needs(wanted, {name: needs for name, (needs, _) in found.items()}):
        body = textwrap.dedent("\n".join(found[name][1]))
        if body.startswith("#!"):  # a script for another program
            lines.append(f"{body[2:].partition(chr(10))[0]} <<'JUST'\n{body}\nJUST")
        else:
            commands = [line.strip().lstrip("@-") for line in body.split("\n") if line.strip()[:1] != "#"]
            lines += [shlex.join([*words, line]) for line in commands] if words else commands
    return [_RE.just_value.sub(lambda match: variables.get(match[1], UNKNOWN), line) for line in lines]


def taskfile_lines(text: str, tasks: list[str]) -> list[str] | None:
    """The command lines of these tasks of a Taskfile.yml, and of those that they call; None when it cannot be read."""
    found: dict[str, list[str]] = {}
    calls: dict[str, list[str]] = {}
    listed = load_yaml(re.sub(r"\{\{.*?\}\}", UNKNOWN, text))
    if listed is None:
        return None
    every = listed.get("tasks") if isinstance(listed, dict) else None
    for name, task in every.items() if isinstance(every, dict) else ():
        keys = ("deps", "cmds", "cmd", "status", "preconditions")
        steps = [*map(task.get, keys), *_computed(task)] if isinstance(task, dict) else [task]
        steps += _computed(listed)
        found[str(name)], calls[str(name)] = _task_steps(steps)
    wanted = [task for task in tasks if task in found] or [task for task in ("default",) if task in found]
    return [line for task in _with_needs(wanted, calls) for line in found[task]]


def _computed(task: dict[str, Any]) -> list[Any]:
    """The variables of a task, or of all of them, that a command computes: `V: {sh: git describe}`."""
    named = task.get("vars")
    return [value for value in named.values() if isinstance(value, dict)] if isinstance(named, dict) else []


def _task_steps(steps: list[Any]) -> tuple[list[str], list[str]]:
    """The commands in a list of steps, and the names of other tasks in it: a plain text may be either."""
    commands: list[str] = []
    calls: list[str] = []
    for step in steps:
        if isinstance(step, str):
            commands.append(step)
            calls.append(step)
        elif isinstance(step, list | dict):
            inner = step if isinstance(step, list) else [step.get("cmd"), step.get("task"), step.get("sh")]
            more, later = _task_steps(inner)
            commands, calls = commands + more, calls + later
    return commands, calls


def tox_lines(text: str, names: Sequence[str] = ()) -> list[str]:
    """The commands of the environments in a tox.ini, or of `[tool.tox]` in a pyproject.toml; by default of all."""
    if "[tox]" not in text and "[testenv" not in text:
        return list(_toml_commands(_toml(text).get("tool", {}).get("tox", {}), names))
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    lines: list[str] = []
    for section in parser.sections():
        name = section.removeprefix("testenv:")
        other = names and name not in names and "{" not in name and text.count(f"[{section}]") == 1  # nor referred to
        if section.startswith("testenv") and not (other and ":" in section):
            for key in ("commands_pre", "commands", "commands_post"):
                lines += parser.get(section, key, fallback="").replace("\\\n", " ").split("\n")
    return [_tox_value(line.strip().lstrip("-").strip()) for line in lines if line.strip() and "[testenv" not in line]


def _tox_value(line: str) -> str:
    line = re.sub(r"^[\w{},!.-]+:\s+", "", line)  # py311: command
    line = re.sub(r"\{posargs(?::([^{}]*))?\}", lambda match: match[1] or "", line).replace("{env:HOME}", "~")
    line = re.sub(r"\{(?:toxinidir|tox_root)\}", ".", line)
    return re.sub(r"\{[^{}]*\}", UNKNOWN, line)


def _toml_commands(table: Any, names: Sequence[str], depth: int = 0) -> Iterator[str]:
    if not isinstance(table, dict) or depth > _MAX_DEPTH:
        return
    for key, value in table.items():
        if key in ("commands", "commands_pre", "commands_post") and isinstance(value, list):
            for line in value:
                if isinstance(line, list):
                    yield " ".join(_tox_value(str(word)) for word in line if isinstance(word, str))
        elif key == "legacy_tox_ini" and isinstance(value, str):
            yield from tox_lines(value, names)
        elif key == "env" and isinstance(value, dict):
            for name in value:
                yield from _toml_commands(value[name] if not names or name in names else None, names, depth + 1)
        else:
            yield from _toml_commands(value, names, depth + 1)


def project_scripts(text: str) -> dict[str, list[str]]:
    """Named commands of a pyproject.toml: those of poe, pdm, hatch, rye, taskipy."""
    tool = _toml(text).get("tool", {})
    keys = {"poe": "tasks", "pdm": "scripts", "rye": "scripts", "taskipy": "tasks", "hatch": "scripts"}
    tables: list[Any] = [tool.get(name, {}).get(key) for name, key in keys.items()]
    environments = tool.get("hatch", {}).get("envs", {}).values()
    tables += [environment.get("scripts") for environment in environments if isinstance(environment, dict)]
    found: dict[str, list[str]] = {}
    for table in tables:
        if isinstance(table, dict):
            for name, value in table.items():
                found.setdefault(name, []).extend(_commands(value))
    return found


def _commands(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [line for part in value for line in _commands(part)]
    keys = ("cmd", "shell", "composite", "chain", "sequence") if isinstance(value, dict) else ()
    return [line for key in keys for line in _commands(value.get(key))]


def build_backend(text: str) -> tuple[str, list[str]]:
    """The build back end of a pyproject.toml, and the folders that it is looked for in (`backend-path`)."""
    table = _toml(text).get("build-system", {})
    backend, path = table.get("build-backend", ""), table.get("backend-path", [])
    return str(backend), [str(folder) for folder in path] if isinstance(path, list) else []


def playbook_commands(text: str) -> Iterator[list[str]]:
    """What the modules in a playbook of Ansible do, as commands."""
    waiting = [load_yaml(text)]
    while waiting:
        part = waiting.pop()
        waiting += part if isinstance(part, list) else part.values() if isinstance(part, dict) else ()
        for name, given in part.items() if isinstance(part, dict) else ():
            named = dict(re.findall(r"(\w+)=(\S+)", given)) if isinstance(given, str) else given
            lines = _MODULES.get(str(name).rpartition(".")[2], "").split(" | ")
            for line in lines if isinstance(named, dict) else ():
                condition, _, words = line.rpartition("? ")
                key, _, value = condition.partition("=")
                found = [str(named.get(word[1:], word[1:])) if word[:1] == "$" else word for word in words.split()]
                if not condition or str(named.get(key, "")).lower() == value:
                    yield found


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _with_needs(names: list[str], needs: dict[str, list[str]]) -> list[str]:
    """These and what they need, each once."""
    done: dict[str, None] = {}
    waiting = list(reversed(names))
    while waiting and len(done) < 200:
        name = waiting.pop()
        if name not in done and name in needs:
            done[name] = None
            waiting += needs[name]
    return list(done)


def spellings(names: Iterable[str]) -> list[str]:
    """The names, with one for each ending in braces."""
    found: list[str] = []
    for name in names:
        before, brace, rest = name.partition("{")
        endings, _, after = rest.partition("}")
        found += [f"{before}{end}{after}" for end in endings.split(",")] if brace else [name]
    return found


def load_yaml(text: str) -> Any:
    """What a YAML file holds; None when it cannot be read, or is longer than is read."""
    if len(text) > _MAX_TEXT:
        return None
    from ruamel.yaml import YAML  # takes longer to load than most commands take to judge
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe").load(text)
    except (YAMLError, RecursionError, ValueError):
        return None


def compose_options(text: str) -> list[list[str]] | None:
    """The options of each service; None when the file cannot be read."""
    found = load_yaml(text)
    if found is None:
        return None
    services = found.get("services", found) if isinstance(found, dict) else {}
    if not isinstance(services, dict) or len(services) > _MAX_SERVICES:
        return None
    volumes = found.get("volumes") if isinstance(found, dict) else None
    return [_options(service, volumes) for service in services.values() if isinstance(service, dict)]


def _options(service: dict[str, Any], volumes: Any) -> list[str]:
    options = ["--privileged"] if service.get("privileged") else []
    for key, option in _MODES.items():
        if isinstance(service.get(key), str):
            options.append(f"{option}={service[key]}")
    for key, option in _LISTS.items():
        values = service.get(key)
        listed = values if isinstance(values, list) else []
        options += [f"{option}={value}" for value in listed if isinstance(value, str)]
    mounts = service.get("volumes")
    for mount in mounts if isinstance(mounts, list) else []:
        if isinstance(mount, dict):
            mount = f"{mount.get('source', '')}:{mount.get('target', '')}{':ro' if mount.get('read_only') else ''}"
        source, colon, rest = str(mount).partition(":")
        options += ["-v", f"{_device(source, volumes)}{colon}{rest}"] if colon else []
    command = [*_command(service.get("entrypoint")), *_command(service.get("command"))]
    return [*options, "image", *(command if "-v" in options else ())] if options else []  # it reaches what is mounted


def _command(value: Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else ["sh", "-c", value] if value else []


def _device(source: str, volumes: Any) -> str:
    """A named volume may stand for a folder of this machine."""
    named = volumes.get(source) if isinstance(volumes, dict) else None
    given = named.get("driver_opts") if isinstance(named, dict) else None
    return str(given.get("device") or source) if isinstance(given, dict) else source
