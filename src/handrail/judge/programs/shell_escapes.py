"""Which programs let their user open a shell: started with the rights of root, that is a root shell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..values.data_files import lazy_pattern

_RAISERS = frozenset("sudo doas pkexec run0 please su setpriv systemd-run dzdo".split())
_EDITORS = frozenset(
    "ed emacs ex hx jed joe kak mc mcedit mg micro nano ne neovim nnn nvim pico pg ranger red rvim rview vi vifm view vim".split()
)
_PROMPTS = frozenset(
    "cpan crash dc ftp gdb lftp lldb mail mailx pry ghci gnuplot jjs jshell sftp smbclient telnet".split()
)
_BATCH = frozenset("-batch --batch --batch-silent -x --help --version -version -V -h".split())
_MULTIPLEXERS = frozenset("byobu dtach script screen tmux zellij".split())
_NO_SHELL = frozenset(
    "-ls -list -wipe -v -V --version --help -h -X -c --command ls list-sessions list-windows list-panes list-keys kill-session "
    "kill-server has-session info source-file show-options set-option send-keys capture-pane delete-session".split()
)
_SHELL_PATH = lazy_pattern(r"/(?:usr/(?:local/)?)?bin/(?:ba|da|z|k|mk|a|c|tc|fi)?sh")
_ABOUT_FILES = frozenset(
    "ls stat file which whereis cat cp mv ln readlink realpath test [ dpkg rpm dnf pacman apt md5sum sha1sum sha256sum "
    "ldd du grep find chmod chown chsh useradd usermod adduser getcap setcap cmp diff tee echo printf strings objdump "
    "restorecon chcon getfattr lsattr chattr update-alternatives install tar rsync scp aa-status".split()
)


def raised(under: Iterable[str]) -> bool:
    """Whether one of the programs that it was started through changes the rights."""
    return not _RAISERS.isdisjoint(under)


def opens_root_shell(under: Sequence[str], name: str, args: Sequence[str], *, followed: bool) -> bool:
    """Whether this program, started through the others and reading the terminal, lets its user open a root shell.

    `followed`: what it runs in turn has been judged already.
    """
    if not raised(under):
        return False
    if name in _MULTIPLEXERS:
        return _NO_SHELL.isdisjoint(args) and not (name == "tmux" and len(args) > 1 and " " in args[-1])
    if name in _EDITORS:
        return not only_describes_itself(args)
    if name in _PROMPTS:
        return _BATCH.isdisjoint(args)
    return not followed and name not in _ABOUT_FILES and any(_SHELL_PATH.fullmatch(arg) for arg in args)


def only_describes_itself(args: Sequence[str]) -> bool:
    """Whether it is asked for its version or help."""
    return bool(args) and args[0] in ("--version", "-version", "-V", "-v", "--help", "-h")
