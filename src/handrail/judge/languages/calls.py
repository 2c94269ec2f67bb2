"""Read Perl, Ruby, JavaScript, PHP, Lua and others by the calls they make, and by what the whole program is for."""

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..programs.endless_loops import loops_forever
from ..programs.tables import SHELLS
from ..values.data_files import Patterns, Words, read_tables
from ..values.paths import classes
from ..values.word_values import UNKNOWN
from .host import MAX_DEPTH, Host, from_data_url
from .names import variants
from .tokens import Given, Token, arguments, series, tokens, too_long, unescape, with_homes

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_TABLES = read_tables(__file__, "call_table")
SHELL = _TABLES["shell"]
"""Functions, by language, whose first argument a shell runs."""
ARGV = _TABLES["argv"]
"""Functions, by language, that run a program with a list of arguments."""
KINDS = {name: kind for kind, names in reversed(_TABLES["kinds"].items()) for name in names.split()}
"""What each function does, in any language."""
QUALIFIERS = frozenset(_TABLES[""]["qualifiers"].split())
"""Modules before a function's name that leave no doubt which function it is."""
_MAX_CALLS = 2000
_COMPUTING = (_RE.evaluates_decoded, _RE.inner_spawn, _RE.substitutes_code)
_TELLING = {_RE.maps_unlink: "code.delete", _RE.deletes_elsewhere: "cloud.api_delete", _RE.reboot: "power.off"}
_TELLING |= dict.fromkeys(_COMPUTING, "code.exec_computed")
_ANY_LAST = frozenset(_RE.chain.split(name)[-1].rstrip("!?") for name in KINDS) | _WORDS.calls_by_name
_ANY_LAST |= {"load", "sync", "default", "manual"}
_LAST_NAMES = {
    language: _ANY_LAST
    | {_RE.chain.split(name)[-1] for name in f"{SHELL.get(language, '')} {ARGV.get(language, '')}".split()}
    for language in {*SHELL, *ARGV}
}
_SHELL_PROGRAMS = frozenset(f"{folder}{shell}" for folder in ("", "/bin/", "/usr/bin/") for shell in SHELLS)
_PHP_CALLBACKS = frozenset(SHELL["php"].split()) | {"assert", "unlink", "rmdir"}
_NEAR = 8
_MAX_TOKENS = 4_000
_MAX_NAMES = 64


class Call(NamedTuple):
    text: str
    """The whole program."""
    last: str
    """The function's own name."""
    arguments: list[str | None]

    @property
    def first(self) -> str | None:
        return self.arguments[0] if self.arguments else None

    @property
    def known(self) -> list[str]:
        return [argument for argument in self.arguments if argument is not None]


def judge(host: Host, text: str) -> None:
    if too_long(text):
        host.find("limit.exceeded")
        return
    if host.language in ("osascript", "tcl"):
        _by_patterns(host, text)
        return
    if _RE.network.search(text) and _RE.shell_path.search(text):
        host.find("rce.reverse_shell")
        return
    text = with_homes(text)
    cut = tokens(host.language, text)
    _as_a_whole(host, text, cut)
    if host.language == "javascript" and host.depth < MAX_DEPTH:
        _inner_code(host, text, cut)
    for found in variants(host.language, text, cut, _readers(host.language)):
        for place, token in enumerate(found):
            if token.kind == "command":
                host.shell(_interpolated(token.text))
            elif token.kind == "name":
                _name(host, text, found, place)
            if host.calls > _MAX_CALLS:
                host.find("limit.exceeded")
                return


@functools.cache
def _readers(language: str) -> frozenset[str]:
    """The functions and words after which a name is only read."""
    return (_LAST_NAMES.get(language, _ANY_LAST) | _WORDS.prints | _WORDS.reads) - _WORDS.fills


