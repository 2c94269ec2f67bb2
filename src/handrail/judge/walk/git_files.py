"""Follow git to what a repository makes it run: aliases, hooks, and programs that its configuration names."""

from __future__ import annotations

import posixpath
import re

from ..programs.wrapper_options import skip_options
from ..values.data_files import read_tables
from ..values.word_values import Arg, Value
from .operators import shell_quoted
from .script_files import here, lookup, run_line
from .script_programs import follow
from .sources import Source, absolute
from .walk import Call, Walk

_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)')
_SETTING = re.compile(r"\s*([\w-]+)\s*=\s*(.*)")
_TABLES = read_tables(__file__)
_FILTERS = frozenset("add commit checkout switch status diff stash reset merge rebase pull restore".split())
_MAX_PARENTS = 12


def follow_git(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "Cc", "git-dir work-tree namespace exec-path config-env")
    if start >= len(call.args):
        return
    folder = next((str(value) for option, value in options if option == "-C" and value), ".")
    top, git = _repository(walk, absolute(folder, here(walk)))
    source = lookup(walk, f"{git}/config") if git else None
    settings = _settings(source) if source is not None else {}
    command, rest = str(call.args[start]), call.args[start + 1 :]
    for variable in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG"):
        stored = walk.lookup(variable)
        if isinstance(stored, Value) and stored.text and (more := lookup(walk, stored.text)) is not None:
            source, settings = source or more, settings | _settings(more)
    for folder in (str(value) for option, value in options if option == "--exec-path" and value):
        follow(walk, Call(f"git-{command}", rest, None, Arg(f"{folder}/git-{command}")))
    alias = settings.get(f"alias.{command.lower()}")
    if alias is not None and source is not None:
        words = " ".join(map(shell_quoted, rest))
        text = f"{alias[1:]} {words}" if alias.startswith("!") else f"git {alias} {words}"
        run_line(walk, source, text, cwd=top)
        return
    if source is not None:
        for name, value in settings.items():
            often = _TABLES["settings"].get(name, "")
            if (command in often.split() and value not in ("true", "false", "")) or (
                name.startswith("filter.") and command in _FILTERS and not value.startswith("git-lfs")
            ):
                run_line(walk, source, value.lstrip("!"), cwd=top)
    if git and "--no-verify" not in rest and not (command == "commit" and "-n" in rest):
        hooks = settings.get("core.hookspath")
        place = absolute(hooks, top) if hooks else f"{git}/hooks"
        run = [str(arg) for arg in rest[1:2]] if command == "hook" and rest[:1] == ["run"] else []
        for hook in (*_TABLES["hooks"].get(command, "").split(), *run):
            path = Arg(f"{place}/{hook}")
            follow(walk, Call(hook, [], None, path))


def _repository(walk: Walk, folder: str) -> tuple[str, str]:
    """The work tree around a folder, and where its settings and hooks are."""
    sources = walk.sources
    assert sources is not None
    for _ in range(_MAX_PARENTS):
        if not folder or folder == "/":
            break
        found = sources.entry(f"{folder}/.git")
        if found is not None and found.is_dir:
            return folder, found.path
        if found is not None:  # a worktree or submodule: `gitdir: path`
            text = sources.start(found.path, 4096).decode("utf-8", "replace")
            path = absolute(text.partition("gitdir:")[2].strip(), folder)
            common = sources.start(f"{path}/commondir", 4096).decode("utf-8", "replace").strip()
            return folder, absolute(common, path) if common else path
        folder = posixpath.dirname(folder)
    return "", ""


def _settings(source: Source) -> dict[str, str]:
    found: dict[str, str] = {}
    section = ""
    for line in source.text.replace("\\\n", "").split("\n"):
        if match := _SECTION.match(line):
            section = ".".join(filter(None, (match[1].lower(), match[2])))
            line = match[3]
        if (match := _SETTING.match(line)) and not line.lstrip().startswith(("#", ";")):
            found[f"{section}.{match[1].lower()}"] = _value(match[2])
    return found


def _value(text: str) -> str:
    """Quotes and escapes of git's own."""
    text = text.strip()
    if '"' in text:
        text = re.sub(r'(?<!\\)"', "", text)
    elif match := re.search(r"\s[#;]", text):
        text = text[: match.start()]
    return text.replace('\\"', '"').replace("\\\\", "\\").strip()
