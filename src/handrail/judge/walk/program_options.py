"""Follow commands in the options and input of programs with another main purpose: tar, git, tmux, make.

This file is longer than the others on purpose. Each program is one short function, and they share the same few helpers.
"""

import itertools
import re
from collections.abc import Sequence

from ..grammar.lexical import decode_escapes
from ..programs.tables import WRAPPERS, all_options, raised, skip_options
from ..values.data_files import Words, read_tables
from ..values.taints import NO_TAINTS
from ..values.word_values import UNKNOWN, Arg, Value, make_arg, unknown
from .judgement import Limit
from .operators import shell_quoted
from .remote_programs import follow_container, follow_settings
from .script_files import names_in
from .walk import Call, Walk
from .wrapper_programs import wrap

_WORDS = Words(__file__)
_MAX_LINES = 1_000
_MAX_PARTS = 32
_GIT_COMMAND_ENDS = tuple(_WORDS.git_command_ends)
_GIT_PLACES = ("core.hookspath", "include.path", "init.templatedir", "core.attributesfile")
_IN_ARGUMENTS = {name: text for names, text in read_tables(__file__)["arguments"].items() for name in names.split()}
_TMUX_LETTERS = {word: letters for words, letters in read_tables(__file__)["tmux"].items() for word in words.split()}


def _run_option(walk: Walk, text: str, of: Arg | None = None, *, stdin: Value | None = None) -> None:
    if text:
        taints, word = (of.taints, of.word) if of is not None else (NO_TAINTS, None)
        walk.run_helper(Value(text, taints, word), "-c", stdin)


def _at(walk: Walk, call: Call) -> None:
    _, options = skip_options(call.args, "qft", "")
    given = dict(options)
    if given.keys() & {"-l", "-r", "-d", "-c"}:
        return
    source = given.get("-f")
    text = walk.known_file(source) if source is not None else call.stdin
    if text is not None:
        walk.run_text(text, None, "stdin")


def _lines(text: Value) -> list[str]:
    lines = text.text.split("\n")
    if len(lines) > _MAX_LINES:
        raise Limit("a file with too many lines")
    return lines


def _crontab(walk: Walk, call: Call) -> None:
    """A crontab's lines hold commands after five fields or a nickname."""
    operands = [arg for arg in call.args if arg[:1] != "-" or arg == "-"]
    text = call.stdin if not operands or operands[-1] == "-" else walk.known_file(operands[-1])
    if text is None or not text.known:
        return
    for line in _lines(text):
        match = re.match(r"\s*(?:@\w+|(?:\S+\s+){4}\S+)\s+(.+)", line)
        if match and not line.lstrip().startswith("#"):
            with walk.subshell():
                walk.run_text(Value(match[1].split("%", 1)[0], text.taints), None, "cron")


def _tar(walk: Walk, call: Call) -> None:
    for place, arg in enumerate(call.args):
        name, equals, value = arg.partition("=")
        if not equals and place + 1 < len(call.args):
            value = str(call.args[place + 1])
        if name == "--checkpoint-action" and value.startswith("exec="):
            _run_option(walk, value[5:], arg)
        elif glued := re.fullmatch(r"(?s)-[a-zA-Z]*?[IF](.+)", arg):
            if "f" not in arg.partition(glued[1])[0]:  # else it is a file's name
                _run_option(walk, glued[1], arg)
        elif name in _WORDS.tar_commands or re.fullmatch(r"-[a-zA-Z]*[IF]", arg):
            _run_option(walk, value, arg, stdin=unknown() if name == "--to-command" else None)


def follow_ssh_copies(walk: Walk, call: Call) -> None:
    """scp and sftp: `-S program` is run with arguments of their own, `-o ProxyCommand=text` by a shell."""
    _, options = skip_options(call.args, "cDFiJloPSXbBRs")
    for option, value in options:
        if value is None:
            continue
        if option in ("-S", "-D"):
            with walk.wrapped(call.name), walk.subshell():
                words = [value.like(word) for word in value.split()] if option == "-D" else [value]
                walk.start([*words, make_arg(UNKNOWN)], None)
            if " " in value:
                _run_option(walk, str(value), value)
        else:
            follow_settings(walk, option, value)


def _run_parts(walk: Walk, call: Call) -> None:
    """Every program in a folder: those on the disk are read; with the rights of root, unknown ones are asked about."""
    start, options = skip_options(call.args, "au", "arg umask lsbsysinit regex")
    if start >= len(call.args) or not {option for option, _ in options}.isdisjoint(("--test", "--list", "--help")):
        return
    folder = call.args[start]
    names = names_in(walk, folder)[:_MAX_PARTS]
    for name in names or ([UNKNOWN] if raised(walk.under) and not folder.startswith("/etc/") else ()):
        walk.start([folder.like(f"{folder}/{name}")], None, under="run-parts")


