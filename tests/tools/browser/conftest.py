from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.core.builtin import builtin_tools, registry
from handrail.environments.tasks import TaskEnvironments
from handrail.model_tools import handle_function_call
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.services import BrowserConfig, WebConfig
from handrail.tools.browser import actions, browsers, session
from handrail.tools.browser.browsers import Browsers

from ... import conftest
from ...services.components import require
from ...support import PATIENCE_SECONDS, wait_until
from .. import pages

Call = Callable[..., dict[str, Any]]

_CHROMIUM = "chromium --headless --no-sandbox --disable-gpu --disable-crash-reporter --remote-debugging-port=0"
CONFIG = Config(web=WebConfig(allow_private=("127.0.0.1",)), browser=BrowserConfig(timeout=PATIENCE_SECONDS))


@pytest.fixture(autouse=True, scope="session")
def _browser_is_there() -> None:
    require("chromium", packages="chromium", modules=("playwright",))


@pytest.fixture(autouse=True)
def _time_to_load(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages get the time that they take on a busy machine, but in the tests of those that never come to an end."""
    if "in_haste" not in request.fixturenames:
        monkeypatch.setattr(session, "_SETTLE_SECONDS", PATIENCE_SECONDS)
        monkeypatch.setattr(session, "_ALIVE_SECONDS", PATIENCE_SECONDS)
        monkeypatch.setattr(actions, "_PART_LOADED_SECONDS", PATIENCE_SECONDS)
        monkeypatch.setattr(browsers, "_START_SECONDS", 2 * PATIENCE_SECONDS)


@pytest.fixture
def in_haste() -> None:
    """As it is without us."""


@pytest.fixture
def site() -> Iterator[pages.Site]:
    with pages.site() as made:
        yield made


@pytest.fixture(scope="package")
def shared_runtime() -> Iterator[Runtime]:
    """A runtime whose browser serves all tests here: starting one takes seconds. Others count what is left running."""
    builtin_tools()
    with TaskEnvironments(CONFIG) as environments:
        yield Runtime(registry, config=CONFIG, environments=environments)


@pytest.fixture
def task() -> str:
    return f"task-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def browser(shared_runtime: Runtime, task: str) -> Iterator[Call]:
    """Call a tool by the end of its name: `browser("click", ref="e3")`. The test has a task of its own."""
    tasks = {task}

    def call(name: str, in_task: str = "", **arguments: Any) -> dict[str, Any]:
        tasks.add(task + in_task)
        answer = json.loads(shared_runtime.handle(f"browser_{name}", arguments, task_id=task + in_task))
        _adopt(shared_runtime)
        return answer

    yield call
    for name in tasks:
        shared_runtime.environments.close(name)


@pytest.fixture
def own_browser(home: Path) -> Callable[..., Call]:
    """A browser of the test's own, with these settings."""

    def start(settings: str = "") -> Call:
        (home / "config.yaml").write_text(f"web: {{allow_private: ['127.0.0.1']}}\nbrowser: {{{settings}}}\n")

        def call(name: str, **arguments: Any) -> dict[str, Any]:
            return json.loads(handle_function_call(f"browser_{name}", arguments))

        return call

    return start


@pytest.fixture
def running_browser(tmp_path: Path) -> Iterator[str]:
    """A Chromium that listens for debuggers, as people start one."""
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            [*_CHROMIUM.split(), f"--user-data-dir={tmp_path}/profile"],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    port_file = tmp_path / "profile" / "DevToolsActivePort"
    try:
        wait_until(lambda: port_file.exists() and port_file.read_text().strip())
        yield f"http://127.0.0.1:{port_file.read_text().split()[0]}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def downloaded(browser: Call, page: dict[str, Any]) -> dict[str, Any]:
    """What became of the one download that this page or a later look tells of: the end of one is told once."""
    over: list[dict[str, Any]] = []

    def look(at: dict[str, Any]) -> bool:
        over.extend(one for one in at.get("downloads", ()) if "running" not in one)
        return bool(over)

    look(page)
    wait_until(lambda: over or look(browser("console")))
    [ended] = over
    return ended


def _adopt(runtime: Runtime) -> None:
    """The shared browser's thread and loop are no test's: they are not counted as left running."""
    thread = runtime.environments.companion(Browsers, lambda: Browsers(CONFIG))._thread
    if thread is not None:
        thread.thread.name = "browser of the tests"
        conftest._loops[:] = [counted for counted in conftest._loops if counted[0]() is not thread._loop]
