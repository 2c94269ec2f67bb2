"""Where a program's output comes from, as far as that is known without running it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..programs.env_script_printers import ENV_SCRIPT_PRINTERS, prints_env_script
from ..programs.secret_names import secret_taints
from ..values.word_values import UNKNOWN, Arg, Taint, Taints, Value, unknown
from .walk import Call, Walk

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
_SECRET_FILES = frozenset(("credential", "credential-name"))
_NOTHING: Taints = frozenset()
_DUMPERS = frozenset(
    "pg_dump pg_dumpall mysqldump mariadb-dump mongodump mongoexport cockroach influxd neo4j-admin sqldump expdp "
    "slapcat ldapsearch".split()
)
_DUMPING = {
    "etcdctl": frozenset(("--prefix", "snapshot", "--from-key")),
    "redis-cli": frozenset(("--rdb",)),
    "consul": frozenset(("export", "snapshot")),
    "sqlite3": frozenset((".dump",)),
}
"""Programs that print a whole store when one of these words is among their arguments."""
_SURVEILLANCE = frozenset(
    "arecord parecord xclip xsel wl-paste pbpaste screencapture scrot grim tcpdump tshark".split()
)
_ARCHIVERS = frozenset(("tar", "zip", "cpio", "7z", "rsync"))
_ENVIRONMENT = frozenset(("env", "printenv", "set", "export", "declare"))
_FINDERS = frozenset(("find", "fd", "fdfind", "locate", "ls"))
_WITH_PROVENANCE = frozenset(
    (
        "openssl", "history", "yes", "seq", *_NETWORK, *_STORAGE, *_READERS, *_SECRET_STORES, *_LISTERS, *_ARCHIVERS,
        *_ENVIRONMENT, *_FINDERS, *_DUMPERS, *_DUMPING, *_SURVEILLANCE, *ENV_SCRIPT_PRINTERS,
    )
)  # fmt: skip
"""Programs about whose output something is known."""
_ENDLESS_TOO = frozenset(
    "yes seq cat tac base64 base32 basenc xxd od hexdump tr tee gzip xz bzip2 zstd pv rev fold sponge".split()
)
"""Programs that go on as long as their input does, and print it in another form."""
_HUGE = re.compile(r"\d{12}|\d{3,}\s*[gG]|\d\s*[tTpPeE]")
_ALWAYS = {"yes": Taint.ENDLESS, "seq": Taint.ENDLESS, **dict.fromkeys(_LISTERS, Taint.WIDE)}


def unknown_output(walk: Walk, call: Call) -> Value:
    """What a program prints that is not computed: unknown, but its sources may be known."""
    name, args = call.name, call.args
    if name not in _WITH_PROVENANCE:
        return Value(UNKNOWN, call.stdin.taints - {Taint.ENDLESS}) if call.stdin is not None else Value(UNKNOWN)
    taints: set[Taint] = set(call.stdin.taints) if call.stdin is not None else set()
    if name in _NETWORK or (name == "openssl" and "s_client" in args):
        taints.add(Taint.NETWORK)
    if name in _STORAGE and not _FETCHING.isdisjoint(args):
        taints.add(Taint.NETWORK)
    if name in _READERS:
        for arg in args:
            if arg.taints:
                taints |= arg.taints
            if arg[:1] != "-":
                taints |= _read_taints(walk, arg)
    if _shows_private(name, args):
        taints.add(Taint.PRIVATE)
    if _shows_secrets(walk, name, args):
        taints.add(Taint.CREDENTIAL)
    if name in _ALWAYS and (name != "seq" or any(_HUGE.search(arg) or arg[:3] == "inf" for arg in args)):
        taints.add(_ALWAYS[name])
    if prints_env_script(name, args):
        taints.add(Taint.ENV_SCRIPT)
    return unknown(taints - {Taint.ENDLESS} if ends(name, args) else taints)


def ends(name: str, args: Sequence[Arg]) -> bool:
    """Whether a program stops reading by itself."""
    if name == "head":
        return not any(_HUGE.search(arg) for arg in args)
    if name == "dd":
        return any(arg.startswith("count=") for arg in args)
    return name not in _ENDLESS_TOO


def _read_taints(walk: Walk, arg: Arg) -> Taints:
    if not arg:
        return _NOTHING
    known = walk.known_file(arg)
    if known is not None:
        return known.taints
    return walk.file_taints(arg.removeprefix("if="))


def _shows_private(name: str, args: Sequence[Arg]) -> bool:
    if name in _DUMPING:
        return not _DUMPING[name].isdisjoint(args)
    return name in _DUMPERS or name in _SURVEILLANCE or (name == "printenv" and any(map(secret_taints, args)))


def _shows_secrets(walk: Walk, name: str, arguments: Sequence[Arg]) -> bool:
    if name in _ENVIRONMENT:
        return all(arg[:1] == "-" and "f" not in arg.lower() for arg in arguments)
    if name in _SECRET_STORES or name == "history":
        return True
    if name in _ARCHIVERS:
        roots = [arg for arg in arguments if arg[:1] in ("~", "/")]
        return any(not walk.classes(arg).isdisjoint(("home-root", "root", "system-root")) for arg in roots)
    if name in _FINDERS:
        return any(not walk.classes(arg).isdisjoint(_SECRET_FILES) for arg in arguments if arg[:1] != "-")
    return False
