"""The figures of the README are those that the bench recorded, and counts are those of the code."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from handrail.agent.delegation import MAX_AT_ONCE
from handrail.agent.models.base import MAX_ANSWER_CHARS, MAX_CALLS
from handrail.agent.tool_calls import STOP_AFTER, WARN_AFTER
from handrail.approval.questions import MAX_PREVIEW_CHARS
from handrail.environments.shell_host.jobs import SEGMENT_BYTES
from handrail.judge.values.disk import MAX_FILES
from handrail.judge.values.paths import CLASSES
from handrail.judge.walk.script_files import _MAX_SHELL, MAX_DEPTH
from handrail.media.images import _MAX_PIXELS
from handrail.serve.access_control import MAX_BODY_BYTES
from handrail.serve.connection_limits import _MAX_CONNECTIONS
from handrail.serve.mcp.server import FIRST_LIST_SECONDS
from handrail.serve.tokens import LINK_SECONDS, LOGIN_SECONDS
from handrail.settings.schema import Config
from handrail.testing import environment_checks
from handrail.tools.agent.delegate_task import MAX_TASKS
from handrail.tools.mcp.server_tools import START_SECONDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
# A row of the README's table, and the rows of the bench that it shows.
ROWS = {
    "cold start: import, list all tools, call one": ["cold start: import, list all tools, call one"],
    "call a sync tool from JSON text": ["call a sync tool, validated"],
    "call an async tool inside a loop": ["call an async tool, in a loop"],
    "list 1,000 tools again": ["list them again, a copy each"],
    "100 parallel calls of 50 ms, sync / async tools": [
        "100 parallel calls of 50 ms, sync tools",
        "100 parallel calls of 50 ms, async tools",
    ],
}


def _recorded(what: str) -> str:
    """As the README writes it. `python -m bench core --record` records anew."""
    ratios = json.loads((ROOT / "bench" / "recorded" / "core.json").read_text())
    return f"{ratios[what]:.1f}"


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_readme_is_what_the_bench_recorded(row: str) -> None:
    (cell,) = re.findall(rf"^ *\| {re.escape(row)} \| ([^|]+) \|", README, re.MULTILINE)
    assert cell.partition(",")[0] == " / ".join(map(_recorded, ROWS[row]))


def test_every_row_of_the_table_is_tested() -> None:
    table = README.partition("| what, as a ratio")[2].partition("\n\n")[0]
    assert [line.split("|")[1].strip() for line in table.splitlines()[2:]] == list(ROWS)


def test_the_sentence_above_the_table_says_the_same() -> None:
    (figure,) = re.findall(r"A validated call costs ([\d.]+) times", README)
    assert figure == _recorded("call a sync tool, validated")


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/write-a-backend.md"])
def test_the_number_of_checks_is_that_of_the_kit(page: str) -> None:
    assert f"{len(environment_checks())} checks" in (ROOT / page).read_text()


# What other tools took in the same measures, in one run of their own: the bench prints it beside ours.
PEERS = {
    "cold start: import, list all tools, call one": ("hermes 18.8", "smallest 3.0"),
    "call a sync tool from JSON text": ("hermes 11.8", "4.8 (unvalidated)"),
    "call an async tool inside a loop": ("hermes 211", "best 7.3"),
    "list 1,000 tools again": ("hermes 0.2", "best other 0.7"),
    "100 parallel calls of 50 ms, sync / async tools": ("hermes 13", "best 3.5", "best 1.05"),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_peers_of_the_readme_are_those_that_the_bench_prints(row: str) -> None:
    bench = (ROOT / "bench" / "core.py").read_text()
    (cells,) = re.findall(rf"^ *\| {re.escape(row)} \|(.*)\|$", README, re.MULTILINE)
    for told in PEERS[row]:
        assert told in bench
        (figure,) = re.findall(r"\d[\d.]*", told.split(",")[0])
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.])", cells), f"the README does not say {told}"


def test_the_page_about_installing_lists_every_extra() -> None:
    table = (ROOT / "docs/install.md").read_text().partition("| extra |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(listed) == sorted(project["optional-dependencies"])


def test_the_page_about_rules_lists_every_class_of_paths() -> None:
    page = (ROOT / "docs/how-to/add-a-rule.md").read_text()
    assert re.findall(
        r"^\| `([\w-]+)` \| (.+) \|$", page.partition("## Classes of paths")[2].partition("## ")[0], re.MULTILINE
    ) == [*CLASSES.items()]


_ORDINALS = {3: "third", 8: "eighth"}
_WORDS = {2: "two", 3: "three", 5: "five", 6: "six", 7: "seven", 8: "eight", 10: "ten"}
CONFIG = Config()
# A page, and what it says of a limit that the code or the default configuration has.
LIMITS = [
    ("tutorial/undo.md", f"more than {CONFIG.effects.pause.files} files (or {CONFIG.effects.pause.megabytes} MB)"),
    ("explanation/what-can-be-undone.md", f"kept for seven days, up to {CONFIG.effects.keep_bytes >> 30} GB"),
    ("explanation/how-commands-are-judged.md", f"{MAX_FILES} files, 1 MB, {_WORDS[MAX_DEPTH]} scripts deep"),
    ("explanation/results.md", f"kept for {_WORDS[CONFIG.results.keep_days]} days"),
    (
        "explanation/the-agent.md",
        f"More than {MAX_CALLS} calls or {_WORDS[MAX_ANSWER_CHARS // 1_000_000]} million characters",
    ),
    ("how-to/delegate.md", f"Up to {_WORDS[MAX_TASKS]} tasks at once, of which {_WORDS[MAX_AT_ONCE]} run in parallel"),
    (
        "how-to/background-and-interactive.md",
        f"At most {Config().processes.max_running_per_task} run in a task and {Config().processes.max_running} in all",
    ),
    ("how-to/serve.md", f"bodies over {MAX_BODY_BYTES >> 20} MB"),
    ("how-to/serve.md", f"may open files ({_MAX_CONNECTIONS:,} at most)"),
    ("how-to/serve.md", f"A login lasts {LOGIN_SECONDS // 86_400} days"),
    ("how-to/web-console.md", f"once, within {_WORDS[LINK_SECONDS // 60]} minutes"),
    ("how-to/approvals.md", f"(up to {MAX_PREVIEW_CHARS:,} characters"),
    (
        "explanation/how-commands-are-judged.md",
        f"read up to {_MAX_SHELL[True] // 1000} kB if it is new, otherwise up to {_MAX_SHELL[False] // 1000} kB",
    ),
    (
        "how-to/background-and-interactive.md",
        f"keeps the latest {SEGMENT_BYTES >> 20} to {2 * SEGMENT_BYTES >> 20} MB",
    ),
    ("explanation/results.md", f"({CONFIG.results.max_chars:,} characters by default)"),
    ("explanation/the-agent.md", f"in the same way for the {_ORDINALS[WARN_AFTER]} time"),
    ("explanation/the-agent.md", f"After the {_ORDINALS[STOP_AFTER]} time the turn ends"),
    ("how-to/use-mcp-servers.md", f"The list waits at most {START_SECONDS} seconds"),
    ("how-to/handrail-in-mcp-clients.md", f"the first list waits up to {FIRST_LIST_SECONDS:.0f} seconds"),
    ("how-to/images-speech-models.md", f"more pixels than {_MAX_PIXELS // 1_000_000} million"),
    ("how-to/hooks.md", f"(`calls.hook_timeout`, {_WORDS[int(CONFIG.calls.hook_timeout)]} seconds)"),
    ("how-to/terminal.md", f"`terminal.timeout` of the configuration ({CONFIG.terminal.timeout:.0f})"),
    ("how-to/terminal.md", f"`terminal.max_timeout` ({CONFIG.terminal.max_timeout:.0f})"),
    ("how-to/terminal.md", f"`terminal.max_output_chars` ({CONFIG.terminal.max_output_chars:,})"),
    ("how-to/terminal.md", f"`terminal.max_stored_bytes` ({CONFIG.terminal.max_stored_bytes >> 20} MiB)"),
    ("how-to/terminal.md", f"`terminal.idle_seconds` ({CONFIG.terminal.idle_seconds:.0f})"),
    ("how-to/web.md", f"`web.timeout` seconds ({CONFIG.web.timeout:.0f})"),
    ("how-to/web.md", f"`web.max_bytes` ({CONFIG.web.max_bytes >> 20} MiB)"),
]


@pytest.mark.parametrize(("page", "sentence"), LIMITS)
def test_a_limit_that_a_page_names_is_the_one_that_holds(page: str, sentence: str) -> None:
    assert sentence in " ".join((ROOT / "docs" / page).read_text().split())
