"""`handrail ask`: an answer for scripts, and exit codes that say how it went."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from handrail.cli.app import close_runtime
from handrail.cli.output import exit_code_of_error
from handrail.errors import HandrailError
from handrail.protocols import ModelReply
from handrail.testing import call
from handrail.testing.model_server import Fault, ModelServer
from tests.cli.conftest import Cli, Ran, run_here
from tests.support import wait_until


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def asking(cli: Cli, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """For what needs a process of its own."""
    given = {"HANDRAIL_MODEL": "scripted", "OPENAI_BASE_URL": server.base_url}
    cli.env |= given
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(cli.cwd)
    return cli


def ask(*args: str, stdin: str = "") -> Ran:
    try:
        return run_here("ask", *args, stdin=stdin)
    except HandrailError as error:
        return Ran(exit_code_of_error(error), "", str(error))
    finally:
        close_runtime()


def sent(server: ModelServer) -> str:
    return json.dumps(server.requests[-1]["messages"], ensure_ascii=False)


def test_the_answer_is_on_stdout_and_the_rest_on_stderr(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("I look.", [call("terminal", command="echo 6")]), ModelReply("It is 6.\n"))
    ran = ask("how many?")
    assert ran.code == 0
    assert ran.out == "It is 6.\n"
    assert "✓ 💻 terminal echo 6" in ran.err
    assert ask("-q", "how many?").code == 1  # the script is over


def test_stdin_is_material_for_a_question_or_the_question(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("a"), ModelReply("b"))
    assert ask("what is this?", stdin="one\ntwo\n").code == 0
    assert r"what is this?\n\n<material>\none\ntwo\n\n</material>" in sent(server)
    assert ask(stdin="only this").code == 0
    assert '"content": "only this"' in sent(server)
    assert ask().code == 2
    assert len(server.requests) == 2


def test_whoever_forgot_to_close_stdin_is_told(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("a"))
    with asking.start("ask", "what is this?") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        assert b"waiting for material on stdin" in process.stderr.readline()
        process.stdin.close()
        assert process.wait(60) == 0


def test_json_says_how_it_went(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("", [call("read_file", path="nowhere")]), ModelReply("There is none."))
    found = ask("--json", "read it").json
    assert (found["answer"], found["end"], found["calls"], found["denied"]) == ("There is none.", "answered", 1, 0)
    assert found["usage"]["input_tokens"] == 20
    assert found["model"] == "scripted"


def test_events_are_a_json_object_a_line_in_their_order(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("", [call("terminal", command="echo hi")]), ModelReply("Said."))
    lines = [json.loads(line) for line in ask("--events", "say hi").out.splitlines()]
    kinds = [line["event"] for line in lines]
    assert kinds[0] == "message_ended"
    assert kinds.index("tool_started") < kinds.index("tool_ended") < kinds.index("text_delta")
    assert kinds[-1] == "turn_ended"
    assert lines[-1]["answer"] == "Said."
    assert lines[-1]["end"] == "answered"
    assert lines[-1]["session_id"]
    (ended,) = [line for line in lines if line["event"] == "tool_ended"]
    assert json.loads(ended["result"])["output"] == "hi\n"


def test_events_whose_reader_goes_away_end_the_turn_without_a_traceback(asking: Cli, server: ModelServer) -> None:
    several = [call("terminal", command=f"echo {number}") for number in range(4)]
    server.say(*(ModelReply("", several) for _ in range(20)), ModelReply("Said."))
    ours, theirs = os.pipe()
    with asking.start("ask", "--events", "count", stdout=theirs) as process:
        os.close(theirs)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.close()
        with open(ours, "rb") as reader:
            reader.readline()
        err = process.stderr.read()
        process.wait(60)
    assert process.returncode == 141
    assert "Traceback" not in err.decode()
    assert "Exception" not in err.decode()
    assert "nobody reads" not in err.decode()
    assert len(server.requests) < 20  # it stopped, instead of working for nobody


def test_it_names_its_session_which_can_be_continued(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("It is 6."), ModelReply("Still 6."))
    err = ask("how many?").err
    session = err.partition("session ")[2].partition(";")[0]
    assert f"ask --resume {session}" in err
    assert ask("--resume", session, "sure?").out == "Still 6.\n"
    assert "how many?" in sent(server)


def test_nothing_dangerous_happens_without_a_policy_that_allows_it(asking: Cli, server: ModelServer) -> None:
    (asking.cwd / "build").mkdir()
    dangerous = ModelReply("", [call("terminal", command="rm -rf build")])
    server.say(dangerous, ModelReply("I may not."))
    ran = ask("clean up")
    assert (ran.code, ran.out) == (3, "I may not.\n")
    assert (asking.cwd / "build").is_dir()
    asking.configure("approvals:\n  allow: [rm -rf build]\n")
    server.say(dangerous, ModelReply("Gone."))
    assert ask("clean up").code == 0
    assert not (asking.cwd / "build").exists()


def test_a_person_at_a_terminal_is_not_asked_either(asking: Cli, server: ModelServer) -> None:
    (asking.cwd / "build").mkdir()
    server.say(ModelReply("", [call("terminal", command="rm -rf build")]), ModelReply("I may not."))
    with asking.terminal("ask", "clean up") as terminal:
        assert terminal.end() == 3
    assert "approval needed" not in terminal.shown
    assert (asking.cwd / "build").is_dir()


def test_a_later_question_goes_on_with_the_session(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("one"), ModelReply("two"), ModelReply("three"))
    first = ask("--json", "first").json["session_id"]
    assert ask("--json", "--continue", "second").json["session_id"] == first
    assert ask("--json", "--resume", first, "third").json["session_id"] == first
    assert [message["content"] for message in server.requests[-1]["messages"][1:]] == (
        ["first", "one", "second", "two", "third"]
    )


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--resume", "nonsense"], 1, "no session 'nonsense'"),
        (["--continue"], 1, "there is no session in"),
        (["--toolset", "nonsense"], 2, "nonsense"),
    ],
)
def test_what_cannot_begin_says_why(asking: Cli, options: list[str], code: int, said: str) -> None:
    ran = ask(*options, "hello")
    assert (ran.code, ran.out) == (code, "")
    assert said in " ".join(ran.err.split())


def test_a_model_that_refuses_is_a_failure_with_its_reason(asking: Cli, server: ModelServer) -> None:
    server.say(Fault(401, "wrong key"))
    ran = ask("--json", "hello")
    assert ran.code == 1
    assert ran.json["end"] == "failed"
    assert "OPENAI_API_KEY" in ran.err


def test_no_model_says_how_to_get_one() -> None:
    ran = ask("hello")
    assert ran.code == 1
    assert "HANDRAIL_MODEL" in ran.err


def test_the_time_ends_it_with_its_own_code(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("", [call("terminal", command="sleep 1000", timeout=500)]))
    ran = ask("--timeout", "1", "wait")
    assert ran.code == 124
    assert ran.out == ""


def test_so_many_questions_and_no_more(asking: Cli, server: ModelServer) -> None:
    server.say(*(ModelReply("", [call("terminal", command=f"echo {number}")]) for number in range(5)))
    ran = ask("--max-calls", "2", "go")
    assert ran.code == 1
    assert "budget" in ran.err
    assert len(server.requests) == 2


def test_ctrl_c_stops_it_and_what_was_done_is_kept(asking: Cli, server: ModelServer) -> None:
    server.say(ModelReply("", [call("terminal", command="touch begun; sleep 1000", timeout=500)]), ModelReply("So."))
    with asking.start("ask", "wait") as process:
        assert process.stdin is not None
        process.stdin.close()
        wait_until((asking.cwd / "begun").exists, timeout=60)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert ask("--continue", "go on").out == "So.\n"
    assert "touch begun" in sent(server)
