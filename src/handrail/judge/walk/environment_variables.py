"""Variables of the environment that make git, make and language runtimes run or load something which the command names."""

from __future__ import annotations

import re

from ..values.word_values import UNKNOWN, Arg, Value
from .walk import Walk

_FOLDERS = frozenset("GIT_EXEC_PATH GIT_TEMPLATE_DIR RUBYLIB LD_LIBRARY_PATH DYLD_LIBRARY_PATH".split())
"""Where programs or libraries are looked up: one that everybody can write to must not be among them."""
_SETTINGS = frozenset("GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM".split())
_AGENTS = re.compile(r"-javaagent|-agent(?:lib|path)|-XX:On\w*Error")
_RUNNERS = frozenset("RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTDOC CARGO_BUILD_RUSTC_WRAPPER".split())


def follow_variable(walk: Walk, name: str, value: Value) -> None:
    """Judge what such a variable brings with it, once a program will see it."""
    text = value.text
    if name in ("MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES"):
        flags = [Arg(word) for word in _words(text)] if name != "MAKEFILES" else [Arg("-f"), Arg(text)]
        walk.run([Arg("make"), *flags], None, functions=False, builtins=False)
    elif name in _FOLDERS or name in _SETTINGS:
        _check_place(walk, name, text)
    elif name.startswith("GIT_CONFIG_VALUE_") or name == "GIT_CONFIG_PARAMETERS":
        _git_settings(walk, name, value)
    elif name in _RUNNERS:
        walk.run_text(Value(f"{text} {UNKNOWN}", value.taints, value.word), None, "-c")
    elif name in ("_JAVA_OPTIONS", "JDK_JAVA_OPTIONS") and _AGENTS.search(text):
        walk.report("env.inject", [name, text])
    elif name == "GOFLAGS" and "-toolexec=" in text:
        walk.run_text(Value(f"{text.partition('-toolexec=')[2]} {UNKNOWN}", value.taints), None, "-c")
    elif (
        name == "RUBYOPT" and (UNKNOWN in text or re.search(r"-[A-Za-z]*[rI]", text))
    ) or name == "DYLD_INSERT_LIBRARIES":
        walk.report("env.inject", [name, text])


def _words(text: str) -> list[str]:
    """`MAKEFLAGS` is cut at blanks, of which an option's value has none unless they are escaped."""
    return [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|\$\([^)]*\)|[^\s\\])+", text)]


def _check_place(walk: Walk, name: str, text: str) -> None:
    parts = [text] if name in _SETTINGS else [part for part in text.split(":") if part.replace(UNKNOWN, "")]
    if any("temp" in walk.classes(part) for part in parts) or (
        name in _SETTINGS and (known := walk.known_file(text)) is not None and known.text
    ):
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
        walk.run([Arg("git"), Arg("-c"), Arg(setting), Arg(command)], None, functions=False, builtins=False)
