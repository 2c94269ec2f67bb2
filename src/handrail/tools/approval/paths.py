"""What kind of place a path is, judged from its text alone: nothing is looked up on a disk.

A path is normalised to one of three forms: absolute, `~` for the user's home and below, or relative to the project.
`place` gives its classes (a path can have several) and `reach` how far an action there goes.
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase, translate

from .assessment import Reach
from .shell.values import UNKNOWN

Classes = frozenset[str]
CLASSES: dict[str, str] = {
    "root": "the whole file system",
    "home-root": "a whole home directory, or all of them",
    "system-root": "a whole directory of the system",
    "system": "below a directory of the system",
    "config": "the system's configuration, programs and libraries",
    "kernel": "switches of the running kernel",
    "device": "a disk or other block device",
    "log": "the system's logs",
    "home": "in a home directory",
    "credential": "a known file of keys, passwords or tokens",
    "credential-name": "named like a file of keys or secrets",
    "startup": "what runs at login, at boot or by a clock, and who may log in",
    "history": "the history of a shell or of another prompt",
    "vcs": "inside a repository's own folder",
    "hook": "a program that git runs by itself",
    "own": "Handrail's own configuration and state",
    "data": "named like a database",
    "temp": "below a directory for temporary files",
    "temp-root": "a whole directory of temporary files",
    "outside": "outside the project",
    "project": "in the project",
    "project-root": "the whole project",
    "unknown": "not known before it runs",
}

_SYSTEM_TOP = frozenset(
    "bin boot dev etc lib lib32 lib64 libx32 opt proc root run sbin srv sys usr var home mnt media nix snap "
    "System Library Applications Users Volumes private".split()
)
# Below the top: as bad to lose as a directory of the top.
_SYSTEM_ROOTS = frozenset(
    "/usr/bin /usr/sbin /usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/share /usr/local /usr/include /var/lib /var/spool "
    "/var/log /var/run /lib/modules /boot/efi /boot/grub /etc/systemd /lib/systemd /usr/lib/systemd /System/Library "
    "/private/etc /private/var /var/lib/dpkg /etc/ssh /etc/pam.d".split()
)
_TEMP = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")
_CONFIG = re.compile(r"/(?:etc|boot|bin|sbin|lib\w*|usr(?!/local(?:/|$)|/src(?:/|$))|System|Library|private/etc)(?:/|$)")
_STARTUP_DIRS = (
    "/etc/profile /etc/bash.bashrc /etc/bashrc /etc/zsh /etc/environment /etc/cron /etc/anacrontab /etc/at. /etc/rc /etc/init /etc/systemd "
    "/lib/systemd /usr/lib/systemd /run/systemd/system /usr/local/lib/systemd /var/spool/cron /var/spool/at /etc/ld.so.preload /etc/pam.d "
    "/etc/xdg/autostart /etc/X11/Xsession /etc/update-motd.d /etc/udev/rules.d /etc/NetworkManager/dispatcher.d "
    "/etc/network/if- /etc/modules /etc/ld.so.conf /etc/sudoers /etc/doas.conf /Library/LaunchAgents /Library/LaunchDaemons "
    "/Library/StartupItems /etc/apt/apt.conf.d /etc/logrotate.d /etc/inittab /etc/local.d"
).split()
_CREDENTIALS = (
    "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d/* /etc/master.passwd /etc/security/opasswd "
    "/etc/ssh/ssh_host_*_key /etc/krb5.keytab /etc/ppp/*-secrets /etc/wireguard/*.conf /etc/NetworkManager/system-connections/* "
    "/etc/ssl/private/* /etc/letsencrypt/live/*/privkey.pem /etc/kubernetes/admin.conf /etc/rancher/k3s/k3s.yaml "
    "/var/lib/kubelet/config.yaml /var/lib/kubelet/pki/* /etc/kubernetes/pki/* /proc/*/environ /proc/*/mem /var/run/secrets/* /run/secrets/* /etc/shadow.bak /var/backups/shadow* "
    "/var/lib/sss/db/* /etc/pki/tls/private/* ~/.ssh ~/.ssh/id_* ~/.ssh/*.pem ~/.ssh/*_rsa ~/.ssh/*_ed25519 ~/.ssh/*.key ~/.ssh/identity "
    "~/.aws ~/.aws/credentials ~/.aws/cli/cache/* ~/.aws/sso/cache/* ~/.config/gcloud ~/.config/gcloud/* ~/.azure ~/.azure/* ~/.kube ~/.kube/config "
    "~/.docker/config.json ~/.netrc ~/_netrc ~/.pgpass ~/.my.cnf ~/.mylogin.cnf ~/.git-credentials ~/.config/git/credentials ~/.npmrc "
    "~/.yarnrc.yml ~/.pypirc ~/.gnupg ~/.gnupg/* ~/.config/gh ~/.config/gh/hosts.yml ~/.config/glab-cli/config.yml ~/.config/hub ~/.password-store ~/.password-store/* "
    "~/.vault-token ~/.config/rclone/rclone.conf ~/.rclone.conf ~/.cargo/credentials* ~/.gem/credentials ~/.terraformrc ~/.terraform.d/credentials* "
    "~/.mozilla/firefox/*/logins.json ~/.mozilla/firefox/*/key4.db ~/.mozilla/firefox/*/cookies.sqlite ~/.thunderbird/*/logins.json "
    "~/.config/google-chrome/*/Login?Data ~/.config/chromium/*/Login?Data ~/.config/google-chrome/*/Cookies ~/.config/BraveSoftware/*/Login?Data "
    "~/Library/Keychains ~/Library/Keychains/* ~/.local/share/keyrings ~/.local/share/keyrings/* ~/.config/op/* ~/.config/Bitwarden*/* "
    "~/.config/doctl/config.yaml ~/.config/hcloud/cli.toml ~/.config/heroku/* ~/.fly/config.yml ~/.databrickscfg ~/.snowsql/config ~/.oci/config ~/.oci/*.pem "
    "~/.config/configstore/*.json ~/.m2/settings.xml ~/.gradle/gradle.properties ~/.nuget/NuGet/NuGet.Config ~/.config/sops/age/keys.txt "
    "~/.config/age/* ~/.age/* ~/.bitcoin/wallet.dat ~/.ethereum/keystore/* ~/.electrum/wallets/* ~/.config/solana/id.json ~/.s3cfg ~/.boto ~/.passwd-s3fs "
    "~/.Xauthority ~/.ICEauthority ~/.config/anthropic/* ~/.config/openai/* ~/.huggingface/token ~/.cache/huggingface/token ~/.kaggle/kaggle.json ~/.smbcredentials"
).split()
_CREDENTIAL_NAMES = (
    "id_rsa id_dsa id_ecdsa id_ed25519 .env .env.* *.env *.pem *.keytab *.kdbx *.p12 *.pfx *.jks credentials.json service-account*.json "
    "serviceaccount*.json .netrc .pgpass .git-credentials .htpasswd secrets.yml secrets.yaml secrets.json master.key kubeconfig"
).split()
_HARMLESS_NAMES = re.compile(r"\.env\.(example|sample|template|dist|test|ci)|cacert\.pem|cert\.pem|.*\bpub(lic)?\b.*\.pem|fullchain\.pem|chain\.pem")
_STARTUP = (
    "~/.bashrc ~/.bash_profile ~/.bash_login ~/.bash_logout ~/.bash_aliases ~/.profile ~/.zshrc ~/.zshenv ~/.zprofile ~/.zlogin ~/.zlogout ~/.kshrc "
    "~/.cshrc ~/.tcshrc ~/.login ~/.config/fish/* ~/.xinitrc ~/.xprofile ~/.xsession ~/.xsessionrc ~/.config/autostart/* ~/.config/systemd/* "
    "~/.local/share/systemd/* ~/Library/LaunchAgents/* ~/.ssh/authorized_keys* ~/.ssh/rc ~/.ssh/config ~/.ssh/environment ~/.gitconfig "
    "~/.config/git/config ~/.vimrc ~/.vim/plugin/* ~/.config/nvim/* ~/.emacs ~/.emacs.d/init.el ~/.pam_environment ~/.inputrc ~/.forward ~/.procmailrc "
    "~/.pythonrc* ~/.npmrc ~/.config/pip/pip.conf ~/.pip/pip.conf ~/.pypirc ~/.curlrc ~/.wgetrc ~/.gdbinit ~/.lldbinit ~/.tmux.conf ~/.screenrc ~/.config/environment.d/* "
    "~/.config/plasma-workspace/* ~/.config/hypr/* ~/.config/sway/* ~/.config/i3/* ~/.irbrc ~/.Rprofile ~/.local/bin/sudo"
).split()
_HISTORY = (
    "~/.bash_history ~/.zsh_history ~/.zhistory ~/.history ~/.sh_history ~/.ash_history ~/.ksh_history ~/.local/share/fish/fish_history ~/.python_history ~/.node_repl_history "
    "~/.mysql_history ~/.psql_history ~/.sqlite_history ~/.rediscli_history ~/.dbshell ~/.irb_history ~/.lesshst ~/.viminfo ~/.mongosh/mongosh_repl_history"
).split()
_OWN = "~/.config/handrail ~/.config/handrail/* ~/.local/state/handrail ~/.local/state/handrail/* ~/.local/share/handrail ~/.local/share/handrail/* ~/Library/Application?Support/handrail ~/Library/Application?Support/handrail/* */.handrail/config.yaml".split()
_DATA_NAMES = "*.db *.sqlite *.sqlite3 *.db3 *.mdb *.accdb *.duckdb *.rdb *.dbf *.ibd ibdata1 *.myd *.frm *.kdbx *.mdf *.ldf".split()
_BLOCK_DEVICE = re.compile(
    r"/dev/(?:[shv]d[a-zX*?\[{]|xvd|nvme|mmcblk|dm-|md\d|md/|loop|r?disk\d|disk/|mapper/|vg\w*/|sr\d|nbd|zd|zvol/|bcache|drbd|pmem|mtd|"
    r"mem$|kmem|port$|ada\d|da\d|root$|[*?]|s[*?]|sg\d|cciss/|rbd|\ue000)"
)
_HARMLESS_DEVICE = re.compile(
    r"/dev/(?:null|zero|full|tty|stdout|stderr|stdin|fd|u?random|pts|ptmx|shm|console|tcp|udp|dsp|audio|usb|input|video|snd|serial|ttyS|kvm|net)"
)
_HOME = re.compile(r"(?:/home/[^/]+|/Users/[^/]+|/root|/var/root)(/.*)?$")
_WILD = re.compile(r"[*?\[\ue000]")
_TOP_GLOB = re.compile(r"/[^/]*[*?\[][^/]*")
_LONGEST = 4096


def normalise(path: str, cwd: str = ".", project: str = "") -> str:
    """Join to the working directory and fold `.` and `..`. `~` stays as it is; below `project` it becomes relative."""
    if path.startswith("file:/"):
        path = path[5:]
    if path[:1] not in ("/", "~"):
        path = f"{cwd.rstrip('/') or '/'}/{path}" if path else cwd
    if path[:1] == "~" and path[1:2] in ("", "/"):
        below = posixpath.normpath("/" + path[2:])
        climbs = re.match(r"~/+\.\.(?:/|$)", path)
        return "/home" if climbs else "~" if below == "/" else "~" + below
    path = posixpath.normpath(path)
    if path.startswith("//"):
        path = path[1:]
    if project and project not in ("/", "~") and not _HOME_ITSELF.fullmatch(project):
        if path == project:
            return "."
        if path.startswith(project + "/"):
            return path[len(project) + 1 :]
        if path.startswith("..") and project:
            return posixpath.normpath(f"{project}/{path}")
    return path


_HOME_ITSELF = re.compile(r"/home/[^/]+|/Users/[^/]+|/root")


def classes(path: str, cwd: str = ".", project: str = "") -> Classes:
    """Every class of one path argument."""
    if len(path) >= _LONGEST:
        return frozenset(("unknown", "outside") if path[:1] in ("/", "~") else ("project",))
    return _classes(str(path), cwd, project, _own_folders())


def reach(path: str, cwd: str = ".", project: str = "") -> Reach:
    """How far an action on this path goes."""
    kinds = classes(path, cwd, project)
    if "unknown" in kinds:
        return Reach.UNKNOWN
    if _HARMLESS_DEVICE.match(path):
        return Reach.NOWHERE
    if kinds & {"root", "system", "system-root", "device", "kernel", "config"}:
        return Reach.SYSTEM
    if kinds & {"home", "home-root"}:
        return Reach.HOME
    if "outside" in kinds:
        return Reach.OUTSIDE
    return Reach.TEMP if "temp" in kinds else Reach.PROJECT


def widest(paths: Iterable[str], cwd: str = ".", project: str = "") -> Reach:
    return max((reach(path, cwd, project) for path in paths), default=Reach.NOWHERE)


@functools.cache
def _own_folders() -> tuple[str, ...]:
    """Where Handrail keeps its settings and its state, when the environment moves them: it is read once a process."""
    home = os.environ.get("HANDRAIL_HOME")
    folders = (home,) if home else ()
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        if base := os.environ.get(variable):
            folders = (*folders, f"{base.rstrip('/')}/handrail")
    return folders


@functools.lru_cache(8192)
def _classes(path: str, cwd: str, project: str, own: tuple[str, ...]) -> Classes:
    if path.startswith(UNKNOWN):
        return frozenset(("unknown", *_by_name(path)))
    absolute = normalise(path, cwd)
    path = normalise(path, cwd, project)
    if any(f"{absolute if absolute[0] in '/~' else f'{project}/{path}'}/".startswith(f"{folder.rstrip('/')}/") for folder in own):
        return frozenset(("own", "home"))
    if path.startswith(UNKNOWN):
        return frozenset(("unknown", *_by_name(path)))
    home = _HOME.match(path)
    as_home = "~" + (home[1] or "") if home else path
    found = {*_by_name(path)}
    if as_home.startswith("~"):
        found |= _in_home(as_home)
    if path.startswith("/"):
        found |= _absolute(path, in_home=home is not None)
    if path.startswith(".."):
        found.add("outside")
    if as_home[0] in "/~":
        found |= _protected(as_home, path)
    elif path in (".", "*", "./*", ".*", "./"):
        found.add("project-root")
    if not found - {"vcs", "hook", "credential-name", "data", "project-root", "own"}:
        found.add("project")
    return frozenset(found)


def _in_home(path: str) -> set[str]:
    found = {"home"}
    if path == "~" or (path.count("/") == 1 and re.fullmatch(r"~/\.?[*?\[][^/]*", path)):
        found.add("home-root")
    return found


def _absolute(path: str, *, in_home: bool) -> set[str]:
    if path in _TEMP or (path.endswith("/*") and path[:-2] in _TEMP):
        return {"temp", "temp-root"}
    if path.startswith(tuple(f"{folder}/" for folder in _TEMP)):
        return {"temp"}
    if path == "/" or _TOP_GLOB.fullmatch(path):
        return {"root", "system"}
    found = set()
    top, _, rest = path[1:].partition("/")
    if top in _SYSTEM_TOP:
        bare = path[:-2] if path.endswith(("/*", "/.")) else path
        whole = bare.count("/") == 1 or bare in _SYSTEM_ROOTS
        if whole and top in ("home", "Users", "root"):
            found |= {"home-root", "home"}
        elif whole:
            found.add("system-root")
        if not in_home:
            found.add("system")
    elif path[1:2] == UNKNOWN:
        found |= {"unknown", "system"}
    else:
        found.add("outside")
    if top == "home" and rest in ("", "*"):
        found |= {"home-root", "home"}
    if top == "dev" and not _HARMLESS_DEVICE.match(path) and _BLOCK_DEVICE.match(path):
        found.add("device")
    if _CONFIG.match(path):
        found.add("config")
    if path.startswith(("/proc/sys", "/sys/")):
        found.add("kernel")
    if path.startswith(("/var/log", "/var/adm", "/var/account")) and "system-root" not in found:
        found.add("log")
    return found


def _protected(as_home: str, path: str) -> set[str]:
    found = set()
    public = as_home.endswith((".pub", "known_hosts", ".ssh/config", "authorized_keys"))
    if not public and could_be(as_home, tuple(_CREDENTIALS)):
        found.add("credential")
    if path.startswith(tuple(_STARTUP_DIRS)) or could_be(as_home, tuple(_STARTUP)) or f"{as_home}/*" in _STARTUP:
        found.add("startup")
    if could_be(as_home, tuple(_HISTORY)):
        found.add("history")
    if could_be(as_home, tuple(_OWN)):
        found.add("own")
    return found


def _by_name(path: str) -> set[str]:
    name = posixpath.basename(path)
    found = set()
    if "/.git/" in f"/{path}/":
        found.add("vcs")
        if "/.git/hooks" in f"/{path}":
            found.add("hook")
    if _compiled(tuple(_CREDENTIAL_NAMES)).match(name) and not _HARMLESS_NAMES.fullmatch(name):
        found.add("credential-name")
    if _compiled(tuple(_DATA_NAMES)).match(name):
        found.add("data")
    if name == "config.yaml" and path.endswith(".handrail/config.yaml"):
        found.add("own")
    return found


@functools.cache
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))


def could_be(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path, which may have wildcards or unknown parts itself, can be one of the protected ones.

    A wild last part counts only when it says something: `/etc/shado?` can be `/etc/shadow`, `/etc/*` is just a listing.
    """
    if UNKNOWN in path:
        path = path.replace(UNKNOWN, "*")
    if _compiled(patterns).match(path):
        return True
    if not _WILD.search(path) or len(re.sub(r"\[[^]]*\]|[*?]", "", posixpath.basename(path))) < 2:
        return False
    depth = path.count("/")
    return any(fnmatchcase(pattern.replace("*", "x"), path) for pattern in patterns if pattern.count("/") == depth)