def _in_arguments(walk: Walk, call: Call) -> Value | None:
    """Programs whose arguments hold commands where a pattern finds them: `apt -o Pre-Invoke=command`, `less '+!command'`."""
    typed = [make_arg(call.stdin.text)] if call.stdin is not None and call.name in _WORDS.read_input else []
    for arg in (*call.args, *typed):
        for match in re.finditer(_IN_ARGUMENTS[call.name], arg):
            pipes = unknown() if "|" in arg[: match.end()] else None
            _run_option(walk, next(filter(None, match.groups()), ""), arg, stdin=pipes)
    return wrap(walk, call) if call.name in WRAPPERS else None


def _capsh(walk: Walk, call: Call) -> None:
    """What follows `--` is for bash."""
    if "--" in call.args:
        with walk.wrapped("capsh"):
            walk.run([Arg("bash"), *call.args[call.args.index(Arg("--")) + 1 :]], call.stdin, functions=False)


def _cmake(walk: Walk, call: Call) -> None:
    """`cmake -E env VAR=x program`, `cmake -E time program`, `cmake -E chdir folder program`."""
    skipped = (
        {"env": 2, "time": 2, "chdir": 3}.get(str(call.args[1])) if call.args[:1] == ["-E"] and call.args[1:] else None
    )
    if skipped is not None:
        rest = list(itertools.dropwhile(lambda arg: arg[:1] == "-" or "=" in arg, call.args[skipped:]))
        with walk.wrapped("cmake"):
            walk.run(rest, call.stdin, functions=False, builtins=False)


def _cmd(walk: Walk, call: Call) -> None:
    """The shell of Windows: `cmd /c "rd /s /q folder"`."""
    place = next((place for place, arg in enumerate(call.args) if arg.lower() in ("/c", "/k", "/r")), None)
    if place is not None:
        _run_option(walk, " ".join(call.args[place + 1 :]).replace("\\", "/"))


def _git(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "Cc", "git-dir work-tree namespace exec-path config-env")
    rest = call.args[start:]
    operands = [arg for arg in rest if arg[:1] != "-"]
    if operands[:1] == ["config"] and len(operands) > 2:
        _git_setting(walk, operands[-1].like(f"{operands[-2]}={operands[-1]}"), rest)
    if rest and rest[0] == "clone":
        options += skip_options(rest[1:], "cbou", "branch origin config depth template")[1]
    for option, value in options:
        if option in ("-c", "--config") and value is not None:
            _git_setting(walk, value, rest)
        elif option == "--config-env" and value is not None:
            key, _, variable = value.partition("=")
            stored = walk.lookup(variable)
            text = stored.text if isinstance(stored, Value) else UNKNOWN
            _git_setting(walk, value.like(f"{key}={text}"), rest)
        elif option == "--exec-path" and value and walk.is_foreign(value):
            walk.report("env.inject", call.argv)
    for place, arg in enumerate(rest):
        following = rest[place + 1] if place + 1 < len(rest) else None
        if rest[0] == "grep" and arg.startswith(("-O", "--open-files-in-pager=")):
            _run_option(walk, arg.removeprefix("-O").removeprefix("--open-files-in-pager="), arg)
        if "ext::" in arg[:24]:  # an address that is a command
            _run_address(walk, arg)
        name, equals, value_text = arg.partition("=")
        if name in ("--upload-pack", "--receive-pack", "--exec", "-x", "-u", "--extcmd", "--run") and _runs(rest, name):
            _run_option(walk, value_text if equals else str(following or ""), arg)
        elif rest[0] == "filter-branch" and arg.endswith("-filter") and following is not None:
            _run_option(walk, str(following), following)
    follow_container(walk, call)


def _git_setting(walk: Walk, setting: Arg, rest: Sequence[Arg]) -> None:
    """`-c key=value`: some keys hold a command, or a place where commands are."""
    key, _, text = setting.partition("=")
    key = key.lower()
    if key.startswith("alias."):
        if rest and rest[0] == key[6:]:
            command = text[1:] if text.startswith("!") else text if text == UNKNOWN else f"git {text}"
            _run_option(walk, command + "".join(f" {shell_quoted(arg)}" for arg in rest[1:]), setting)
    elif key in _GIT_PLACES or (key.startswith("includeif.") and key.endswith(".path")):
        if walk.is_foreign(text) or text == UNKNOWN:
            walk.report("env.inject", ["git", "-c", setting])
        walk.programs.follow_place(walk, Call("git", [setting], None, Arg("git")), text)
    elif key.startswith("protocol.ext") and text != "never":
        walk.report("env.inject", ["git", "-c", setting])
    elif key.endswith(".mirror") and rest[:1] == ["push"] and text == "true":
        walk.start([Arg("git"), Arg("push"), Arg("--mirror"), *rest[1:]], None)
    elif names_command(key, text):
        _run_option(walk, text.lstrip("!"), setting)


