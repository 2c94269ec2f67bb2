"""Personal data: bookmarks, notes, calendars, photos, downloads and the state of desktop programs."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "personal.delete",
        ASK,
        "deletes what a person has collected in a program",
        uses=(
            "buku -d|--delete",
            "watson remove|cancel",
            "timetrap|timew kill|delete|cancel",
            "task * delete|purge",
            "todo.sh ... rm|del",
            "mpd --kill",
            "xdotool windowkill|windowquit",
            "attr -r",
            "setfattr -x",
            "calcurse-caldav --init=keep-*",
            "calcurse -F --purge",
            "joplin rmnote|rmbook|rmtag",
            "transmission-remote -r|--remove*|-rad",
            "rtcontrol --cull|--delete|--close|--stop",
            "nzbget -Q|-E",
            "sabnzbd|deluge-console|qbt|aria2p ... del|delete|rm|remove|purge",
            "matrix-commander --room-leave|--room-forget|--delete-*|--logout|--room-kick|--room-ban",
            "lutris -u|--uninstall*",
            "waydroid init -f|--force",
            "wineserver|wineboot -k|--kill|-f|--force",
            "mdutil -E|-i|-d|-X",
            "ipython history clear|trim",
            "newsboat --vacuum|--cleanup",
            "secret-tool clear",
            "kwallet-query|kwalletcli -d|-w",
            "tracker|tracker3 reset",
            "sa -s|--merge",
            "gcalcli delete|quickdel",
            "sncli -k",
            "nb delete|d|-",
            "cliphist|clipman|copyq|gpaste-client|greenclip wipe|clear|delete*|empty|remove",
            "zsh_stats|atuin|mcfly search --delete*|--delete",
            "atuin account|store|history delete|purge|prune|dedup",
        ),
        match=(
            "buku -d 3",
            "transmission-remote -t 3 -rad",
            "joplin rmbook -f diary",
            "calcurse-caldav --init=keep-remote",
            "cliphist wipe",
        ),
        not_match=(
            "buku -p",
            "transmission-remote -l",
            "joplin ls",
            "calcurse-caldav --init=two-way",
            "cliphist list",
            "atuin search rm",
        ),
    ),
)
