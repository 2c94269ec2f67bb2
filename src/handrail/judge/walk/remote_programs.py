"""Follow programs that run a command on another machine, in a container, or in the environment of a language."""

import functools
import re
from collections.abc import Sequence

from ..programs.tables import CONTAINERS, REMOTE, Container, skip_options
from ..values.taints import NETWORK, Taint, taints_of
from ..values.word_values import UNKNOWN, Arg, Value, unknown
from .script_files import lookup
from .walk import Call, Walk

_MAX_SETTINGS = 100_000
_LOCAL_COMMANDS = re.compile(
    r"(?i)\s*(?:(?:proxycommand|localcommand|knownhostscommand|remotecommand)(?:\s*=\s*|\s+)|match\s.*?\bexec\s+)\"?(.*?)\"?\s*",
    re.S,
)


def follow_settings(walk: Walk, option: str, value: Arg) -> None:
    """`-o setting` and `-F file` of ssh and its like: some settings are commands that run on this machine."""
    if option not in ("-o", "-F", "--ssh"):
        return
    text = f"proxycommand {value}" if option == "--ssh" else str(value)
    if option == "-F":
        source, known = lookup(walk, value), walk.known_file(value)
        text = source.text if source is not None else known.text if known is not None else ""
        if UNKNOWN in text or len(text) > _MAX_SETTINGS or (not text and walk.is_foreign(value)):
            walk.report("env.inject", ["-F", value])
            return
    for line in text.split("\n") if option == "-F" else (text,):
        match = _LOCAL_COMMANDS.fullmatch(line)
        if match and match[1].strip().lower() not in ("", "none"):
            walk.run_helper(Value(match[1], value.taints), "-c")


def _ssh(walk: Walk, call: Call) -> Value | None:
    letters, operands = REMOTE[call.name]
    start, options = skip_options(call.args, letters)
    for option, value in options:
        if value is not None:
            follow_settings(walk, option, value)
    rest = call.args[start:]
    if operands and rest:
        # ssh reads options after the host too.
        more, _ = skip_options(rest[1:], letters)
        rest = rest[1 + more :]
    if call.stdin is not None and Taint.CREDENTIAL in call.stdin.taints:
        walk.report("exfil.pipe", call.argv)
    with walk.wrapped(call.name), walk.elsewhere():
        walk.state.cwd = Value("~")
        if rest:
            text = Value(" ".join(rest), taints_of(rest), rest[0].word if len(rest) == 1 else None)
            out = walk.run_text(text, call.stdin, "-c")
            return Value(out.text, out.taints | NETWORK) if not out.known else unknown(NETWORK)
        if call.stdin is not None and start < len(call.args):
            walk.run_text(call.stdin, None, "remote stdin")
    return unknown(NETWORK)


def follow_container(walk: Walk, call: Call) -> None:
    container = CONTAINERS[call.name]
    if not container.subcommands:
        _inside(walk, call, container, call.args)
        return
    start, _ = skip_options(call.args, container.letters, container.words)
    rest = call.args[start:]
    for path, operands in _paths(container.subcommands):
        if rest[: len(path)] == path:
            inner = container if operands is None else container._replace(operands=operands)
            _inside(walk, call, inner, rest[len(path) :])
            return


@functools.cache
def _paths(subcommands: str) -> tuple[tuple[list[str], int | None], ...]:
    pairs = (subcommand.partition("=") for subcommand in subcommands.split())
    return tuple((path.split("/"), int(operands) if operands else None) for path, _, operands in pairs)


def _inside(walk: Walk, call: Call, container: Container, rest: Sequence[Arg]) -> None:
    letters = container.letters
    start, options = skip_options(rest, letters, container.words)
    texts = [value for option, value in options if option in container.text.split() and value is not None]
    entry = next((value for option, value in options if option == "--entrypoint" and value), None)
    separated = start > 0 and rest[start - 1] == "--"
    command = list(rest[start:] if separated and container.operands else rest[start + container.operands :])
    if entry is not None:  # everything after the image is passed to the program
        command = [entry, *command]
    elif container.operands and not separated and start < len(rest):
        more, later = skip_options(command, letters, container.words)
        texts += [value for option, value in later if option in container.text.split() and value is not None]
        command = command[more:]
    if not command and container.operands and (made := walk.known_file("Dockerfile")) is not None:
        texts += [
            Arg(re.sub(r'["\[\],]+', " ", line)) for line in re.findall(r"(?mi)^(?:CMD|ENTRYPOINT)\s+(.+)", made.text)
        ]
    with walk.wrapped(call.name):
        if container.remote:
            with walk.elsewhere(), walk.subshell():
                _run_all(walk, call, texts, command)
        else:
            with walk.subshell():
                _run_all(walk, call, texts, command)


def _run_all(walk: Walk, call: Call, texts: list[Arg], command: Sequence[Arg]) -> None:
    for text in texts:
        walk.run_text(text.value(), call.stdin, "-c")
    if command and " " in command[0]:
        walk.run_text(command[0].value(), call.stdin, "-c")
    elif command:
        walk.start(command, call.stdin)


def _package_runner(walk: Walk, call: Call) -> Value | None:
    start, options = skip_options(call.args, "pc", "package call from with python index-url spec pip-args")
    rest = call.args[start:]
    if call.name == "pipx":
        if not rest or rest[0] != "run":
            return None
        more, _ = skip_options(rest[1:], "", "spec python pip-args")
        rest = rest[1 + more :]
    with walk.wrapped(call.name):
        for option, value in options:
            if option in ("-c", "--call") and value is not None:
                walk.run_text(value.value(), call.stdin, "-c")
        if rest:
            name = rest[0].split("@", 1)[0] or rest[0]
            return walk.start([rest[0].like(name), *rest[1:]], call.stdin)
    return None


def _nix(walk: Walk, call: Call) -> None:
    """`nix shell packages -c command`, `guix shell packages -- command`."""
    if call.args[:1] and call.args[0] in ("shell", "develop", "environment", "time-machine"):
        for place, arg in enumerate(call.args):
            if arg in ("-c", "--command", "--"):
                walk.start(call.args[place + 1 :], call.stdin, under=call.name)
                break
    else:
        walk.programs.follow_unlisted(walk, call)
