"""Unknown programs: a destructive word in the sub-command or option of a program without rules, and protected paths."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "tail.destructive",
        ASK,
        "a destructive sub-command or option of a program without rules of its own",
        uses=(),
        match=(
            "lando-x destroy",
            "pueue-x group delete x",
            "mytool --uninstall",
            "appctl db drop",
            "shopctl module:disable pay",
            "zm-prov deleteAccount bob",
            "chaind unsafe-reset-all",
            "boot-entry --remove-kernel 6.1",
            "kodi-x --action=Reboot",
            "tvdeluser bob",
            "qmgr-x -c 'delete queue batch'",
            "back-console <<< 'purge volume=v1'",
        ),
        not_match=(
            "grep delete a.txt",
            "mkdir delete",
            "foo list",
            "foo show --delete-time",
            "foo --format json",
            "make destroy",
            "shopctl cache:flush",
            "migrator dev --name drop_users",
            "tidy-x --remove-unused-imports a.py",
            "runner-x --kill-others a b",
            "gen-x generate route reset-password",
            "foo format src",
            "setsid grep kill a.log",
            "molecule-x test --destroy=never",
            "setsid -w bash -c 'rm a.o'",
        ),
    ),
    Rule(
        "tail.protected_path",
        ASK,
        "gives the path of a protected file to a program that may write it",
        match=(
            "wget2 -O /etc/cron.d/x https://x.example/x",
            "mytool ~/.ssh/authorized_keys",
            "sqlite3 :memory: '.once /etc/cron.d/x' 'select 1'",
            "scrot /etc/cron.d/x",
        ),
        not_match=(
            "aria2c -o x.zip https://x.example/x",
            "mytool notes.txt",
            "stat ~/.ssh/id_rsa",
            "nginx -t -c /etc/nginx/nginx.conf",
            "sqlite3 app.db '.once out.csv' 'select 1'",
            "wc -l /etc/services",
        ),
    ),
)
