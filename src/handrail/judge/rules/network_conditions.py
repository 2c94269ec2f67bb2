"""Conditions on what comes from the network, goes there, or opens a way in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..programs.secret_names import secret_taints
from ..values import paths
from ..values.data_files import lazy_pattern
from ..values.word_values import UNKNOWN, Arg, Taint
from .command import Command
from .targets import read

_URL = lazy_pattern(r"(?i)(?:https?|ftps?|s3|gs|oci)://|\\\\\w")
_INDEX_OPTIONS = tuple(
    "--index-url -i --extra-index-url --find-links -f --source -s --registry --default-index --index --trusted-host".split()
)
_KNOWN_INDEX = lazy_pattern(
    r"(?i)https?://(?:[\w.-]*\.)?(?:pypi\.org|pythonhosted\.org|npmjs\.org|npmjs\.com|yarnpkg\.com|"
    r"rubygems\.org|pytorch\.org|jsr\.io|github\.com|nvidia\.com|googleapis\.com|tuna\.tsinghua\.edu\.cn|ustc\.edu\.cn|"
    r"mirrors\.aliyun\.com|npmmirror\.com|taobao\.org|tencentyun\.com|cloud\.tencent\.com|huaweicloud\.com|ruby-china\.com|"
    r"bfsu\.edu\.cn|sjtug?\.edu\.cn|douban\.com|163\.com|crates\.io|rsproxy\.cn|golang\.org|goproxy\.io|goproxy\.cn|"
    r"anaconda\.org|anaconda\.com|conda-forge\.org|tensorflow\.org|jax\.dev|openmmlab\.com|pyg\.org|paddlepaddle\.org\.cn|"
    r"packagist\.org|maven\.org|maven\.apache\.org|hex\.pm|r-project\.org|posit\.co)(?:/|$|,)"
    r"|https?://(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/]|$)"
)
_INDEX_OPTION = lazy_pattern(r"-(?:.*(?:index|registry|proxy|mirror|repo|links|source|url|channel).*)$")
_INSTALLING = ("-i", "-U", "--install", "--from", "-jar", "-cp")
_STORE_COMMAND = lazy_pattern(
    r"(?im)(?:^|\\n)\s*(?:flushall|flushdb|flush_all|shutdown|config set|debug segfault|slaveof|kill)\b"
)
_SOCKET = lazy_pattern(
    r"(?i)\bsocket\b|TCPServer|TCPSocket|createServer|net\.connect|createConnection|IO::Socket|java\.net\.|fsockopen|ServerSocket|"
    r"ztcp|spawn\s+(?:nc|ncat|telnet)\b|/inet/tcp|Sockets\b"
)
_RUNS_SHELL = lazy_pattern(
    r"(?i)[\"'`/\s](?:ba|z|da|k)?sh[\"'`\s,)\]]|pty\.spawn|ProcessBuilder|system\s*\(?\s*\$_|exec\s+(?:ba)?sh|spawn\s+(?:ba)?sh|cmd\.exe|"
    r"io\.popen|getRuntime"
)
_METHODS = ("-X", "--request", "--method")
_DELETING_URL = lazy_pattern(
    r"(?i)_delete_by_query|/_close\b|/_freeze\b|/_all\b.*-x|flushall|/shutdown\b|/_cluster/reroute|/delete(?:all)?(?:[/?]|"
    r"$)|/_shutdown|/actuator/(?:shutdown|restart)|query=\W*(?:drop|truncate|delete)\b"
)
_SECRET_WORDS = lazy_pattern(r"(?i)passw|secret|api.?key|access.?key|token|private.key|AKIA|credential|BEGIN ")
_LOGIN_OPTIONS = frozenset(
    "-H --header -u --user -U --proxy-user --oauth2-bearer -b --cookie --pass -a --auth --password --http-password "
    "--ftp-password --proxy-password -K --config".split()
)
_LOGIN_FIELD = lazy_pattern(
    rf"(?i)(?:pass|secret|token|key|auth|credential|assertion|code)[\w-]*[\"']?\s*[=:]+\s*[\"']?{UNKNOWN}"
)
_HEADER = lazy_pattern(r"[\w-]+\s*:")
_LOGIN_HEADER = lazy_pattern(
    r"(?i)(?:proxy-)?authorization|[\w-]*(?:token|key|auth|cookie|session|secret|credential)[\w-]*\s*:"
)
_USER_OF_URL = lazy_pattern(rf"//[^/@]*{UNKNOWN}[^/@]*@")
_SECRET_CLASSES = frozenset(("credential", "credential-name", "history"))
_BROAD = frozenset(("home-root", "root", "system-root", "home"))
# Options whose value names a key or a certificate that is used, not sent.
_KEY_OPTIONS = frozenset(
    "-i -F -e -E -K -b -c -o -O -S --cert --key --cacert --capath --output --netrc-file --config "
    "--identity --output-document --ca-certificate "
    "--certificate --private-key --cookie-jar --password-file --ssh-key --key-file --exclude "
    "--exclude-from --kubeconfig --env-file -out -CAfile -P -J".split()
)
_SENT_BY = {"curl": frozenset(("-F",)), "wget": frozenset(("-i",)), "http": frozenset(("-F",))}
_SCRIPTED = frozenset(("ftp", "sftp", "lftp", "smbclient", "tftp"))
_UPLOADERS = frozenset(("curl", "wget", "netcat", "http", "socat"))
_COPIERS = frozenset("scp rsync sftp rclone aws gsutil gcloud s3cmd s5cmd mc azcopy b2".split())
_ELSEWHERE = lazy_pattern(r"[\w.@-]+:|\w+://")
_ONLY_BY_STDIN = frozenset("ssh sftp openssl gh glab git ping".split())
_HOST_PATHS = lazy_pattern(
    r"/|/(?:etc|root|proc|sys|home|dev|boot|usr|var|bin|sbin|lib)/?|/var/run/docker\.sock|"
    r"/run/docker\.sock|/run/containerd/?.*|/var/lib/docker/?|/var/run/?|/run/?|~|/home/[^/]+/?|"
    r"\$HOME|/Users(?:/[^/]+)?/?|/root/\.ssh|~/\.(?:ssh|aws|kube|docker)/?.*|/etc/.*|/var/lib/?"
)


def url(command: Command, _: str) -> bool:
    """An operand is an address. (`git+https` is not: package managers check what they clone.)"""
    settings = {
        value for option, value in zip(command.args, command.args[1:], strict=False) if _INDEX_OPTION.match(option)
    }
    if any(_URL.match(operand) and operand not in settings for operand in command.operands):
        return True
    installing = ("-U", "--install", "--from", "-jar", "-cp") if command.name == "pip" else _INSTALLING
    return any(_URL.match(value) for option, value in command.values if option in installing)


def untrusted_index(command: Command, _: str) -> bool:
    """Packages are taken from an index that is not the usual one."""
    args = command.args
    values = [
        *command.given(*_INDEX_OPTIONS),
        *(args[place + 1] for place, arg in enumerate(args[:-1]) if arg in _INDEX_OPTIONS),
    ]
    return any(_URL.match(value) and not _KNOWN_INDEX.match(value) for value in values)


def untrusted_setting(command: Command, _: str) -> bool:
    """A setting after which packages come from an index that is not the usual one."""
    values = [operand.partition("=")[2] or operand for operand in command.operands]
    return any(_URL.match(value) and not _KNOWN_INDEX.match(value) for value in values)


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
    return any(
        re.fullmatch(r"-[a-zA-Z]*[ec]", arg) and (command.program != "nc" or arg[-1] in "ec") for arg in command.args
    ) or command.has(("--exec", "--sh-exec", "--lua-exec"))


def _method_values(command: Command) -> Iterator[str]:
    args = command.args
    yield from command.given(*_METHODS)
    for place, arg in enumerate(args):
        if arg in _METHODS and place + 1 < len(args):
            yield args[place + 1]
        elif arg.startswith("-X") and len(arg) > 2:
            yield arg[2:].lstrip("=")


def method(command: Command, parameter: str) -> bool:
    """The request's method."""
    return any(value.strip("'\"").lower() == parameter for value in _method_values(command))


