"""Telegram, Slack and Discord at their wire: against doubles, as their servers cannot be had here."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from handrail.errors import ConfigError
from handrail.platforms.table import accounts
from handrail.testing import ModelReply, ModelServer, call
from tests.support import wait_until

from ..conftest import Server
from .conftest import lives_on
from .doubles import Discord, Double, Message, Slack, Telegram

ADA, BOB = "501", "502"


class Place(NamedTuple):
    """One server with an account on each platform."""

    server: Server
    model: ModelServer
    doubles: dict[str, Double]
    work: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    doubles: dict[str, Double] = {each.kind: each for each in (Telegram(), Slack(), Discord())}
    for double in doubles.values():
        lives_on(double.loop)
    accounts = {name: {"kind": name, "server": double.url} for name, double in doubles.items()}
    tokens = {variable: token for double in doubles.values() for variable, token in double.tokens.items()}
    work = tmp_path_factory.mktemp("work")
    with ModelServer() as model:
        server = Server(
            tmp_path_factory.mktemp("served"),
            work,
            config=json.dumps(
                {
                    "gateway": {"accounts": accounts},
                    "approvals": {"ask_tools": ["write_file"]},
                    "hooks": {
                        "on_session_reset": [{"command": f"cat >{work}/reset.new && mv {work}/reset.new {work}/reset"}]
                    },
                }
            ),
            HANDRAIL_MODEL="scripted",
            OPENAI_BASE_URL=model.base_url,
            OPENAI_API_KEY="k",
            **tokens,
        )
        try:
            for double in doubles.values():
                wait_until(lambda double=double: double.is_connected, timeout=60)  # type: ignore[misc]
                double.say("601", ADA, server.client.post("/v1/people/codes").json()["code"])
                double.hears("601", "Welcome")
            yield Place(server, model, doubles, work)
        finally:
            server.stop()
            for double in doubles.values():
                double.close()


@pytest.fixture(params=["telegram", "slack", "discord"])
def platform(place: Place, request: pytest.FixtureRequest) -> Double:
    return place.doubles[request.param]


def _folder(place: Place, name: str, then: str) -> Path:
    folder = place.work / name
    folder.mkdir()
    place.model.say(ModelReply("", [call("terminal", command=f"rm -rf {folder}")]), ModelReply(then))
    return folder


def test_a_tap_lets_the_command_run_and_the_buttons_go(place: Place, platform: Double) -> None:
    folder = _folder(place, f"tapped-{platform.kind}", "That is done.")
    platform.say("701", ADA, "clean up")
    question = platform.hears("701", "/approve once")
    assert question.buttons == ["once", "try", "task", "session", "always", "deny"]
    assert folder.exists()
    platform.tap(question, ADA, "once")
    platform.hears("701", "That is done.")
    assert not folder.exists()
    wait_until(
        lambda: f"allowed by {platform.kind}:{ADA}, once" in question.texts[-1] and not question.buttons, timeout=60
    )


def test_who_begins_anew_has_another_session_and_the_hooks_are_told(place: Place) -> None:
    telegram = place.doubles["telegram"]
    place.model.say(ModelReply("Hello Ada."), ModelReply("Who are you?"))
    telegram.say("711", ADA, "hello")
    telegram.hears("711", "Hello Ada.")
    telegram.say("711", ADA, "/new")
    telegram.hears("711", "New session")
    telegram.say("711", ADA, "who am I?")
    telegram.hears("711", "Who are you?")
    assert "hello" not in [message.get("content") for message in place.model.requests[-1]["messages"]]
    wait_until((place.work / "reset").exists, timeout=60)
    told = json.loads((place.work / "reset").read_text())
    assert told["platform"] == "telegram"
    assert told["session_id"] != told["new_session_id"]


def test_a_stranger_is_neither_heard_nor_obeyed(place: Place, platform: Double) -> None:
    folder = _folder(place, f"strange-{platform.kind}", "I leave it.")
    platform.say("702", BOB, "clean up")
    platform.hears("702", "handrail pair")
    platform.say("703", ADA, "clean up")
    question = platform.hears("703", "/deny")
    platform.tap(question, BOB, "once")
    platform.say("703", ADA, f"/deny {_id(question)} not now")
    platform.hears("703", "I leave it.")
    wait_until(lambda: f"denied by {platform.kind}:{ADA}: not now" in question.texts[-1], timeout=60)
    assert folder.exists()


def _id(question: Message) -> str:
    found = re.search(r"\[([0-9a-f]{8})\]", question.texts[0])
    assert found
    return found[1]


def _ask_after_another(place: Place, platform: Double, chat: str) -> tuple[Path, Message]:
    """A question is withdrawn while its user still reads it, and another one comes."""
    first = place.work / f"first-{platform.kind}-{chat}"
    place.model.say(ModelReply("", [call("terminal", command=f"rm -rf {first}")]))
    platform.say(chat, ADA, "clean up")
    question = platform.hears(chat, f"rm -rf {first}")
    platform.say(chat, ADA, "/stop")
    wait_until(lambda: "cancelled" in question.texts[-1], timeout=60)
    second = _folder(place, f"second-{platform.kind}-{chat}", "That is done.")
    platform.say(chat, ADA, "now the other one")
    return second, platform.hears(chat, f"rm -rf {second}")


def test_a_yes_that_names_nothing_is_not_for_a_question_that_took_the_place_of_another(
    place: Place, platform: Double
) -> None:
    folder, question = _ask_after_another(place, platform, "721")
    platform.say("721", ADA, "/approve")
    which = platform.hears("721", "Which one?")
    assert f"/approve once {_id(question)}" in which.texts[-1]
    assert str(folder) in which.texts[-1]
    platform.say("721", ADA, f"/approve {_id(question)}")
    platform.hears("721", "That is done.")
    assert not folder.exists()


def test_a_reply_answers_the_question_that_it_is_below(place: Place, platform: Double) -> None:
    folder, question = _ask_after_another(place, platform, "722")
    platform.say("722", ADA, "/approve", reply_to=question.id)
    platform.hears("722", "That is done.")
    assert not folder.exists()
    said = platform.hears("722", f"✅ allowed once [{_id(question)}]")
    assert f"rm -rf {folder}" in said.texts[-1]


def test_a_reply_that_comes_before_we_know_that_the_question_was_posted_answers_it(place: Place) -> None:
    slack = place.doubles["slack"]
    assert isinstance(slack, Slack)
    folder = _folder(place, "quick-slack", "That is done.")
    slack.loop.call_soon_threadsafe(slack.may_answer.clear)
    slack.say("726", ADA, "clean up")
    question = slack.hears("726", f"rm -rf {folder}")
    before = len(slack.acknowledged)
    slack.say("726", ADA, "/approve", reply_to=question.id)
    wait_until(lambda: len(slack.acknowledged) > before, timeout=60)
    slack.loop.call_soon_threadsafe(slack.may_answer.set)
    slack.hears("726", "That is done.")
    assert not folder.exists()


@pytest.mark.parametrize("kind", ["telegram", "discord"])
def test_a_yes_that_was_written_before_the_question_came_is_not_for_it(place: Place, kind: str) -> None:
    platform = place.doubles[kind]
    folder = _folder(place, f"late-{kind}", "I leave it.")
    platform.say("725", ADA, "clean up")
    question = platform.hears("725", f"rm -rf {folder}")
    platform.seconds_on_the_way = 600
    try:
        for words in ("/approve", "/approve all", "/deny"):
            platform.say("725", ADA, words)
    finally:
        platform.seconds_on_the_way = 0
    platform.hears("725", "Which one?")
    assert folder.exists()
    platform.tap(question, ADA, "deny")
    platform.hears("725", "I leave it.")
    assert folder.exists()


def test_an_id_of_another_question_answers_nothing(place: Place, platform: Double) -> None:
    folder = _folder(place, f"other-{platform.kind}", "I leave it.")
    platform.say("723", ADA, "clean up")
    question = platform.hears("723", "/approve once")
    platform.say("723", ADA, "/approve ffffffff")
    platform.hears("723", "Usage: /approve")
    assert folder.exists()
    platform.say("723", ADA, f"/deny {_id(question)[:5]}")
    platform.hears("723", "I leave it.")
    assert folder.exists()


def test_what_would_be_written_is_in_the_question_and_all_of_it_on_request(place: Place, platform: Double) -> None:
    content = "".join(f"line {number} of many\n" for number in range(40))
    target = place.work / f"{platform.kind}.txt"
    ask = {"path": str(target), "content": content}
    place.model.say(ModelReply("", [call("write_file", **ask)]), ModelReply("I leave it."))
    platform.say("724", ADA, "write it")
    question = platform.hears("724", "+line 0 of many")
    assert f"more lines: /show {_id(question)}" in question.texts[0]
    assert "line 39" not in question.texts[0]
    platform.say("724", ADA, f"/show {_id(question)}")
    platform.hears("724", "+line 39 of many")
    platform.say("724", ADA, f"/deny {_id(question)}")
    platform.hears("724", "I leave it.")
    assert not target.exists()


def test_in_a_group_the_agent_must_be_mentioned(place: Place, platform: Double) -> None:
    place.model.say(ModelReply("Yes?"))
    platform.say("704", ADA, "what a day", in_group=True)
    platform.say("704", ADA, "and you?", in_group=True, mention=True)
    platform.hears("704", "Yes?")
    said = [each["content"] for each in place.model.requests[-1]["messages"] if each["role"] == "user"]
    assert said == [f"{ADA}: and you?"]


def test_a_long_answer_becomes_a_file_and_hostile_text_stays_text(place: Place, platform: Double) -> None:
    long = "<!channel> @everyone <b>& " + "word " * 3000
    place.model.say(ModelReply(long))
    platform.say("705", ADA, "tell me much")
    wait_until(lambda: platform.files, timeout=60)
    name, data = platform.files[-1]
    assert (name, data.decode()) == ("answer.md", long.strip())


@pytest.mark.parametrize("kind", ["slack", "discord"])
def test_a_lost_connection_comes_again(place: Place, kind: str) -> None:
    platform = place.doubles[kind]
    platform.cut()
    wait_until(lambda: platform.is_connected, timeout=60)
    place.model.say(ModelReply("Here again."))
    platform.say("706", ADA, "are you there?")
    platform.hears("706", "Here again.")


def test_a_message_that_slack_sends_again_is_heard_once(place: Place) -> None:
    slack = place.doubles["slack"]
    place.model.say(ModelReply("Heard."), ModelReply("Heard it again."))
    event = {"type": "message", "channel": "707", "user": ADA, "text": "once", "channel_type": "im"}
    for envelope in ("707-1", "707-2"):
        payload = {"event_id": "Ev707", "event": event}
        slack.tell({"envelope_id": envelope, "type": "events_api", "payload": payload})
    slack.hears("707", "Heard.")
    slack.say("707", ADA, "and now another")
    slack.hears("707", "Heard it again.")
    said = [each["content"] for each in place.model.requests[-1]["messages"] if each["role"] == "user"]
    assert said == ["once", "and now another"]


@pytest.mark.filterwarnings("ignore:'audioop' is deprecated:DeprecationWarning")  # discord.py, which can speak too
@pytest.mark.parametrize(
    ("kind", "variable"),
    [("telegram", "TELEGRAM_BOT_TOKEN"), ("slack", "SLACK_BOT_TOKEN"), ("discord", "DISCORD_BOT_TOKEN")],
)
def test_a_wrong_token_is_named_and_not_tried_again(
    place: Place, kind: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = place.doubles[kind]
    for name in double.tokens:
        monkeypatch.setenv(name, "1:wrong")
    [account] = accounts({kind: {"kind": kind, "server": double.url}})

    async def connect() -> None:
        try:
            await account.adapter.connect()
        finally:
            await account.adapter.disconnect()

    with pytest.raises(ConfigError, match=variable):
        asyncio.run(connect())


def test_discord_tells_what_was_said_while_the_line_was_cut(place: Place) -> None:
    discord = place.doubles["discord"]
    place.model.say(ModelReply("I heard that."))
    discord.cut()
    discord.say("707", ADA, "do you hear me?")
    discord.hears("707", "I heard that.")