def _inner_code(host: Host, text: str, found: Sequence[Token]) -> None:
    """JavaScript in strings: what a template computes, and everything where strings are given to the engine."""
    evaluates = _RE.strings_are_code.search(text) is not None
    host.depth += 1
    for token in found:
        if token.kind == "string" and "(" in token.text:
            parts = re.findall(r"\$\{([^}]*\([^}]*)\}", token.text) if "${" in token.text else []
            for part in [token.text] if evaluates else parts:
                judge(host, part)
            if part := from_data_url(token.text):
                judge(host, part)
                judge_strings(host, part)
    host.depth -= 1


def _as_a_whole(host: Host, text: str, found: Sequence[Token]) -> None:
    """What the program is for, by the names and strings anywhere in it."""
    names = {_RE.chain.split(token.text)[-1] for token in found if token.kind == "name"}
    texts = (token.text.rstrip() for token in found if token.kind == "string")
    goes_on = any(text.endswith("&") for text in texts) or not names.isdisjoint(_WORDS.starts)
    if (_RE.loops.search(text) and names & _WORDS.forks) or (goes_on and loops_forever(text)):
        host.find("proc.fork_bomb")
    if _RE.private.search(text) and _RE.sends.search(text):
        host.find("exfil.send")
    if _RE.includes.search(text) or (_RE.evaluates_later.search(text) and _RE.fetches.search(text)):
        host.find("rce.download_to_shell")
    for pattern, found_rule in _TELLING.items():
        if pattern.search(text):
            host.find(found_rule)
    if _RE.sdk.search(text) and _RE.sdk_deletes.search(text):
        host.find("cloud.delete")