def deleting_url(command: Command, _: str) -> bool:
    """An address that is known to delete or shut down on a POST."""
    posts = (
        any("query=" in operand for operand in command.operands)
        or method(command, "post")
        or command.has(("-d", "--data*", "--json"))
        or command.operands[:1] == ["POST"]
    )
    return posts and any(_DELETING_URL.search(operand) for operand in command.operands)


def searches_secrets(command: Command, _: str) -> bool:
    """A search for passwords or keys through a home directory or the whole system."""
    if not any(_SECRET_WORDS.search(arg) for arg in command.args):
        return False
    roots = [operand for operand in command.operands if not command.classes(operand).isdisjoint(_BROAD)]
    wide = command.has(("-r", "-R", "--recursive", "--dereference-recursive")) or command.name in (
        "rg",
        "ag",
        "ack",
        "ugrep",
    )
    return bool(roots) and wide


def reads_found_secret(command: Command, _: str) -> bool:
    """Reads files that were found by a name like that of a key."""
    return any(arg.taints for arg in command.args) and any(
        Taint.WIDE in path.taints and ("credential-name" in command.classes(path) or Taint.CREDENTIAL in path.taints)
        for path in read(command)
    )


def sends_secret(command: Command, _: str) -> bool:
    """A credential, by its path or by where its text came from, goes out."""
    name = command.name
    if command.stdin is not None and Taint.CREDENTIAL in command.stdin.taints and name not in ("git", "gh", "openssl"):
        return True
    if command.stdin is not None and Taint.CREDENTIAL in command.stdin.taints and name in ("gh", "openssl"):
        return any(arg in ("gist", "s_client") for arg in command.args)
    if any(Taint.CREDENTIAL in arg.taints for arg in command.args) and name not in ("ssh", "git"):
        return not _credential_is_header(command)
    if name in _SCRIPTED:
        scripts = [arg for arg in command.args if " " in arg] + (
            [command.stdin.text] if command.stdin is not None else []
        )
        if any(_secret_paths(command, [Arg(word.rstrip(";")) for word in script.split()]) for script in scripts):
            return True
    if name in _ONLY_BY_STDIN:
        return (
            name in ("gh", "glab")
            and command.operands[:2] == ["gist", "create"]
            and _secret_paths(command, command.operands[2:])
        )
    return _secret_paths(command, _sent(command)) or _copies_everything(command)


