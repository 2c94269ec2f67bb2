"""People in rooms of a real Matrix server talk with an agent, and answer what it asks."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from handrail.testing import ModelReply, call
from tests.services.synapse import Matrix
from tests.support import wait_until

from .conftest import Place


def _asks_to_delete(place: Place, folder: Path, then: str = "That is done.") -> None:
    place.model.say(ModelReply("", [call("terminal", command=f"rm -rf {folder}")]), ModelReply(then))


def test_who_is_not_paired_is_told_how_and_nothing_else(place: Place) -> None:
    room = place.room("bob")
    asked = len(place.model.requests)
    room.say("do something", by="bob")
    room.hears("handrail pair")
    assert len(place.model.requests) == asked


def test_an_answer_comes_and_the_chat_stays_one_session(place: Place) -> None:
    room = place.room()
    place.model.say(ModelReply("Hello Ada."), ModelReply("You said hello."))
    room.say("hello")
    room.hears("Hello Ada.")
    room.say("what did I say?")
    room.hears("You said hello.")
    texts = [message.get("content") for message in place.model.requests[-1]["messages"]]
    assert "hello" in texts
    assert "Hello Ada." in texts


def test_a_reaction_lets_the_command_run(place: Place) -> None:
    room, folder = place.room(), place.folder("by-reaction")
    _asks_to_delete(place, folder)
    room.say("clean up")
    question = room.hears("/approve once")
    assert folder.exists()
    room.react(question, "👍🏽")
    room.hears("That is done.")
    assert not folder.exists()
    edit = room.hears("allowed by chat:@ada:localhost, once")
    assert edit["content"]["m.relates_to"]["event_id"] == question["event_id"]


def test_a_command_lets_the_command_run(place: Place) -> None:
    room, folder = place.room(), place.folder("by-command")
    _asks_to_delete(place, folder)
    room.say("clean up")
    room.hears("/approve once")
    room.say("/approve")
    room.hears("That is done.")
    assert not folder.exists()


def test_a_no_keeps_the_folder_and_the_model_is_told_why(place: Place) -> None:
    room, folder = place.room(), place.folder("denied")
    _asks_to_delete(place, folder, "I leave it.")
    room.say("clean up")
    room.hears("/deny")
    room.say("/deny it is still needed")
    room.hears("I leave it.")
    assert folder.exists()
    assert "it is still needed" in str(place.model.requests[-1]["messages"][-1])
    room.hears("denied by chat:@ada:localhost: it is still needed")


def test_an_answer_in_the_console_shows_in_the_chat_and_a_later_one_changes_nothing(place: Place) -> None:
    room, folder = place.room(), place.folder("by-console")
    _asks_to_delete(place, folder, "I leave it.")
    room.say("clean up")
    question = room.hears("/deny")
    (waiting,) = place.server.waiting()
    place.server.client.post(f"/v1/approvals/{waiting['id']}", json={"decision": "deny"})
    room.hears("denied by web:")
    room.react(question, "✅")
    room.hears("Too late")
    assert folder.exists()


def test_a_stranger_cannot_answer(place: Place) -> None:
    room, folder = place.room("ada", "bob"), place.folder("strange")
    _asks_to_delete(place, folder, "I leave it.")
    room.say(f"{place.bot}: clean up", **{"m.mentions": {"user_ids": [place.matrix.id_of(place.bot)]}})
    question = room.hears("/deny")
    room.react(question, "✅", by="bob")
    # Events come in order: when ada's answer has arrived, bob's had arrived before.
    room.react(question, "❌")
    room.hears("denied by chat:@ada:localhost")
    room.hears("I leave it.")
    assert folder.exists()


def test_in_a_group_only_what_is_for_the_agent_is_heard(place: Place) -> None:
    room = place.room("ada", "bob")
    place.model.say(ModelReply("Yes?"))
    room.say("bob, have you seen this?")
    room.say("and you?", **{"m.mentions": {"user_ids": [place.matrix.id_of(place.bot)]}})
    room.hears("Yes?")
    said = [each["content"] for each in place.model.requests[-1]["messages"] if each["role"] == "user"]
    assert said == ["@ada:localhost: and you?"]


def test_a_long_answer_becomes_a_file(place: Place) -> None:
    room = place.room()
    place.model.say(ModelReply("word " * 3000))
    room.say("tell me much")
    event = room.hears("answer.md")
    assert event["content"]["msgtype"] == "m.file"
    assert event["content"]["info"]["size"] == len("word " * 3000) - 1


def test_stop_stops_and_status_tells(place: Place) -> None:
    room, folder = place.room(), place.folder("stopped")
    _asks_to_delete(place, folder)
    room.say("clean up")
    room.hears("/deny")
    room.say("/status")
    room.hears("Waiting for your answer")
    room.say("/stop")
    room.hears("⏹ stopped")
    room.hears("the call was cancelled")
    assert folder.exists()
    place.model._script.clear()


def test_yolo_is_for_one_chat(place: Place) -> None:
    room, folder = place.room(), place.folder("yolo")
    room.say("/yolo")
    room.hears("Everything in this chat is approved")
    _asks_to_delete(place, folder)
    room.say("clean up")
    room.hears("That is done.")
    assert not folder.exists()
    other, kept = place.room(), place.folder("no-yolo")
    _asks_to_delete(place, kept, "I leave it.")
    other.say("clean up")
    other.react(other.hears("/deny"), "❌")
    other.hears("I leave it.")
    assert kept.exists()


def test_a_question_from_elsewhere_comes_home(place: Place) -> None:
    folder = place.folder("from-elsewhere")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(place.server.call, "terminal", command=f"rm -rf {folder}")
        place.home.react(place.home.hears(str(folder)), "✅")
        running.result(60)
    assert not folder.exists()


def test_help_and_tools_tell_what_there_is(place: Place) -> None:
    room = place.room()
    room.say("/tools")
    assert "terminal" in room.hears("Tools here")["content"]["body"]
    room.say("/nonsense")
    room.hears("Unknown command /nonsense")


def test_an_answer_is_said_once_though_the_line_was_cut(place: Place) -> None:
    room = place.room()
    before = place.line.turned_away

    def answers(*_: object) -> ModelReply:
        place.line.cut()
        return ModelReply("Here I am.")

    place.model.say(answers)
    room.say("are you there?")
    try:
        wait_until(lambda: place.line.turned_away > before + 1, timeout=60)
    finally:
        place.line.mend()
    room.hears("Here I am.")
    place.model.say(ModelReply("Yes."))
    room.say("still?")
    room.hears("Yes.")
    assert room.shown() == ["Here I am.", "Yes."]


def test_an_answer_is_said_once_though_its_receipt_was_lost(place: Place) -> None:
    room = place.room()
    place.model.say(ModelReply("Here I am."))
    place.line.lose_answer_to(b"/send/m.room.message/")
    room.say("are you there?")
    wait_until(lambda: place.line.has_lost, timeout=60)
    place.model.say(ModelReply("Yes."))
    room.say("still?")
    room.hears("Yes.")
    assert room.shown() == ["Here I am.", "Yes."]


def test_a_question_is_asked_once_though_the_line_was_cut(place: Place) -> None:
    room, folder = place.room(), place.folder("kept")
    before = place.line.turned_away

    def asks(*_: object) -> ModelReply:
        place.line.cut()
        return ModelReply("", [call("terminal", command=f"rm -rf {folder}")])

    place.model.say(asks, ModelReply("I leave it."))
    room.say("clean up")
    try:
        wait_until(place.server.waiting, timeout=60)
        wait_until(lambda: place.line.turned_away > before + 1, timeout=60)
    finally:
        place.line.mend()
    room.react(room.hears("/deny"), "❌")
    room.hears("I leave it.")
    assert folder.exists()
    room.hears("denied by chat:@ada:localhost")
    assert len([each for each in room.bodies() if "No answer within" in each]) == 1


def test_a_server_that_was_killed_asks_no_second_time_and_goes_on(place: Place) -> None:
    room, folder = place.room(), place.folder("killed")
    command = call("terminal", command=f"rm -rf {folder}")
    place.model.say(ModelReply("", [command]))
    room.say("clean up")
    question = room.hears("/approve once")
    place.server.stop(signal.SIGKILL)
    place.model.say(ModelReply("", [command]), ModelReply("That is done."))
    room.react(question, "✅")
    place.server.start()
    room.hears("That is done.")
    assert not folder.exists()
    room.hears("allowed by chat:@ada:localhost, once")
    asked = [each for each in room.events() if "/approve once" in each["content"]["body"]]
    assert len(asked) == 1


def test_silence_is_a_no(matrix_service: Matrix, tmp_path: Path) -> None:
    place = Place(matrix_service, tmp_path, timeout=8.0)
    try:
        place.pair()
        room, folder = place.room(), place.folder("silent")
        _asks_to_delete(place, folder, "Nobody answered.")
        room.say("clean up")
        question = room.hears("/approve once")
        edit = room.hears("nobody answered in time: denied")
        assert edit["content"]["m.relates_to"]["event_id"] == question["event_id"]
        room.hears("Nobody answered.")
        assert folder.exists()
        assert place.matrix.id_of("ada") in place.server.cli("pair", "list")
    finally:
        place.close()
