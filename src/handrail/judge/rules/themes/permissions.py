"""Permissions and ownership: files opened to everybody, set-uid bits, capabilities, whole trees handed over."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "perm.world",
        ASK,
        "opens files to everybody",
        uses=(
            "chmod {mode:world-writable} @*",
            "install|mkdir {mode-option:world-writable} @system|home",
            "setfacl -m|--modify {acl-open}",
            "setfacl -R|--recursive -m|--modify|-x|-b",
            "icacls|cacls {any:/grant*|/reset|/G|/setowner|/remove*|Everyone:*}",
            "umask 0|00|000|0000|u=rwx,g=rwx,o=rwx|a=rwx",
        ),
        match=("chmod -R 777 .", "chmod 666 a", "chmod o+w a", "chmod -R go+rwx x", "setfacl -m o::rw /etc/shadow"),
        not_match=(
            "chmod 644 a",
            "chmod +x a",
            "chmod u+w a",
            "chmod a-w config.ini",
            "chmod g+r data.csv",
            "umask 022",
            "mkdir -m 755 x",
        ),
    ),
    Rule(
        "perm.setuid",
        ASK,
        "makes a program run with its owner's rights, or takes that away",
        uses=(
            "chmod {mode:special} @*",
            "install|cp {mode-option:special}",
            "setcap !-v +",
            "setpriv|capsh --addamb|--inh|--caps",
        ),
        match=(
            "chmod u+s x",
            "chmod 4755 x",
            "chmod g+s,u+s /usr/bin/find",
            "install -m 4755 sh /usr/local/bin/sh2",
            "setcap cap_setuid+ep x",
        ),
        not_match=(
            "chmod 0644 a",
            "chmod 1777 /srv/tmp --dry-run",
            "getcap /usr/bin/ping",
            "setcap -v cap_net_raw+ep x",
        ),
    ),
    Rule(
        "perm.tree",
        ASK,
        "changes the permissions or owners of a whole tree outside the project",
        uses=(
            "chmod|chown|chgrp|chcon -R|--recursive * @system|root|home-root|home|outside|credential|unknown|"
            "system-root",
            "chflags|setfattr|takeown -R|--recursive @system|root|home-root|home|outside",
            "chflags|setfattr|takeown /R @system|root|home-root|home|outside",
            "chattr -R",
            "takeown +",
            "chcon|chsmack|setfattr @config|credential|startup|system-root",
        ),
        match=("chown -R x /home/alice", "chmod -R 700 /etc", "chgrp -R users /etc", "chown root:root -R /home/alice"),
        not_match=("chmod -R u+w build", "chown -R me build", "chmod 755 public"),
    ),
    Rule(
        "perm.protected",
        ASK,
        "changes the permissions of a protected file",
        uses=(
            "chmod !{mode:tightens} @config|credential|device|root|kernel|log",
            "chown|chgrp|setfacl @config|credential|device|root|startup|log",
            "chmod {mode:takes-all} @system|home-root|root",
            "chattr|chflags @config|credential|startup|log +",
        ),
        match=("chmod o+r /etc/shadow", "chown alice /etc/passwd", "chmod 0 /bin/ls", "chown root:root ~/.bashrc"),
        not_match=("chmod 600 ~/.ssh/id_rsa", "chmod 700 ~/.ssh", "chmod go-rwx ~/.aws/credentials", "chown me a.txt"),
    ),
)