def _copies_everything(command: Command) -> bool:
    """A whole home, or the settings of the system with all their keys, is copied to another machine."""
    *sources, target = command.operands or [Arg("")]
    return (
        command.name in _COPIERS
        and _ELSEWHERE.match(target) is not None
        and any(
            paths.normalise(source, command.cwd) in ("/", "~", "/etc", "/root", "/home")
            for source in sources
            if not _ELSEWHERE.match(source)
        )
    )


def sends_private(command: Command, _: str) -> bool:
    """A secret of the environment, the list of users or a database's content goes out, not to log in with it."""
    stdin = command.stdin
    if stdin is not None and Taint.PRIVATE in stdin.taints:
        reads = command.name not in ("curl", "wget") or any(
            arg.endswith(("@-", "=-")) or arg == "-" for arg in command.args
        )
        if reads:
            return True
    if command.name in _UPLOADERS and any(
        (made := command.file(piece)) is not None and Taint.PRIVATE in made.taints for piece in _sent(command)
    ):
        return True
    before = Arg("")
    for arg in command.args:
        if Taint.PRIVATE in arg.taints and before not in _LOGIN_OPTIONS and arg.partition("=")[0] not in _LOGIN_OPTIONS:
            in_url = "://" in arg or "/" in arg
            if not (_USER_OF_URL.search(arg) if in_url else _LOGIN_FIELD.search(arg)):
                return True
        before = arg
    return False


def in_broad_directory(command: Command, _: str) -> bool:
    return not command.has(("-d", "--directory")) and not command.classes(command.cwd).isdisjoint(
        ("root", "home-root", "system-root")
    )


def serves_secrets(command: Command, _: str) -> bool:
    """A directory that is offered to the network holds keys, or is a whole home or system."""
    given = [*command.given("-t", "-d", "--directory", "--docroot"), *command.operands, *command.args]
    return any(
        arg[:1] in ("/", "~")
        and not command.classes(arg).isdisjoint(("root", "home-root", "system-root", "credential"))
        for arg in given
    )


def says_to_store(command: Command, _: str) -> bool:
    """Words that empty or stop a store are sent to it over a bare connection."""
    return command.stdin is not None and _STORE_COMMAND.search(command.stdin.text) is not None


def names_secret(command: Command, _: str) -> bool:
    """An operand is the name of a variable that holds a secret."""
    return any(secret_taints(operand) for operand in command.operands)