def names_command(key: str, text: str) -> bool:
    """Whether the value of this setting of git, given in lower case, is a command."""
    return (
        key in _WORDS.git_command_keys
        or key.endswith(_GIT_COMMAND_ENDS)
        or (key.endswith(".path") and key.startswith(("difftool.", "mergetool.", "browser.", "man.")))
        or (key.startswith("pager.") and text.lower() not in ("true", "false", "yes", "no", "on", "off", "0", "1"))
        or UNKNOWN in key
    )


def _run_address(walk: Walk, arg: Arg) -> None:
    """`ext::program argument`: words end at blanks, `% ` is one that belongs to a word."""
    words = re.findall(r"(?:%.|[^ %])+", arg.partition("ext::")[2])
    walk.start([arg.like(re.sub("%(.)", r"\1", word)) for word in words], None, under="git")
    _run_option(walk, arg.partition("ext::")[2], arg)


def _runs(rest: Sequence[Arg], option: str) -> bool:
    """Whether this option of this sub-command runs something (`git push -u` does not)."""
    subcommand = str(rest[0])
    if option == "-x":
        return subcommand in ("rebase", "difftool")
    if option == "-u":
        return subcommand in ("clone", "ls-remote")
    return subcommand in _WORDS.git_transports


def _tmux(walk: Walk, call: Call) -> None:
    args = call.args
    start, _ = skip_options(args, "cfLST")
    rest = args[start:]
    if not rest:
        return
    name = str(rest[0])
    letters = _TMUX_LETTERS.get(name)
    if letters is not None:
        more, _ = skip_options(rest[1:], letters)
        _run_option(walk, " ".join(rest[1 + more :]))
    elif name in ("run", "run-shell", "if", "if-shell", "pipe-pane", "pipep"):
        more, _ = skip_options(rest[1:], "tdc")
        for text in rest[1 + more :]:
            _run_option(walk, str(text), text)
    elif name in ("send", "send-keys"):
        more, _ = skip_options(rest[1:], "tNc")
        keys = [arg for arg in rest[1 + more :] if arg not in ("Enter", "C-m", "C-j", "Space")]
        _run_option(walk, " ".join(keys))


def _screen(walk: Walk, call: Call) -> None:
    start, options = skip_options(call.args, "ScehprstTx", "")
    rest = call.args[start:]
    if any(option == "-X" for option, _ in options):
        if rest[:1] == ["stuff"]:
            _run_option(walk, decode_escapes(" ".join(rest[1:]).replace("^M", "\n")))
        return
    if rest:
        walk.start(rest, None, under="screen")


def _make(walk: Walk, call: Call) -> None:
    args = [str(arg) for arg in call.args]
    if {"-n", "--dry-run", "--just-print", "--recon"} & set(args):
        return
    _, options = all_options(call.args, "fCIloW", "file makefile directory eval")
    for arg in call.args:
        if arg.partition("=")[0] in _WORDS.make_tools:
            _run_option(walk, arg.partition("=")[2], arg)
        elif "=" in arg and (computed := re.search(r"\$\(shell (.*)\)|!=(.*)", arg)):
            _run_option(walk, computed[1] or computed[2], arg)
    for option, value in options:
        if value is None:
            continue
        if option == "--eval":
            _recipe(walk, value.value())
        elif option in ("-f", "--file", "--makefile"):
            content = call.stdin if value in ("-", "/dev/stdin") else walk.known_file(value)
            if content is not None and content.text != UNKNOWN:
                _recipe(walk, content)
            elif content is not None:
                walk.report("dynamic.script", call.argv)


def _recipe(walk: Walk, text: Value) -> None:
    """The commands of a makefile: lines that start with a tab, or follow a semicolon."""
    for line in _lines(text):
        match = re.match(r"\t\s*[@+-]*(.+)", line) or re.match(r"[^=#]*?:[^=;]*;\s*[@+-]*(.+)", line)
        match = match or re.search(r"\$\(shell (.*)\)", line)
        if match:
            with walk.subshell():
                walk.run_text(Value(match[1].replace("$$", "$"), text.taints), None, "make")
