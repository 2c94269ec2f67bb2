"""A runtime that is killed in the middle of a call: the next one finishes it, and the session is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from handrail import Handrail
from handrail.agent.agent_factory import open_agent
from handrail.testing import ModelReply, ScriptedModel
from tests.support import configure, wait_until

_RUN = """
import sys
from handrail import Handrail
from handrail.agent.agent_factory import open_agent
from handrail.testing import ModelReply, ScriptedModel
from handrail.testing import OpenGate
with Handrail(home=sys.argv[1]) as app:
    app.runtime.gate = OpenGate()
    app.register_task_env_overrides("t", cwd=sys.argv[2])
    for command in sys.argv[3:]:
        app.handle_function_call("terminal", {"command": command}, "t", None, "s1")
"""


def killed_in_the_middle(home: Path, work: Path, *commands: str) -> None:
    """Run commands, of which the last makes `begun` and waits, and kill the runtime then."""
    started = subprocess.Popen([sys.executable, "-c", _RUN, str(home), str(work), *commands])
    wait_until((work / "begun").exists)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()


def told_after(home: Path, work: Path) -> list[str]:
    """What the session is told. The shell of the killed runtime needs a moment to end."""
    found: list[str] = []
    with Handrail(home=home) as app:

        def is_told() -> bool:
            found.extend(app.effects.interrupted("s1"))
            return bool(found)

        wait_until(is_told)
        assert app.effects.interrupted("s1") == [], "once"
    return found


def test_an_interrupted_call_is_rolled_back_and_its_session_is_told(home: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("one")
    killed_in_the_middle(home, work, "echo done > first", "echo two > a; touch b begun; sleep 1000")
    found = told_after(home, work)
    assert len(found) == 1, found
    told = found[0]
    assert "interrupted after 3 of its changes; rolled back" in told
    assert (work / "a").read_text() == "one"
    assert {path.name for path in work.iterdir()} == {"a", "first"}


def test_with_keep_an_interrupted_call_stays_and_can_be_undone(home: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    configure(home, "effects:\n  on_crash: keep\n")
    killed_in_the_middle(home, work, "touch b begun; sleep 1000")
    (told,) = told_after(home, work)
    assert "interrupted after 2 of its changes; kept" in told
    assert (work / "b").exists()
    with Handrail(home=home) as app:
        number = app.calls()[0].number
        assert app.undo(number)["status"] == "undone"
    assert not list(work.iterdir())


def test_a_call_that_had_changed_nothing_is_told_as_such(home: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    started = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(home), str(work), "echo $$; sleep 1000 < /dev/null"], stdout=subprocess.PIPE
    )
    begun = home / "state" / "begun-calls"
    wait_until(lambda: begun.exists() and any(path.stat().st_size for path in begun.iterdir()))
    started.kill()
    started.communicate()
    (told,) = told_after(home, work)
    assert "interrupted before it changed anything" in told


_AGENT = """
import pathlib, sys, threading
from handrail import Handrail
from handrail.agent.agent_factory import open_agent
from handrail.testing import ModelReply, OpenGate, ScriptedModel, call
with Handrail(home=sys.argv[1]) as app:
    app.runtime.gate = OpenGate()

    def pay(args, **_):
        with open(sys.argv[2], "a") as file:
            file.write("paid\\n")
        threading.Event().wait()

    app.registry.register("pay", "own", {"description": "pays", "parameters": {"type": "object"}}, pay)
    model = ScriptedModel([ModelReply("", [call("pay", "c1")])])
    with open_agent(app, models=[model], id="s1", toolsets=["own"]) as agent:
        agent.run("pay the bill")
"""


def test_a_call_whose_outcome_nobody_knows_is_told_as_such_and_not_repeated(home: Path, tmp_path: Path) -> None:
    paid = tmp_path / "paid"
    started = subprocess.Popen([sys.executable, "-c", _AGENT, str(home), str(paid)])
    wait_until(lambda: paid.exists() and paid.read_text())
    started.kill()
    started.wait()
    model = ScriptedModel([ModelReply("I look first.")])
    with Handrail(home=home) as app, open_agent(app, models=[model], id="s1") as agent:
        assert agent.run("go on").answer == "I look first."
    (answer,) = (message for message in model.sent[0].messages if message["role"] == "tool")
    assert json.loads(answer["content"])["error_type"] == "unknown_outcome"
    assert "look before you do it again" in answer["content"]
    assert paid.read_text() == "paid\n"
