"""History and logs: erasing what was done."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "history.clear",
        ASK,
        "erases the history of commands, or logs",
        uses=(
            "history -c|-d|--delete|--clear",
            "history clear",
            "history -w +",
            "history {first:clear|delete|clear-session}",
            "fc -W|-p|-P",
            "set {any:+o} {any:history}",
            "shopt -u {any:history|histappend|cmdhist}",
            "unset HISTFILE|HISTSIZE|HISTFILESIZE|SAVEHIST",
            "unset {any:HISTFILE|HISTSIZE|HISTFILESIZE}",
            "journalctl --vacuum-*|--flush|--rotate",
            "dmesg -C|--clear|-c|--read-clear",
            "logrotate -f|--force",
            "lastlog|faillog|lastlog2 -C|--clear|-r|--reset",
            "wevtutil|wevtutil.exe cl|clear-log|sl",
            "Clear-EventLog|Clear-History|Remove-EventLog|Limit-EventLog",
            "auditctl -D",
            "log erase|config",
            "utmpdump -r",
            "atuin history|account|store delete|prune|purge|rebuild",
            "logsave|savelog|sa|accton off",
            "abrt-cli|abrt|coredumpctl rm|remove|clean",
        ),
        match=("history -c", "journalctl --vacuum-size=1K", "unset HISTFILE", "dmesg -C", "set +o history"),
        not_match=("history", "history 20", "journalctl -u x", "dmesg", "set -o pipefail", "unset FOO"),
    ),
    Rule(
        "history.variable",
        ASK,
        "keeps commands out of the history",
        match=("export HISTFILE=/dev/null", "HISTSIZE=0"),
        not_match=("HISTSIZE=10000", "export HISTTIMEFORMAT=%F"),
    ),
    Rule(
        "history.write",
        ASK,
        "overwrites a history or log file",
        uses=("$writers >@history|log",),
        match=("cp /dev/null /var/log/messages", "ln -sf /dev/null ~/.bash_history", "sed -i /x/d /var/log/auth.log"),
        not_match=("cp /var/log/messages x", "sed -n /x/p /var/log/auth.log"),
    ),
    Rule(
        "redirect.history",
        ASK,
        "redirects output to a history or log file",
        match=("> ~/.bash_history", ": > /var/log/auth.log"),
        not_match=("> x", "cat /var/log/auth.log > copy"),
    ),
)
