"""Processes: killing them, one or all, and fork bombs."""

from __future__ import annotations

from ..model import ASK, BLOCK, Rule

RULES = (
    Rule(
        "proc.kill_all",
        BLOCK,
        "kills every process, or the first one",
        uses=(
            "kill {kills-all}",
            "kill {kills-init}",
            "killall5 !-o|-h",
            "pkill|killall|skill {any-process}",
            "pkill -P=1",
            "killall|pkill init|systemd|launchd",
        ),
        match=("kill -9 -1", "kill -s KILL -- -1", "kill -9 1", "killall5 -9", "pkill -9 -f .", "killall -r '.*'"),
        spare=("kill -l", "kill -1 123", "kill -0 1", "kill 123", "pkill -f server.py"),
    ),
    Rule(
        "proc.kill_force",
        ASK,
        "kills processes by force, or ones that the command does not name",
        uses=(
            "kill {kills-hard}",
            "skill|snice -9|-KILL|-u|-t|-STOP +",
            "slay|slayer +",
            "tskill|taskkill +",
            "taskkill /F|/f|/IM|/im|/PID|/T",
            "Stop-Process|spps +",
            "procs --kill",
            "fkill|killport|kill-port|npx-kill-port +",
            "npx kill-port|fkill|fkill-cli +",
        ),
        match=("kill -9 123", "kill $(pgrep x)", "taskkill /F /IM x.exe"),
        spare=("kill -0 123", "kill -l", "kill %1"),
    ),
    Rule(
        "proc.kill_name",
        ASK,
        "kills processes by name or owner",
        uses=(
            "pkill !-0|-l|--list|-V +",
            "pkill -u|-U|-g|-G|-t|-P|-s|-F|--euid|--uid|--parent|--session|--terminal|--pidfile !-0",
            "killall !-0|-l|--list|-V|--version +",
            "killall -u|--user",
            "xkill !-version",
            "wkill|ttykill|skill +",
        ),
        match=("pkill -9 sshd", "killall node", "killall -u alice", "pkill -u root"),
        spare=("pkill -0 x", "killall -l", "pgrep -fl node", "pidof nginx"),
    ),
    Rule(
        "proc.session",
        ASK,
        "ends sessions, or whatever holds a file or a port",
        uses=(
            "fuser -k|--kill",
            "loginctl kill-*|terminate-*",
            "machinectl terminate|kill|poweroff|reboot|remove|disable",
            "tmux kill-server|kill-session|kill-ser*|kill-ses*",
            "tmux -C",
            "tmux kill-session",
            "screen {screen-quits}",
            "screen -wipe",
            "zellij kill-session|kill-all-sessions|ka|k|delete-session|delete-all-sessions|d|da",
            "byobu kill-server|kill-session",
            "abduco|dtach -k",
            "crm_resource|srvctl {any:stop}",
            "scancel|qdel|bkill|condor_rm|oardel|pjdel|llcancel|canceljob|skill",
            "scontrol|sacctmgr ... delete|suspend|shutdown|reboot|reboot_nodes|hold|requeue|update|modify|"
            "remove|cancel_reboot",
            "cgdelete|cgclassify|cgclear +",
            "cgclear",
            "criu dump",
            "pueue kill|reset|remove|clean|shutdown",
            "pueue ... kill|reset",
            "task_spooler|tsp|ts -K|-k|-C",
            "ipcrm -a|-M|-m|-Q|-q|-S|-s|--all|--shmem-id|--queue-id|--semaphore-id",
        ),
        match=("fuser -k 80/tcp", "loginctl kill-session 1", "tmux kill-server", "scancel -u alice"),
        spare=("fuser 80/tcp", "tmux ls", "loginctl list-sessions", "squeue"),
    ),
    Rule(
        "proc.fork_bomb",
        BLOCK,
        "starts itself again and again until nothing else can run",
        match=(":(){ :|:& };:", "f(){ f|f& };f", "perl -e 'fork while fork'"),
        spare=("f(){ ls; }; f", "f(){ g|g& }; echo f"),
    ),
)
