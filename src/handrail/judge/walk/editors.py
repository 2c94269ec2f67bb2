"""Follow commands in what editors, macro processors and the like are told to do: vim, ed, m4, nmap, mongosh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..values.word_values import Arg, Value, unknown
from .interpreters import judge_code
from .program_handlers import Call, Handler

if TYPE_CHECKING:
    from .command_walk import Running

_VIM_RUNS = r"(?s)\s*:*\s*(?:%|\d+,\d+|silent!?\s+)*\s*!(.*)"
_VIM_EXECUTES = r"(?s)\s*:*\s*exe(?:cute)?\s+['\"]\s*(?:silent!?\s+)*!(.*?)['\"]"
_VIM_PIPES = r"(?s)\s*:*\s*(?:%|\d+,[\d$]+)?\s*(?:w|write|r|read)\s*!(.*)"
_VIM_DELETES = r"\bdelete\((['\"])(.*?)\1"
_VIM_SYSTEM = r"system(?:list)?\((['\"])(.*?)\1\)"
_VIM_LANGUAGE = r"(?s)\s*:*\s*(py3?|py3do|pythonx?|python3|lua|luado|perl|perldo|ruby|rubydo|tcl)\s+(.+)"
_ED_RUNS = r"(?m)^\s*(?:[rwe]\s*)?!(.+)$"
_M4_RUNS = r"\be?syscmd\(\s*`?([^()]{1,2000}?)'?\s*\)"
_LONGEST = 100_000
_MAX_PARTS = 100


def _vim(walk: Running, call: Call) -> Value | None:
    for arg, text in _told(call):
        if match := re.match(_VIM_LANGUAGE, text):
            language = "python" if match[1].startswith("py") else match[1].removesuffix("do")
            judge_code(walk, call, language, Value(match[2]))
            continue
        for rest in _parts(text):
            if match := re.match(_VIM_RUNS, rest):
                walk.run_text(Value(match[1], arg.taints, arg.word), None, "-c")
                break
            if match := re.match(_VIM_PIPES, rest):
                walk.run_text(Value(match[1]), unknown(), "-c")
                break
            line = rest.partition("|")[0]
            if match := re.match(_VIM_EXECUTES, line):
                walk.run_text(Value(match[1], arg.taints, arg.word), None, "-c")
            if match := re.search(_VIM_DELETES, line):
                walk.run([Arg("rm"), Arg("-r"), Arg(match[2])], None, functions=False)
            if match := re.search(_VIM_SYSTEM, line):
                walk.run_text(Value(match[2], arg.taints), None, "-c")
    return None


def _parts(text: str) -> Iterator[str]:
    """What follows the start and each bar: to some commands all the rest belongs, bars too."""
    for _ in range(_MAX_PARTS):
        yield text
        text = text.partition("|")[2]
        if not text:
            return


def _told(call: Call) -> Iterator[tuple[Arg, str]]:
    """The commands after `-c` and `+`."""
    for place, arg in enumerate(call.args):
        if (arg == "--cmd" or re.fullmatch("-[A-Za-z]*c", arg)) and place + 1 < len(call.args):
            yield arg, str(call.args[place + 1])
        elif arg[:1] == "+":
            yield arg, arg[1:]


def _by_pattern(pattern: str) -> Handler:
    """A program whose input holds commands where the pattern says so."""

    def follow(walk: Running, call: Call) -> Value | None:
        texts = [call.stdin, *(walk.known_file(arg) for arg in call.args if arg[:1] != "-")]
        for text in texts:
            if text is not None and len(text.text) <= _LONGEST:
                for match in re.finditer(pattern, text.text):
                    walk.run_text(Value(match[1], text.taints), None, "-c")
        return None

    return follow


def _mongo(walk: Running, call: Call) -> Value | None:
    """Its shell is one of JavaScript."""
    for place, arg in enumerate(call.args):
        name, equals, value = arg.partition("=")
        if name == "--eval":
            code = arg.like(value) if equals else call.args[place + 1] if place + 1 < len(call.args) else Arg("")
            judge_code(walk, call, "javascript", code.value())
    return None


def _nmap(walk: Running, call: Call) -> Value | None:
    """Its scripts are programs in Lua."""
    for place, arg in enumerate(call.args):
        name, equals, value = arg.partition("=")
        script = value if equals else str(call.args[place + 1]) if place + 1 < len(call.args) else ""
        content = walk.known_file(script) if name == "--script" and script else None
        if content is not None:
            judge_code(walk, call, "lua", content)
    return None


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("vim", "vi", "nvim", "view", "ex", "gvim", "vimdiff"), _vim),
    **dict.fromkeys(("ed", "red"), _by_pattern(_ED_RUNS)),
    "m4": _by_pattern(_M4_RUNS),
    "nmap": _nmap,
    **dict.fromkeys(("mongo", "mongosh"), _mongo),
}
