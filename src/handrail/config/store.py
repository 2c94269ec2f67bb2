"""Load the configuration: its file, as far as a person has confirmed it, and the environment variables that override it
(`HANDRAIL_<SECTION>_<FIELD>`).

What changes the file is in `config_file`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.own_process import started_by_agent
from ..errors import ConfigError, Denied
from ..settings.schema import ANYTHING, Config
from ..settings.sections import settings_of
from ..types import JsonDict
from .paths import POLICY_FILE, PROJECT_FOLDER, config_path, folders_above, locked, make_private, read_text, write_text

if TYPE_CHECKING:
    from .strength import Change
    from .validation import Key


def load_config(path: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None) -> Config:
    """The file's settings, overridden by the environment's, with defaults for the rest. A missing file means defaults. One that
    cannot be read or is not valid raises ConfigError."""
    environ = os.environ if environ is None else environ
    path = config_path(environ=environ) if path is None else Path(path)
    text, config = read_text(path), Config()
    if text is not None:
        from .validation import build, checked, parse  # loads the YAML parser, which most starts do not need

        config = build(checked(parse(text, path=str(path))))
    return overridden(config, environ)


def read_config(path: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Config:
    """The settings of one file, overridden by those in `environ`, if that is given."""
    return load_config(path, environ=environ or {})


def located(error: ConfigError, path: str | os.PathLike[str] | None = None) -> ConfigError:
    """The same error, with the file and the line of its key, where that is known."""
    path = config_path() if path is None else Path(path)
    if error.path or not error.key or (text := read_text(path)) is None:
        return error
    from .validation import dotted, parse

    lines = {dotted(steps): line for steps, line in parse(text, path=str(path)).lines.items()}
    message = str(error).removeprefix(f"{error.key}: ")
    return ConfigError(message, path=str(path), line=lines.get(error.key), key=error.key)


_PREFIX = "HANDRAIL_"
# The names of sections that stand for their most important setting.
_SHORT = {"HANDRAIL_TERMINAL": ("terminal", "backend"), "HANDRAIL_MODEL": ("model", "name")}
_SHORT |= {"HANDRAIL_EFFECTS": ("effects", "enabled")}


def override_names(environ: Mapping[str, str]) -> list[str]:
    """The variables that mean a setting. Others with the prefix, such as `HANDRAIL_HOME`, mean something else, and an empty
    `HANDRAIL_MODEL` means nothing."""
    sections = tuple(_PREFIX + item.name.upper() for item in settings_of(Config))
    begins = tuple(section + "_" for section in sections)
    named = (name for name in environ if name in sections or name.startswith(begins))
    return sorted(name for name in named if environ[name] or name not in _SHORT)


def overrides(environ: Mapping[str, str]) -> JsonDict:
    """The settings in the environment, checked. Raises for a name or value that cannot be used."""
    from .validation import check

    settings: JsonDict = {}
    for variable in override_names(environ):
        section, name = _setting_of(variable)
        try:
            value = parse_value((section, name), environ[variable], separator=os.pathsep)
        except ConfigError as error:
            raise ConfigError(str(error), key=variable) from None
        check({section: {name: value}}, key=variable)
        settings.setdefault(section, {})[name] = value
    return settings


def parse_value(key: Key, text: str, *, separator: str = "") -> Any:
    """The value that `text`, from a command line or a variable, means for the setting `key`. Text stays text. A list is `[a,
    b]`, or its items between separators, or one item. All else is a YAML scalar."""
    from .validation import completed, known_steps, parse, schema_at

    schema = schema_at(known_steps(key))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if len(kinds) == len(ANYTHING):
        return parse(text).value
    if "string" in kinds:
        return text
    # An empty variable is mostly a slip (`X=$UNSET`), and an empty list of roots would lift the limit.
    if not text.strip():
        raise ConfigError("is empty; give a value, such as [] for an empty list, or remove it")
    is_yaml = text.lstrip().startswith("[") or ("null" in kinds and text.strip() == "null")
    if "array" in kinds and not is_yaml:
        return text.split(separator) if separator else [text]
    return completed(parse(text).value, schema)


def _setting_of(variable: str) -> tuple[str, str]:
    from .validation import hint, schema_at

    if variable in _SHORT:
        return _SHORT[variable]
    sections = schema_at(())["properties"]
    section = max((name for name in sections if variable.startswith(_PREFIX + name.upper())), key=len)
    names = {name.upper(): name for name in sections[section].get("properties", ())}
    prefix = f"{_PREFIX}{section.upper()}_"
    name = variable.removeprefix(prefix)
    if not names:
        raise ConfigError(f"{section} cannot be set by the environment; set it in config.yaml", key=variable)
    if name not in names:
        raise ConfigError(f"unknown setting; {hint(name, names, prefix=prefix)}", key=variable)
    return section, names[name]


FILE = "confirmed.json"
_SETTINGS, _FILES = "settings", "files"
_SHELL_SIGNS = re.compile(r"[|&;<>()$`\\*?\[\]{}~!\n#=]")
_RUN_FILES = re.compile(
    r"(?:.*/)?(?:(?:ba|da|z|k|a)?sh|fish|python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|perl|php|lua|tclsh|Rscript|\.|source|exec|"
    r"env|nice|time|timeout|xargs|sudo)"
)
# Only root writes there, and updates change what is in it.
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/")


class HookCommand(NamedTuple):
    """What a hook's command runs: a command for the shell, and the files in it, which are pinned to their content. Its relative
    paths are relative to the configuration's folder, never to the current one, which is the project's, where an agent may
    write: a command from there would be the agent's own."""

    text: str
    files: tuple[str, ...]


