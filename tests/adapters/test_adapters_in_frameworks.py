"""A session's tools in the frameworks of others: what runs, what is an error, and who is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.testing import call

from .conftest import Run

ASKS_ITSELF = ["openai_agents", "pydantic_ai", "langchain"]
ALL = [*ASKS_ITSELF, "smolagents", "inspect"]
REMOVE = {"command": "rm -rf victim"}


@pytest.mark.parametrize("framework", ALL, scope="module")
def test_tools_run_in_the_session_and_errors_are_errors_to_the_framework(framework: str, run: Run, work: Path) -> None:
    ran = run(
        framework,
        call("terminal", command="echo hi > a.txt; pwd"),
        call("read_file", path="missing.txt"),
        call("read_file", path="a.txt", nonsense=1),
        call("terminal", command="rm -rf /"),
    )
    assert (work / "a.txt").read_text() == "hi\n"
    assert str(work) in ran.told()
    missing, nonsense, denied = ran["errors"]
    assert "missing.txt" in missing
    assert "nonsense" in nonsense
    assert "denied" in denied
    assert (ran["output"], ran["asked"]) == ("Done.", [])


@pytest.mark.parametrize("framework", ASKS_ITSELF, scope="module")
def test_an_approval_is_the_frameworks_own_and_a_yes_resumes_the_call(framework: str, run: Run, work: Path) -> None:
    again = call("terminal", **REMOVE)
    ran = run(framework, call("terminal", **REMOVE), again, call("terminal", command="echo after"), yes=True)
    first, second = ran["asked"]  # a yes is for one call
    assert "rm -rf victim" in first["question"]
    assert (first["victim"], second["victim"]) == (True, False)
    assert not (work / "victim").exists()
    assert (ran["output"], ran["errors"]) == ("Done.", [])
    assert "after" in ran.told()


@pytest.mark.parametrize("framework", ASKS_ITSELF, scope="module")
def test_what_is_rejected_does_not_run_and_the_model_goes_on(framework: str, run: Run, work: Path) -> None:
    ran = run(framework, call("terminal", **REMOVE), call("terminal", command="echo after"))
    assert len(ran["asked"]) == 1
    assert (work / "victim").exists()
    assert (ran["output"], "after" in ran.told()) == ("Done.", True)


@pytest.mark.parametrize("framework", ASKS_ITSELF, scope="module")
def test_a_yes_does_not_hold_for_a_file_that_has_changed_since(framework: str, run: Run, work: Path) -> None:
    (work / "a.txt").write_text("one\n")
    write = call("write_file", path="a.txt", content="two\n")
    ran = run(framework, write, yes=True, ask_tools=["write_file"], change={"a.txt": "somebody else's\n"})
    assert len(ran["asked"]) == 1
    assert (work / "a.txt").read_text() == "somebody else's\n"
    assert "denied" in ran["errors"][0]


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("framework", ALL, scope="module")
def test_an_approver_of_the_session_is_asked_instead(framework: str, yes: bool, run: Run, work: Path) -> None:
    ran = run(framework, call("terminal", **REMOVE), approver=True, yes=yes)
    [asked] = ran["asked"]
    assert asked["question"] == "approver: rm -rf victim"
    assert (work / "victim").exists() is not yes
    assert ["denied" in error for error in ran["errors"]] == ([] if yes else [True])


@pytest.mark.parametrize(("reply", "removes"), [("maybe", False), ({"by": "ann"}, False), ({"decision": "once"}, True)])
def test_a_graph_is_resumed_by_a_clear_yes_only(reply: object, removes: bool, run: Run, work: Path) -> None:
    run("langchain", call("terminal", **REMOVE), reply=reply, sync=True)
    assert (work / "victim").exists() is not removes


def test_outside_a_graph_what_nobody_can_be_asked_about_is_denied(run: Run, work: Path) -> None:
    ran = run("langchain", outside={"name": "terminal", "args": REMOVE})
    assert ran["output"] == "error"
    assert "denied" in ran["errors"][0]
    assert (work / "victim").exists()


@pytest.mark.parametrize("framework", ASKS_ITSELF, scope="module")
def test_another_process_resumes_the_run_in_a_session_of_the_same_id(framework: str, run: Run, work: Path) -> None:
    assert run(framework, call("terminal", **REMOVE), program="resume", id="s1")["output"] == "stored"
    assert (work / "victim").exists()
    assert run(framework, program="resume", id="s1")["output"] == "Done."
    assert not (work / "victim").exists()


@pytest.mark.parametrize("framework", ["pydantic_ai", "langchain"])
def test_another_process_does_not_use_a_yes_to_a_file_that_has_changed_since(
    framework: str, run: Run, work: Path
) -> None:
    (work / "a.txt").write_text("one\n")
    more = {"program": "resume", "id": "s1", "ask_tools": ["write_file"], "bound": True}
    run(framework, call("write_file", path="a.txt", content="two\n"), **more)
    (work / "a.txt").write_text("somebody else's\n")
    assert "denied" in run(framework, **more).told()
    assert (work / "a.txt").read_text() == "somebody else's\n"