@functools.lru_cache(64)
def _mentions(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


def _interpolated(text: str) -> str:
    """`#{x}` and `${x}` inside a string are not known; `${HOME}` is one of the shell's, or nothing, which is no better."""
    return re.sub(r"#\{[^}]*\}|\$\{(?!HOME\b)[^}]*\}|\$\w+(?:->)?(?:\{\w+\}|\[\w+\])", UNKNOWN, text)


def _name(host: Host, text: str, found: Sequence[Token], place: int) -> None:
    chain = _RE.chain.split(found[place].text)
    last = chain[-1].rstrip("!?")
    if last not in _LAST_NAMES.get(host.language, _ANY_LAST) or (last == "assert" and host.language != "php"):
        return  # only in PHP `assert` evaluates a text
    given, parenthesised = arguments(host.language, found, place + 1, objects=chain[0] in ("Deno", "Bun"))
    if given is None:
        return
    written = found[place].text
    if last in _WORDS.calls_by_name and given and given[0] is not None:  # FileUtils.send("rm_rf", "/x")
        chain, last, given = [*chain[:-1], given[0]], given[0].rstrip("!?"), given[1:]
        written = ".".join(chain)
    host.calls += 1
    call = Call(text, last, given)
    names = _names(host.language, written, chain, text)
    if _is_method(host.language, found, place):
        names -= _WORDS.both
    if found[place + 1].kind == "command" and last in _WORDS.both:  # exec `...`
        host.find("rce.download_to_shell" if _RE.fetches.search(found[place + 1].text) else "code.exec_computed")
    if names.intersection(ARGV.get(host.language, "").split()):
        _run(host, call)
    elif names.intersection(SHELL.get(host.language, "").split()):
        _shell(host, call, certain=parenthesised or _takes_variable(host.language, found, place + 1))
    else:
        kind = "evaluate" if host.language == "lua" and last == "load" else ""
        kind = kind or next((KINDS[name] for name in sorted(names, key=len, reverse=True) if name in KINDS), "")
        may_be_of_database = len(chain) > 1 or _is_method(host.language, found, place)
        if not kind and may_be_of_database and KINDS.get(last) in ("sql", "store"):
            kind = KINDS[last]
        if kind in ("read", "write", "sql") and call.first:
            getattr(host, kind)(call.first)
        elif kind not in ("", "read", "write", "sql") and (given or kind == "store"):
            globals()[f"_{kind}"](host, call)  # the kinds in the table are the functions below


def _is_method(language: str, found: Sequence[Token], place: int) -> bool:
    """`(new PDO($x))->exec("...")`: what has such a name without an object before it runs programs."""
    before = "".join(token.text for token in found[max(0, place - 3) : place])
    return language == "php" and (before.endswith(")->") or "->" in found[place].text)


def _names(language: str, written: str, chain: list[str], text: str) -> set[str]:
    """The names by which a call may be listed in the tables. `/x/.exec(y)` and `db.rm()` say nothing by their last part."""
    last = chain[-1].rstrip("!?")
    names = {written.replace("->", ".").lstrip("&")}
    if len(chain) == 1 or chain[0].lower().lstrip("$") in QUALIFIERS or language == "php":
        names.add(last)
    if language == "javascript" and _mentions(_RE.file_module, text):
        names.add(f"fs.{last}")
    if language == "javascript" and last in ("sync", "default", "manual") and _mentions(_RE.removers, text):
        names.add("rimraf")
    unclear = len(names) == 1 and language != "julia"
    return names - _WORDS.alone_unclear if unclear or language == "javascript" else names


def _takes_variable(language: str, found: Sequence[Token], place: int) -> bool:
    """`system $x`, `exec @words`, `system x`: a call without parentheses, of a variable."""
    if language == "perl":
        return found[place].text[:1] in ("$", "@") or found[place].kind == "command"
    return language == "ruby" and found[place].kind == "name" and found[place].text not in _WORDS.ruby_words


def _shell(host: Host, call: Call, *, certain: bool) -> None:
    """`certain`: it is a call without doubt, and not the same word in another place."""
    if not call.arguments:
        return
    if call.first is None:
        if certain:
            host.find("code.exec_computed")
    elif host.language == "javascript" and _RE.sql_start.match(call.first):  # a database's own `exec`
        host.sql(call.first)
    elif re.match(r"(?:https?|ftp)://", call.first):
        host.find("rce.download_to_shell")
    elif (certain and isinstance(call.first, Given)) or (
        call.first in _SHELL_PROGRAMS and call.known[1:2] in (["w"], ["r+"], ["wb"])
    ):
        host.find("code.exec_computed")
    elif host.language == "julia" and "pipeline" in call.text:
        host.shell(" | ".join(call.known))
    elif len(call.known) > 1 and (host.language == "raku" or _mentions(_RE.joins, call.text)):
        host.shell(" ".join(word for word in call.known if word.strip()))
    elif (len(call.known) > 1 and call.last in ("proc_open", "pcntl_exec") and " " not in call.first) or (
        len(call.known) > 1 and host.language in _WORDS.lists_of_words and not call.known[1].startswith(("r", "w"))
    ):
        _run(host, call)
    else:
        host.shell(_interpolated(call.first))


def _run(host: Host, call: Call) -> None:
    if call.arguments and (call.first is None or isinstance(call.first, Given)):
        host.find("code.exec_computed")
    elif call.first is not None and " " in call.first and _mentions(_RE.runs_words, call.text):
        host.shell(" ".join(call.known))
    elif call.first in _SHELL_PROGRAMS and not call.known[1:]:
        host.run(call.first)
    elif call.arguments:
        host.start(*(UNKNOWN if argument is None else _interpolated(argument) for argument in call.arguments))
        if call.known == [call.first]:  # its arguments may be one of the lists that the program holds
            for words in itertools.islice(series(tokens(host.language, call.text), _NEAR), _MAX_NAMES):
                for start in range(len(words[:_NEAR])):
                    host.start(call.known[0], *words[start:])


def _tree(host: Host, call: Call) -> None:
    host.delete(call.first, tree=True)


def _file(host: Host, call: Call) -> None:
    tree = host.language == "r" and "recursive" in call.text
    for path in call.known:
        host.delete(path, tree=tree)
    unclear = [path for path in call.known if path[:1] in "~/" and (UNKNOWN in path or "$" in path)]
    far = unclear or not {"~", "~/"}.isdisjoint(call.known)
    if (far or not call.known) and _mentions(_RE.lists, call.text):
        host.find("code.delete")


def _open(host: Host, call: Call) -> None:
    """`open(F, ">path")`, `fopen("path", "w")`, `File.open("path", "a")`."""
    known = call.known
    if not known:
        return
    if host.language == "ruby" and known[0].startswith("|"):
        host.shell(known[0][1:])
    elif host.language != "perl" or (call.last == "new" and len(known) > 1):
        mode = known[1] if len(known) > 1 else "a" if _mentions(_RE.opens_to_write, call.text) else "r"
        if not set(mode).isdisjoint("wax+>") and len(mode) < 6:
            host.write(
                known[0], empties=mode[0] in "w>" and mode != ">>" and not _mentions(_RE.writes_something, call.text)
            )
        else:
            host.read(known[0])
    elif known[0] in ("-|", "|-") and len(known) > 2:
        host.start(*known[1:])
    elif call.last == "sysopen" and re.search("O_(?:WRONLY|RDWR|TRUNC|CREAT)", call.text):
        host.write(known[0])
    elif (joined := "".join(known[:2]).strip()).startswith(("|", "-|")) or joined.endswith("|"):
        host.shell(joined.strip("|- "))
    elif match := re.match(r"(\+?>{1,2}|\+<|<)?\s*(.+)", joined):
        host.write(match[2].strip()) if match[1] not in (None, "<") else host.read(match[2].strip())


def _copy(host: Host, call: Call) -> None:
    if len(call.known) > 1:
        moves = call.last in ("rename", "renameSync", "mv", "move", "moveSync")
        host.run("mv" if moves else "cp", call.known[0], call.known[1])


def _chmod(host: Host, call: Call) -> None:
    mode = next((item for item in call.known if item.isdigit() or item.startswith("0o")), UNKNOWN)
    path = next((item for item in call.known if item != mode), None)
    if path is not None:
        host.run("chmod", mode.removeprefix("0o"), path)


def _evaluate(host: Host, call: Call) -> None:
    if _mentions(_RE.fetches, call.text):
        host.find("rce.download_to_shell")
    elif call.first is None or UNKNOWN in call.first:
        host.find("code.exec_computed")
    elif host.depth < MAX_DEPTH:
        host.depth += 1
        judge(host, call.first)
        host.depth -= 1


def _kill(host: Host, call: Call) -> None:
    known = set(call.known)
    if known & {"-1", "1"} or (_mentions(_RE.minus_one, call.text) and "1" in known):
        host.find("proc.kill_all")
    elif None in call.arguments or known & {"9", "KILL", "SIGKILL", "-9"}:
        host.find("proc.kill_force")


def _store(host: Host, call: Call) -> None:
    if call.last not in ("drop", "deleteMany") or not call.known:
        host.find("sql.destructive")


def _by_patterns(host: Host, text: str) -> None:
    """AppleScript, Tcl and expect: what patterns find, by what it means."""
    shows: dict[str, Callable[[str], object]] = {
        "shell": host.shell,
        "tree": host.delete_tree,
        "write": host.write,
        "source": lambda path: host.start("tclsh", path) if path[0] not in "[$" else host.find("code.exec_computed"),
    }
    for kind, pattern in _TABLES[host.language].items():
        for match in re.finditer(pattern, text):
            found = next(filter(None, match.groups()), "")
            if "." in kind:
                host.find(kind)
            elif kind == "typed":
                host.shell(unescape(found).replace("\r", "\n"))
            else:
                found = found.replace("{*}", "").removeprefix("[list ")
                shows[kind](re.sub(r"\{([^{}']*)\}", r"'\1'", found).strip().strip('"'))


def judge_strings(host: Host, text: str) -> None:
    """Show to the rules the strings that could be run and have not been shown yet."""
    text = with_homes(text)
    found = next(variants(host.language, text, tokens(host.language, text), _readers(host.language)))
    _touched(host, text, found)
    if host.language in _WORDS.unread:
        for match in itertools.islice(_RE.escaped.finditer(text), _MAX_NAMES):
            host.shell(match[1] or match[2] or match[3])
    if host.language == "php" and not host.shown:
        _named_functions(host, found)
    runs = _RE.runs.search(text) is not None
    if not runs and host.language != "other":
        return
    if len(found) > _MAX_TOKENS:
        host.find("limit.exceeded")
    shown = set(host.shown)
    for words in series(found[:_MAX_TOKENS], _NEAR):
        if not shown.intersection(words) and host.is_program(words[0]):
            host.run(*words)
            if len(words) > 1 and " " in words[1]:  # Start("rm", "-rf x")
                host.shell(" ".join(words))
    reverses = _RE.reverses.search(text) is not None
    for string in _strings(found):
        for line in (string, string[::-1]) if reverses else (string,):
            if line not in shown and " " in line.strip() and host.is_program(line.split(None, 1)[0]):
                host.shell(line)


def _named_functions(host: Host, found: Sequence[Token]) -> None:
    """In PHP a function's name in a string is as good as the function: `ob_start("system")`."""
    for asks, before, token in zip(found, found[1:], found[2:], strict=False):
        is_given = token.kind == "string" and before.text in ("(", ",") and asks.text not in _WORDS.asks_for_function
        if is_given and token.text in _PHP_CALLBACKS:
            host.find("code.exec_computed")


def _touched(host: Host, text: str, found: Sequence[Token]) -> None:
    """The paths that it may delete or write: those near a call that does so; all of them where what is called is not known."""
    calls = [(_RE.tree, host.delete_tree), (_RE.writes, host.write)]
    if host.language in _WORDS.unread:
        calls += [(_RE.removes, host.delete_tree), (_RE.changes, host.write)]
    for pattern, show in calls:
        for match in itertools.islice(pattern.finditer(text), _MAX_NAMES):
            if not _paths(found, match.start(), show) and pattern is _RE.tree:
                host.delete(None, tree=True)
                listed = found if _mentions(_RE.lists, text) else ()
                for path in (
                    token.text for token in listed if token.kind == "string" and token.text[:2] in ("~/", "~")
                ):
                    host.delete_tree(path)
    if _RE.indirect.search(text) and (host.language != "javascript" or _mentions(_RE.file_module, text)):
        for path in {token.text for token in found if token.kind == "string" and token.text[:1] in ("/", "~")}:
            if path != "/" and not classes(path).isdisjoint(_WORDS.protected):  # "/" is the route of a server too
                host.delete_tree(path)


def _paths(found: Sequence[Token], start: int, show: Callable[[str], None]) -> bool:
    """Show the strings around a name that look like paths: `RemoveAll("/x")`, `new File("/x").deleteDir()`.

    Whether there is any string that may be one.
    """
    after = next((place for place, token in enumerate(found) if token.start >= start), len(found))
    first = max(0, after - _NEAR // 2)
    if after and found[after - 1].text in (".", "->"):  # what it is a method of
        first = next((place for place in range(after, 0, -1) if found[place - 1].kind == "end"), 0)
    near = [token.text for token in found[first : after + _NEAR] if token.kind == "string"]
    for text in near:
        if text[:1] in ("/", "~", "."):
            show(text)
    return bool(near)


def _strings(found: Sequence[Token]) -> Iterator[str]:
    for place, token in enumerate(found[:_MAX_TOKENS]):
        before = [earlier.text for earlier in found[max(0, place - 2) : place] if earlier.text not in ("(", "[")]
        if token.kind == "string" and not (before and before[-1] in _WORDS.prints):
            yield token.text.strip("|!< \n\t")