def resolved(command: str, folder: Path) -> HookCommand:
    """The command with its relative files made absolute. Raises ConfigError for one that would be looked up where an agent may
    write."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    is_plain = not _SHELL_SIGNS.search(re.sub(r"(?<!\S)~/", "/", command))
    runs_file = bool(words) and _RUN_FILES.fullmatch(words[0]) is not None
    found: list[str] = []
    for number, word in enumerate(words):
        place = os.path.expanduser(word) if is_plain and word.startswith("~/") else word
        if os.path.isabs(place):
            found.append(place)
        elif _is_code(word, number, runs_file=runs_file):
            found.append(_beside(word, folder, is_plain=is_plain))
        else:
            found.append(word)
    files = [word for word in dict.fromkeys(found) if os.path.isabs(word) and os.path.isfile(word)]
    pinned = tuple(file for file in files if not os.path.realpath(file).startswith(_SYSTEM))
    return HookCommand(shlex.join(found) if is_plain and found != words else command, pinned)


def _is_code(word: str, number: int, *, runs_file: bool) -> bool:
    """Whether a relative word names a program or a script to run, as far as can be seen."""
    if word.startswith(("./", "../")) or (number == 0 and "/" in word):
        return True
    return runs_file and number > 0 and not word.startswith("-") and (os.path.isfile(word) or "." in word)


def _beside(word: str, folder: Path, *, is_plain: bool) -> str:
    place = os.path.normpath(folder / os.path.expanduser(word))
    if not is_plain:
        raise ConfigError(f"{word} is relative, in a command that is more than plain words; write {place}")
    if not os.path.isfile(place):
        looked = f"{word} is looked for beside config.yaml, and {place} does not exist"
        raise ConfigError(f"{looked}; write its absolute path")
    return place


class Held(NamedTuple):
    """The configuration that holds, what of it is the file's, what of the file waits, and the digests of the files that its
    hooks run."""

    config: Config
    of_file: Config
    waiting: list[Change]
    files: Mapping[str, str]


class Confirmed:
    """The last configuration that a person confirmed, of each file: the user's, and the policies of projects. A file that became
    weaker since then is not applied. It is kept in the state folder.

    An agent that gets at `config.yaml` must not get the gate by it. What a person writes with `handrail config`, answers
    'always' to, or has in the file when they start Handrail at a terminal, is confirmed. A start without a terminal, such as a
    service's, and a gate that runs already apply what is stricter at once and leave the rest until it is confirmed. The first
    start ever confirms what it finds.
    """

    def __init__(self, state: Path) -> None:
        self.path = state / FILE

    def config(self, file: Path) -> Config | None:
        """None for a file that was never seen. For a damaged record that is the strictest known: the defaults."""
        record = self._records().get(str(file))
        if record is None:
            return None
        if not record.get(_SETTINGS):
            return Config()
        from .validation import build, check  # loads the YAML parser

        try:
            check(record[_SETTINGS])
            return build(record[_SETTINGS])
        except (ConfigError, KeyError, TypeError):
            return Config()

    def files(self, file: Path) -> dict[str, str]:
        found = self._records().get(str(file), {}).get(_FILES, {})
        return found if isinstance(found, dict) else {}

    def confirm(
        self,
        file: Path,
        config: Config,
        *,
        files: Mapping[str, str] | None = None,
        unless_confirmed_since: Config | None = None,
    ) -> None:
        """Let this configuration hold from now on. `files` None: those of before. Raises Denied in an agent's process. Nothing
        happens if what holds is no longer `unless_confirmed_since`: a person has confirmed something meanwhile."""
        from .strength import settings_in  # few starts confirm anything

        with locked(self.path) as target:
            if unless_confirmed_since is not None and self.config(file) != unless_confirmed_since:
                return
            records = self._records()
            record = {_SETTINGS: settings_in(config), _FILES: self.files(file) if files is None else dict(files)}
            if records.get(str(file)) != record:
                write_text(target, json.dumps({**records, str(file): record}, indent=1) + "\n")

    def policy_above(self) -> Path | None:
        """The policy file of the current project, if one was confirmed: it holds also when it was removed."""
        known = self._records()
        places = (each / PROJECT_FOLDER / POLICY_FILE for each in folders_above())
        return next((place for place in places if str(place) in known), None)

    def confirm_nothing(self, file: Path) -> None:
        """What `confirm` does for the defaults, at the first start ever: without a lock, and fast."""
        if started_by_agent():
            return
        with contextlib.suppress(OSError):
            make_private(self.path.parent)
            with open(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as new:
                json.dump({str(file): {_SETTINGS: {}, _FILES: {}}}, new)

    def _records(self) -> JsonDict:
        """A damaged file is one in which nothing is confirmed but the defaults."""
        text = read_text(self.path)
        if not text:
            return {}
        with contextlib.suppress(ValueError):
            known = json.loads(text)
            if isinstance(known, dict) and all(isinstance(each, dict) for each in known.values()):
                return known
        return _Damaged()


class _Damaged(dict[str, Any]):
    def get(self, *_: Any) -> Any:
        return {}


def is_person() -> bool:
    """Whether a person started this process at a terminal."""
    return (os.isatty(0) or os.isatty(2)) and not started_by_agent()


def held_config(file: Path, state: Path, *, confirms: bool, environ: Mapping[str, str] | None = None) -> Held:
    """The configuration in `file` as far as it may be applied, overridden by the environment's. With `confirms` it is applied
    as it is, as a person started this; `waiting` then says what became weaker by that."""
    environ = os.environ if environ is None else environ
    known, wanted = Confirmed(state), load_config(file, environ={})
    before = known.config(file)
    if before is None and not file.exists():
        known.confirm_nothing(file)
        before = wanted
    config, changes = wanted, list[Any]()
    if before is not None and before != wanted:
        from .strength import held_back  # most starts see no change

        config, changes = held_back(before, wanted)
    pinned, now = known.files(file), file_digests(hook_files(wanted, file.parent))
    if confirms or before is None:
        config, pinned = wanted, now
    if config != before or pinned != known.files(file):
        with contextlib.suppress(ConfigError, Denied):  # a read-only state; an agent's process
            known.confirm(file, config, files=pinned, unless_confirmed_since=None if confirms else before)
    return Held(overridden(config, environ), config, changes, pinned)


def overridden(config: Config, environ: Mapping[str, str]) -> Config:
    """The configuration with what the environment sets."""
    if not override_names(environ):
        return config
    given = overrides(environ)
    from .strength import settings_in  # the same
    from .validation import build  # loads the YAML parser

    settings = settings_in(config)
    for section, values in given.items():
        settings[section] = {**settings.get(section, {}), **values}
    return build(settings)


def hook_files(config: Config, folder: Path) -> list[str]:
    """The files that the hooks of a configuration run."""
    return [path for hooks in config.hooks.values() for hook in hooks for path in resolved(hook.command, folder).files]


def file_digests(paths: Iterable[str]) -> dict[str, str]:
    return {path: file_digest(path) for path in paths}


def file_digest(path: str) -> str:
    """Empty for one that cannot be read."""
    import hashlib  # most configurations have no hooks

    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
