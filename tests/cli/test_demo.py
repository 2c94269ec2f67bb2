"""`handrail demo`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from handrail.cli.demo.stage import read_scenes

from .. import fork_server
from ..support import wait_until
from .conftest import Cli
from .terminal import Terminal

README = (Path(__file__).parents[2] / "README.md").read_text()
_TIMES = re.compile(r"(<?\d[\d.]*) m?s")
# What each scene is there to show.
SHOWN = [
    "reverted: README.md",
    "removed: NOTES.md",
    "calls at once took",
    "4000 orders checked, 235 wrong",
    "9: order 0009: 10 x apple = 400 WRONG, expected 360",
    "Unknown tool: serch_files; did you mean search_files?",
    "shop/orders.py:5: DISCOUNT_FROM = 10",
    "argument 'offset': expected integer",
    "10 + if pieces >= DISCOUNT_FROM:",
    "4000 orders checked, 0 wrong",
    "the command failed with exit code 3",
    "in shop: 19 lines",
    "printed a line that you watch for: Serving HTTP on 127.0.0.1 port",
    "What things cost, in cents.",
    "8910",
    "a parcel of 3 kg costs 6.90",
    "argument 'kg': expected number",
    "rm -rf build shop",
    "once, task, session, always, deny? deny",
    "once, task, session, always, deny? once",
    "Denied by you",
    "Not run: deletes the root, a home or a system directory",
    "deploy is unavailable: there is no SHOP_TOKEN",
    "☑ Fix the bug and check again",
    "handrail call read_file path=README.md",
]


def test_the_demo_shows_every_scene_and_leaves_nothing(cli: Cli) -> None:
    ran = cli("demo", COLUMNS="80")
    assert (ran.code, ran.err) == (0, "")
    text = re.sub(r"\n +", " ", ran.out)  # wrapped lines are one again
    for expected in SHOWN:
        assert expected in re.sub(r" +", " ", text) or expected in ran.out
    for number, scene in enumerate(read_scenes()[1], 1):
        assert f"── {number} {scene.title} ─" in ran.out
    assert max(len(line) for line in ran.out.splitlines() if sys.executable not in line) <= 80
    assert "\x1b" not in ran.out
    assert ran.out.count("── approval needed") == 2, "and nothing else asks"
    for folder in (cli.temp, cli.home, cli.cwd):
        assert list(folder.iterdir()) == []
    shown = {_TIMES.sub("", line) for line in ran.out.splitlines()}
    for line in README.partition("── 2 ")[2].partition("\n```")[0].splitlines()[1:]:
        assert _TIMES.sub("", line) in shown, "the README shows what the demo shows"


def test_the_reads_really_run_at_the_same_time(cli: Cli) -> None:
    def are_faster_together() -> bool:
        times = re.search(
            r"at once took ([\d.]+) (m?s); one after the other: ([\d.]+) (m?s)", cli("demo", COLUMNS="100").out
        )
        assert times is not None
        together, alone = (float(times[at]) * (1 if times[at + 1] == "ms" else 1000) for at in (1, 3))
        return together < alone

    wait_until(are_faster_together)  # on a busy machine perhaps not at the first look


def _watch(terminal: Terminal, scenes: int) -> None:
    """Press a key after each scene but the last."""
    for number in range(1, scenes):
        terminal.wait_for("[press any key] ", times=number)
        terminal.type("x")
    assert terminal.end() == 0


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_at_a_terminal_it_shows_three_scenes_with_pauses_in_80_columns(cli: Cli, env: dict[str, str]) -> None:
    with cli.terminal("demo", columns=80, **env) as terminal:
        _watch(terminal, 3)
    assert re.findall(r"── (\d) ", terminal.text) == ["1", "2", "3"]
    assert terminal.text.count("✗") == 1, "but for the denial, all of it works"
    assert max(len(line) for line in terminal.text.splitlines() if sys.executable not in line) <= 80
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]m", terminal.shown)) is (env == {})
    assert "handrail demo --all" in terminal.text


def test_all_scenes_can_be_watched_at_a_terminal(cli: Cli) -> None:
    with cli.terminal("demo", "--all") as terminal:
        _watch(terminal, len(read_scenes()[1]))
    assert f"── {len(read_scenes()[1])} " in terminal.text
    assert "handrail tools" in terminal.text


def test_the_demo_leaves_the_tools_of_the_process_alone(cli: Cli) -> None:
    script = cli.file(
        "script.py",
        "import json\nfrom handrail.cli.demo.show import play\nfrom handrail.core.registry import registry\n"
        "from handrail.plugins.hook_manager import hooks\nplay()\n"
        "print(json.dumps([registry.get_entry('deploy') is None, hooks.active]))\n",
    )
    ended = fork_server.run(str(script), env=cli.env, cwd=cli.cwd)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == [True, False]
