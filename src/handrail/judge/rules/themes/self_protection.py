"""Self protection: Handrail's configuration, its state, and the commands that answer approval requests."""

from __future__ import annotations

from ..model import ASK, BLOCK, Rule

RULES = (
    Rule(
        "own.gate",
        BLOCK,
        "answers or changes the approval that this command waits for",
        uses=(
            "handrail approvals !{second:list|log|simulate|show}",
            "handrail approvals revoke|approve|answer|grant|allow|deny|respond|clear|import|export",
            "handrail config set|unset|edit|confirm|reset|import|add|remove",
            "handrail plugins trust|enable|disable|new",
            "handrail mcp trust|add|remove|login|logout",
            "handrail skills trust",
            "handrail serve|pair",
            "python|uvx|pipx handrail serve|pair",
            "handrail {any:--yolo}",
            "python|uvx|pipx handrail approvals !{any:list|log|simulate|show}",
            "python|uvx|pipx handrail config set|unset|edit|reset|add|remove",
            "uv|pipx|poetry|pdm|hatch run handrail approvals|config !{any:list|log|simulate|show|path|get}",
        ),
        match=(
            "handrail approvals revoke 1",
            "handrail approvals approve 7",
            "handrail config set approval.mode off",
            "handrail run --yolo x",
            "handrail skills trust x",
            "handrail plugins disable guard",
            "handrail mcp add evil -- ./x.sh",
            "handrail config confirm --yes",
            "handrail serve token new me --role operate",
            "python -m handrail serve",
            "python -m handrail approvals grant x",
        ),
        not_match=(
            "handrail approvals list",
            "handrail approvals log",
            "handrail doctor",
            "handrail skills list",
            "handrail plugins list",
            "handrail mcp list",
            "handrail config path",
            "handrail check 'rm -rf /'",
            "python -m handrail tools",
        ),
    ),
    Rule(
        "own.process",
        ASK,
        "sends a signal to Handrail itself",
        uses=(
            "kill|pkill|killall|skill|snice {text:*handrail*}",
            "systemctl|supervisorctl|launchctl|pm2 stop|restart|reload|kill|disable|mask|reload-or-restart {text:*handrail*}",
            "service|rc-service|sv {text:*handrail*} !{last:status}",
        ),
        not_match=("pkill -f server.py", "kill 123", "systemctl status handrail", "service handrail status"),
        match=(
            "pkill -HUP handrail",
            "pkill -f 'handrail serve'",
            "killall handrail",
            "kill -HUP handrail.4711",
            "systemctl --user restart handrail",
        ),
    ),
    Rule(
        "own.files",
        BLOCK,
        "changes Handrail's own configuration or state",
        uses=(
            "$writers >@own",
            "rm|unlink|mv|shred|truncate|chmod|chown|rmdir|trash|srm @own",
            "sqlite3 @own",
            "sed|perl|ruby >@own",
            "find|fd @own -delete|-exec|-x|-X",
        ),
        match=(
            "tee ~/.config/handrail/config.yaml",
            "rm -rf ~/.local/state/handrail",
            "echo x > ~/.config/handrail/config.yaml",
            "sqlite3 ~/.local/state/handrail/handrail.db 'select 1'",
        ),
        not_match=("cat ~/.config/handrail/config.yaml", "ls ~/.config/handrail", "tee config.yaml"),
    ),
)