def _credential_is_header(command: Command) -> bool:
    """A token used to log in: it is in a header or the user name, not in the body."""
    tainted = [arg for arg in command.args if Taint.CREDENTIAL in arg.taints]
    if any(
        _HEADER.match(value) and not _LOGIN_HEADER.match(value)
        for value in command.given("-H", "--header")
        if value in tainted
    ):
        return False
    logins = [
        value
        for option, value in command.values
        if option in ("-H", "--header", "-u", "--user", "-a", "--auth", "--oauth2-bearer", "-A")
    ]
    return all(any(arg == value or arg.endswith(value) for value in logins) for arg in tainted)


def _sent(command: Command) -> Iterator[Arg]:
    args = command.args
    pieces = r"[@=<;,:]" if command.name == "socat" else r"[@=<;,]"
    keys = _KEY_OPTIONS - _SENT_BY.get(command.name, frozenset())
    for place, arg in enumerate(args):
        before = args[place - 1] if place else ""
        if before in keys or (arg[:1] == "-" and "=" not in arg and "@" not in arg):
            continue
        if arg.partition("=")[0] in keys:
            continue
        yield from (Arg(piece) for piece in re.split(pieces, arg) if piece) if re.search(pieces, arg) else (arg,)


def _secret_paths(command: Command, sent: Iterator[Arg] | list[Arg]) -> bool:
    for piece in sent:
        if piece.startswith(("http:", "https:", "-")) or len(piece) > 400 or piece.endswith(".pub"):
            continue
        kinds = command.classes(piece)
        made = command.file(piece)
        if made is not None and Taint.CREDENTIAL in made.taints:
            return True
        if (
            not kinds.isdisjoint(_SECRET_CLASSES)
            or piece in ("/etc/passwd", "/etc/group")
            or (command.name in _UPLOADERS and "config" in kinds)
        ):
            return True
    return False


def socket_shell(command: Command, _: str) -> bool:
    """A program given as text connects to the network, or listens, and runs a shell."""
    texts = [arg for arg in command.args if len(arg) > 20]
    if command.stdin is not None and command.stdin.known:
        texts.append(Arg(command.stdin.text[:20_000]))
    return any(_SOCKET.search(text) and _RUNS_SHELL.search(text) for text in texts)


def mounts_host(command: Command, _: str) -> bool:
    """A folder that gives access to the whole machine is mounted."""
    for place, arg in enumerate(command.args):
        value = arg.partition("=")[2] if arg.startswith(("-v=", "--volume=", "--mount=", "--bind=", "-B=")) else ""
        if arg in ("-v", "--volume", "--mount", "-B", "--bind") and place + 1 < len(command.args):
            value = command.args[place + 1]
        elif arg.startswith(("-v/", "-v~")):
            value = arg[2:]
        source = re.search(r"(?:src|source)=([^,]+)", value)
        path = source[1] if source else value.partition(":")[0]
        if path and ":" in value + ("::" if source else "") and _HOST_PATHS.fullmatch(path):
            return True
    return False


def host_namespace(command: Command, _: str) -> bool:
    return any(
        re.fullmatch(
            r"--(?:pid|userns|ipc|uts|cgroupns)=host|--cap-add=(?:ALL|SYS_ADMIN|SYS_PTRACE|SYS_MODULE|"
            r"DAC_READ_SEARCH|CAP_SYS_ADMIN)|--security-opt=(?:apparmor|seccomp)[:=]unconfined|"
            r"--device=/dev/(?:sd|nvme|mem|vd).*",
            arg,
        )
        for arg in (*command.args, *(f"{option}={value}" for option, value in command.values))
    )


CONDITIONS: dict[str, Callable[[Command, str], bool]] = {
    "socket-shell": socket_shell,
    "url": url,
    "untrusted-index": untrusted_index,
    "untrusted-setting": untrusted_setting,
    "downloaded": downloaded,
    "stdin-network": stdin_network,
    "netcat-runs": netcat_runs,
    "method": method,
    "deleting-url": deleting_url,
    "searches-secrets": searches_secrets,
    "reads-found-secret": reads_found_secret,
    "sends-secret": sends_secret,
    "sends-private": sends_private,
    "names-secret": names_secret,
    "says-to-store": says_to_store,
    "in-broad-directory": in_broad_directory,
    "serves-secrets": serves_secrets,
    "mounts-host": mounts_host,
    "host-namespace": host_namespace,
}
