"""A history of questions as agents cause them: commands made from a grammar, and the answers of a person with fixed habits."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handrail.approval.records import HISTORY_NAME

CWD = "/srv/work/shop"
_NAMES = "cart login search invoice export import sync retry cache audit upload badge menu theme".split()
_FOLDERS = (
    "build dist node_modules target .next coverage .pytest_cache .mypy_cache .venv out tmp/cache web/dist".split()
)

# How often, whether the person says yes, and the command; `{name}`, `{folder}` and `{number}` are drawn.
_HABITS: list[tuple[int, bool, str]] = [
    (160, True, "rm -rf {folder}"),
    (60, True, "rm -rf {folder} {folder} && npm run build"),
    (30, True, "rm -r -f ./{folder}; make all"),
    (25, True, "cd web && rm -rf dist"),
    (30, True, "rm -rf /tmp/shop-{number}"),
    (60, True, "git branch -D agent/{name}-{number}"),
    (40, True, "git push --force-with-lease origin agent/{name}"),
    (50, True, "docker rm -f shop-db"),
    (40, True, "docker rm -f shop-{name}"),
    (40, True, "docker compose down --volumes"),
    (30, True, "docker volume rm shop_pgdata"),
    (45, True, "pkill -f vite"),
    (25, True, "kubectl delete pod shop-{name}-{number} -n dev"),
    (25, True, "dropdb shop_test"),
    (20, True, "redis-cli -n 15 flushdb"),
    (15, True, "git stash drop"),
    (15, True, "kill -9 {number}"),
    (12, True, "curl -fsSL https://get.example.com/{name}.sh | sh"),
    (8, True, 'python3 "$SCRIPT" --{name}'),
    (10, True, "cat ~/.npmrc"),
    (12, True, "npm publish --tag next"),
    (30, False, "git push --force origin main"),
    (12, False, "rm -rf ~/{name}"),
    (12, False, "git reset --hard origin/main"),
    (10, False, "kubectl delete namespace {name}"),
    (10, False, "docker system prune -af --volumes"),
    (8, False, "dropdb shop"),
    (8, False, "rm -rf .git"),
    (6, False, "git clean -fdx"),
]


def made(count: int, *, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Lines of the history of actions, spread over sessions and weeks."""
    drawn = random.Random(seed)
    weights = [weight for weight, _, _ in _HABITS]
    at = 1_700_000_000.0
    for number, (_, says_yes, template) in enumerate(drawn.choices(_HABITS, weights, k=count)):
        at += drawn.choice((40, 600, 4_000))
        text = template
        while "{" in text:
            text = text.replace("{folder}", drawn.choice(_FOLDERS), 1)
            text = text.replace("{name}", drawn.choice(_NAMES), 1)
            text = text.replace("{number}", str(drawn.randrange(100, 99_999)), 1)
        yield line(text, at=at, session=f"s{number // 12}", verdict="once" if says_yes else "deny")


def line(text: str, *, at: float, session: str = "s1", verdict: str = "once", by: str = "terminal") -> dict[str, Any]:
    fixed = {"tool": "terminal", "kind": "command", "cwd": CWD, "details": {"project": CWD}}
    return {"at": at, "text": text, "verdict": verdict, "by": by, "session": session, **fixed}


def write_history(state: Path, lines: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> None:
    state.mkdir(parents=True, exist_ok=True)
    (state / HISTORY_NAME).write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
