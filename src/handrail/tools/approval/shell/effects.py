"""What is known of a program's effects without running it: where its output comes from, and which files it makes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .initialisers import INITIALISERS, prints_initialisation
from .shell_state import SECRET_CLASSES
from .values import UNKNOWN, Arg, Taint, Taints, Value, unknown
from .wrappers import skip_options

if TYPE_CHECKING:
    from .handlers import Call
    from .running import Running

_NETWORK = frozenset(
    "curl wget http https xh nc ncat netcat telnet socat ftp lynx w3m links elinks aria2c fetch rsh gsutil GET "
    "dig nslookup host tftp smbclient curlie lwp-request httpie axel lftp ncftpget scp sftp".split()
)
_STORAGE = frozenset("aws gsutil gcloud rclone az s3cmd mc b2 doctl gh glab".split())
_FETCHING = frozenset(("cp", "cat", "get", "download", "copyto", "copy", "api", "get-object"))
_READERS = frozenset(
    "cat tac head tail less more grep egrep fgrep rg ag sed gsed awk gawk mawk cut sort uniq tr base64 base32 "
    "basenc xxd od hexdump strings tee gzip gunzip zcat bzcat xzcat zstdcat xz bzip2 zstd lz4 tar zip cpio "
    "openssl gpg jq yq paste nl fold fmt rev dd pr column iconv dos2unix envsubst xargs age bat batcat pv "
    "uuencode split diff comm join look perl python3 python ruby node php busybox sponge shuf expand unexpand "
    "csplit ul cp".split()
)
_SECRET_STORES = frozenset("pass op vault security secret-tool bw gopass lpass keepassxc-cli".split())
_LISTERS = frozenset(
    "ls find ps fd fdfind locate plocate git docker podman kubectl oc helm pgrep pidof lsof atq virsh aws "
    "gcloud az gh".split()
)
_NOTHING: Taints = frozenset()
_SECRET: Taints = frozenset((Taint.CREDENTIAL,))
_ARCHIVERS = frozenset(("tar", "zip", "cpio", "7z", "rsync"))
_COPIERS = frozenset(("cp", "mv", "ln", "install", "gcp", "rsync"))
_FETCHERS = frozenset(("aria2c", "axel", "fetch", "http", "xh"))
_MAKERS = frozenset(("curl", "wget", "scp", "dd", *_COPIERS, *_FETCHERS))


_ENVIRONMENT = frozenset(("env", "printenv", "set", "export", "declare"))
_FINDERS = frozenset(("find", "fd", "fdfind", "locate"))
_TELLING = frozenset(
    (
        "openssl", "history", *_NETWORK, *_STORAGE, *_READERS, *_SECRET_STORES, *_LISTERS, *_ARCHIVERS, *_ENVIRONMENT, *_FINDERS,
        *INITIALISERS,
    )
)  # fmt: skip
"""Programs of whose output something can be told."""


def unknown_output(walk: Running, call: Call) -> Value:
    """What a program prints that is not worked out: unknown, but its sources can be told."""
    name, args = call.name, call.args
    if name not in _TELLING:
        return Value(UNKNOWN, call.stdin.taints) if call.stdin is not None else Value(UNKNOWN)
    taints: set[Taint] = set(call.stdin.taints) if call.stdin is not None else set()
    if name in _NETWORK or (name == "openssl" and "s_client" in args):
        taints.add(Taint.NETWORK)
    if name in _STORAGE and not _FETCHING.isdisjoint(args):
        taints.add(Taint.NETWORK)
    if name in _READERS:
        for arg in args:
            taints |= arg.taints
            taints |= _read_taints(walk, arg)
    if _shows_secrets(walk, name, args):
        taints.add(Taint.CREDENTIAL)
    if name in _LISTERS:
        taints.add(Taint.WIDE)
    if prints_initialisation(name, args):
        taints.add(Taint.INITIALISER)
    return unknown(taints)


def _read_taints(walk: Running, arg: Arg) -> Taints:
    if not arg or arg[0] == "-":
        return _NOTHING
    known = walk.known_file(arg)
    if known is not None:
        return known.taints
    return _NOTHING if walk.classes(arg.removeprefix("if=")).isdisjoint(SECRET_CLASSES) else _SECRET


def _shows_secrets(walk: Running, name: str, arguments: Sequence[Arg]) -> bool:
    if name in _ENVIRONMENT:
        return not arguments
    if name in _SECRET_STORES or name == "history":
        return True
    if name in _ARCHIVERS:
        roots = [arg for arg in arguments if arg[:1] in ("~", "/")]
        return any(not walk.classes(arg).isdisjoint(("home-root", "root", "system-root")) for arg in roots)
    if name in _FINDERS:
        return any("credential-name" in walk.classes(arg) for arg in arguments if arg[:1] != "-")
    return False


def files_made(walk: Running, call: Call) -> None:
    """Remember the files that a program makes, where what they hold matters to what follows."""
    name, args = call.name, call.args
    if not args or name not in _MAKERS:
        return
    if name == "curl":
        _downloaded(walk, _curl_targets(args))
    elif name == "wget":
        _downloaded(walk, _wget_targets(args))
    elif name in _FETCHERS:
        _, options = skip_options(args, "od", "out dir output")
        _downloaded(walk, [value for option, value in options if option in ("-o", "--out", "--output") and value])
    elif name == "scp" and ":" in args[-2 if len(args) > 1 else -1]:
        _downloaded(walk, [args[-1]])
    elif name in _COPIERS and len(args) >= 2:
        source = walk.known_file(args[-2])
        if source is not None:
            walk.state.write(walk.path(args[-1]), source)
    elif name == "dd":
        _copied_by_dd(walk, call)


def _downloaded(walk: Running, targets: list[Arg]) -> None:
    for target in targets:
        if target and target != "-":
            walk.state.write(walk.path(target), unknown([Taint.NETWORK]))


def _curl_targets(arguments: Sequence[Arg]) -> list[Arg]:
    found: list[Arg] = []
    urls = [arg for arg in arguments if "/" in arg and arg[:1] != "-"]
    for index, arg in enumerate(arguments):
        if re.fullmatch(r"-[a-zA-Z#]*o|--output", arg) and index + 1 < len(arguments):
            found.append(arguments[index + 1])
        elif arg.startswith("--output="):
            found.append(arg.like(arg.partition("=")[2]))
        elif re.fullmatch(r"-o.+", arg):
            found.append(arg.like(arg[2:]))
        elif re.fullmatch(r"-[a-zA-Z#]*O[a-zA-Z]*|--remote-name|--remote-name-all", arg):
            found += [url.like(_last_part(url)) for url in urls]
    return found


def _wget_targets(arguments: Sequence[Arg]) -> list[Arg]:
    for index, arg in enumerate(arguments):
        if re.fullmatch(r"-[a-zA-Z]*O|--output-document", arg) and index + 1 < len(arguments):
            return [arguments[index + 1]]
        if arg.startswith(("--output-document=", "-O")) and len(arg) > 2:
            return [arg.like(arg.partition("=")[2] if "=" in arg[:20] else arg[2:])]
    directory = next((following for arg, following in itertools.pairwise(arguments) if arg == "-P"), None)
    prefix = f"{directory}/" if directory else ""
    return [
        arg.like(prefix + _last_part(arg))
        for arg in arguments
        if arg[:1] != "-" and "/" in arg and arg is not directory
    ]


def _last_part(url: str) -> str:
    return re.split(r"[?#]", url, maxsplit=1)[0].rstrip("/").rsplit("/", 1)[-1]


def _copied_by_dd(walk: Running, call: Call) -> None:
    target = next((arg.like(arg[3:]) for arg in call.args if arg.startswith("of=")), None)
    source = next((arg.like(arg[3:]) for arg in call.args if arg.startswith("if=")), None)
    content = call.stdin if source is None else walk.known_file(source)
    if target is not None and content is not None:
        walk.state.write(walk.path(target), content)
