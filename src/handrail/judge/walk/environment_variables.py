"""Variables of the environment that make programs run or load something which the command names."""

import re

from ..programs.tables import COMMAND_VARIABLES, INJECTING_VALUES, INJECTING_VARIABLES
from ..values.data_files import Patterns, Words, read_tables
from ..values.word_values import UNKNOWN, Arg, Value, unknown
from .script_files import own_files
from .settings_files import follow_place
from .walk import Call, Walk

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_OPTION_VARIABLES = read_tables(__file__)["options"]


def follow_variable(walk: Walk, name: str, value: Value) -> None:
    """Judge what such a variable brings with it, once a program will see it."""
    text = value.text
    is_read = name not in _WORDS.followed and not _RE.names_output.fullmatch(name)
    if is_read and (walk.sources is not None or walk.state.files):
        with own_files(walk):
            follow_place(walk, Call(name, [], None, Arg(name)), text)
    if name == "HOME":
        _start_up_there(walk)
    path = text.rpartition("=")[2]
    if path[:1] in ("/", "~"):
        kinds = walk.classes(path)
        is_output = _RE.names_output.fullmatch(name) and not kinds.isdisjoint(_WORDS.protected)
        if is_output or ("startup" in kinds and path[0] == "/"):
            walk.on_write(Arg(path), name, unknown())
    if name in COMMAND_VARIABLES or _RE.holds_command.fullmatch(name):
        _run_command(walk, name, value)
    elif name == "GOFLAGS" and "-toolexec=" in text:
        walk.run_text(Value(f"{text.partition('-toolexec=')[2]} {UNKNOWN}", value.taints), None, "-c")
        walk.start([*map(Arg, ("go", "build", text))], None)
    elif name in _OPTION_VARIABLES:
        flags = [Arg(word) for word in _words(text)] if name != "MAKEFILES" else [Arg("-f"), Arg(text)]
        walk.start([*map(Arg, _OPTION_VARIABLES[name].split()), *flags], None)
    elif name in _WORDS.folders or name in _WORDS.settings:
        _check_place(walk, name, text)
    elif name.startswith("GIT_CONFIG_VALUE_") or name == "GIT_CONFIG_PARAMETERS":
        _git_settings(walk, name, value)
    elif name in INJECTING_VARIABLES or name in INJECTING_VALUES:
        pattern = INJECTING_VARIABLES.get(name, INJECTING_VALUES.get(name, ""))
        elsewhere = text.replace(f"{tree}/", "") if (tree := walk.work_tree()) else text
        if re.search(pattern, elsewhere) or (name in INJECTING_VARIABLES and not value.known):
            walk.report("env.inject", [name, text])


def _start_up_there(walk: Walk) -> None:
    """Another home: what the command itself has put into hidden files may be what shells run there first."""
    for path, content in list(walk.state.files.items()):
        if path.rpartition("/")[2].startswith(".") and not path.endswith("/"):
            with walk.subshell():
                walk.run_content(content, (), None, path)


def _run_command(walk: Walk, name: str, value: Value) -> None:
    """What the variable holds is run with arguments of the program that reads it: a pager, an editor, a wrapper."""
    text = value.text.lstrip("|- ").replace("%s", UNKNOWN) if name == "LESSOPEN" else value.text
    if name in _WORDS.wrappers:
        text = f"{text} {UNKNOWN}"
    if not value.known or not text.strip():
        return
    walk.run_helper(Value(text, value.taints, value.word if text == value.text else None), name)


def _words(text: str) -> list[str]:
    """`MAKEFLAGS` is cut at blanks, of which an option's value has none unless they are escaped."""
    found = re.findall(r"(?:\\.|\$\([^)]*\)|'[^']*'|[^\s\\])+", text)
    return [re.sub(r"\\(.)", r"\1", word).strip("'") for word in found]


def _check_place(walk: Walk, name: str, text: str) -> None:
    is_file = name in _WORDS.settings
    parts = [text] if is_file else [part for part in text.split(":") if part.replace(UNKNOWN, "")]
    known = walk.known_file(text) if is_file else None
    if any(map(walk.is_foreign, parts)) or (known is not None and known.text):
        walk.report("env.inject", [name, text])


def _git_settings(walk: Walk, name: str, value: Value) -> None:
    """`GIT_CONFIG_KEY_0=x GIT_CONFIG_VALUE_0=y`, `GIT_CONFIG_PARAMETERS="'x=y'"`: the same as `git -c x=y`."""
    if name == "GIT_CONFIG_PARAMETERS":
        found = re.findall(r"'([^']+)'(?:='([^']*)')?", value.text)
        settings = [f"{key}={text}" if text else key for key, text in found] or [UNKNOWN]
    else:
        key = walk.lookup(f"GIT_CONFIG_KEY_{name.rpartition('_')[2]}")
        settings = [f"{key.text if isinstance(key, Value) else UNKNOWN}={value.text}"]
    for setting in settings:
        command = setting[6:].partition("=")[0] if setting.lower().startswith("alias.") else "status"
        walk.start([Arg("git"), Arg("-c"), Arg(setting), Arg(command)], None)
