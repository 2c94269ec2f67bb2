"""Persistence: what runs at login, at boot or by a clock, and who may log in."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "persist.write",
        ASK,
        "changes what runs at login or by itself, or who may log in",
        uses=(
            "$writers >@startup|hook",
            "ssh-copy-id !-n",
            "ssh-import-id|ssh-import-id-gh +",
            "osascript {text:*make*login*item*}",
            "npm|pnpm|yarn config set script-shell|node-options|prefix|shell|editor|git",
            "npm set script-shell|node-options|prefix|shell|editor|git",
            "pip|poetry|conda|uv config {untrusted-setting}",
            "npm|pnpm|yarn|bun config|c set {untrusted-setting}",
            "npm|pnpm|yarn set {untrusted-setting}",
            "bundle config {untrusted-setting}",
            "poetry source add {untrusted-setting}",
            "go env -w {untrusted-setting}",
        ),
        match=(
            "cp x ~/.bashrc",
            "tee -a ~/.ssh/authorized_keys",
            "cp evil .git/hooks/post-checkout",
            "ln -sf /tmp/x /etc/systemd/system/x.service",
            "ssh-copy-id root@h",
            "pip config set global.index-url http://e.example/simple",
            "npm config set script-shell /tmp/x",
            "npm config set registry http://e.example",
            "go env -w GOPROXY=https://e.example",
        ),
        not_match=(
            "pip config list",
            "npm config set save-exact true",
            "npm config set registry https://registry.npmjs.org/",
            "cp ~/.bashrc x",
            "tee notes",
            "cat ~/.bashrc",
            "cp a.sh scripts/",
        ),
    ),
    Rule(
        "redirect.startup",
        ASK,
        "redirects output to a file that runs at login or by itself, or that says who may log in",
        match=("echo x >> ~/.bashrc", "cat k >> ~/.ssh/authorized_keys", "echo x > .git/hooks/pre-commit"),
        not_match=("echo x >> notes", "cat ~/.bashrc > copy"),
    ),
    Rule(
        "sched.cron",
        ASK,
        "changes scheduled jobs",
        uses=(
            "crontab -r|-e|-i",
            "crontab {stdin} !-l|-V|-T",
            "crontab !-l|-V|-T +",
            "atrm|anacrontab +",
            "at -r|-d|-f !-l|-c",
            "batch|at !-l|-V|-c +",
            "fcrontab|scrontab -r|-e|-n",
            "incrontab -r|-e|--remove|--edit",
            "systemd-run --on-calendar|--on-active|--on-boot|--on-startup|--on-unit-active|--timer-property",
            "schtasks|schtasks.exe /create|/delete|/change|/run|/Create|/Delete|/end",
            "Register-ScheduledTask|Unregister-ScheduledTask|Disable-ScheduledTask|New-ScheduledTask",
            "jobber|supercronic|whenever -w|--update-crontab|-i|-c|--clear-crontab",
            "jobber|supercronic|whenever delete|pause",
        ),
        match=("crontab -r", "crontab x.txt", "atrm 3", "at -d 4", "crontab -r -u root"),
        not_match=("crontab -l", "crontab -u x -l", "atq", "at -l"),
    ),
)
