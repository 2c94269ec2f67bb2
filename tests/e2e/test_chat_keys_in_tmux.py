"""The keys and lines of `handrail chat` that people know from other agents, each tried in a real terminal of 80 columns."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from handrail.config.config_file import ConfigFile
from handrail.protocols import ModelReply
from handrail.testing import call

from ..support import wait_until
from ..tmux import PATIENCE_SECONDS
from .test_chat_in_tmux import CHAT, LONG, READY, Desk, desk

__all__ = ["desk"]
# One grey pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGOoBwAAgQCAS0ea3QAAAABJRU5ErkJggg==")
ASKED = "once, try, task, session, always, deny, edit, instead?"
MENU_LINES = 8
PLAIN_SERVER = Path(__file__).parents[1] / "mcp_servers" / "plain.py"


def _asks(desk: Desk, command: str) -> str:
    """The screen with the question whether this may run."""
    desk.server.say(ModelReply("", [call("terminal", command=command)]), ModelReply("As you wish."))
    desk.say("Do it")
    return desk.tmux.wait_for(ASKED)


def test_the_approval_menu_is_short_marks_what_is_dangerous_and_says_how_far_a_yes_goes(desk: Desk) -> None:
    desk.chat()
    screen = _asks(desk, "ls; rm -rf build")
    menu = screen[screen.index("── approval needed") :].rstrip().splitlines()
    assert len(menu) <= MENU_LINES
    assert menu[1:3] == ["    ls; rm -rf build", "        ^^^^^^^^^^^^"]
    assert "  task and longer: deletes a tree of files in this folder" in menu
    desk.tmux.type("Right", "Right")
    desk.tmux.wait_for("once, [try], task", "  run it with connections held; then keep or undo it\n")
    desk.tmux.type("Right")
    desk.tmux.wait_for("once, try, [task], session", "  this kind in this task")
    desk.tmux.type("t")  # begins two words, so it allows nothing by itself
    desk.tmux.wait_for("once, [try], task")
    desk.tmux.type("t")
    desk.tmux.wait_for("once, try, [task], session")
    desk.tmux.type("Escape")
    screen = desk.answered("As you wish.")
    assert "this kind in this task" not in screen
    assert "(waited " in screen, "it never ran"
    assert "    Denied by you\n" in screen
    assert (desk.folder / "build").is_dir()


def test_a_command_is_changed_before_it_is_allowed_and_judged_again(desk: Desk) -> None:
    (desk.folder / "build2").mkdir()
    desk.chat()
    _asks(desk, "rm -rf build2 build")
    desk.tmux.type("e")
    desk.tmux.wait_for("> rm -rf build2 build")
    desk.tmux.type(*["BSpace"] * 6)
    desk.tmux.type("Enter")
    wait_until(
        lambda: desk.tmux.screen().count("approval needed") == 2 and ASKED in desk.tmux.screen(),
        timeout=PATIENCE_SECONDS,
    )  # it asks again, and may be answered
    desk.tmux.type("o")
    screen = desk.answered("As you wish.")
    assert "Changed to: rm -rf build2" in screen
    assert (desk.folder / "build").is_dir()
    assert not (desk.folder / "build2").exists()


def test_a_part_of_what_a_tried_command_did_is_kept(desk: Desk) -> None:
    desk.chat()
    _asks(desk, "touch one two; rm -rf build")
    desk.tmux.type("t")
    desk.tmux.wait_for("[try]")
    desk.tmux.type("Enter")
    desk.tmux.wait_for("was tried, and has done this", "pick")
    desk.tmux.type("p")
    screen = desk.tmux.wait_for("Which to keep?")
    (number,) = re.findall(r"(\d) \+ \S+/one\b", screen)
    desk.tmux.type("-l", number)
    desk.tmux.type("Enter")
    desk.answered("As you wish.")
    assert {each.name for each in desk.folder.iterdir()} >= {"one", "build"}
    assert not (desk.folder / "two").exists()


def test_what_holds_commands_back_is_said_in_full_only_once(desk: Desk) -> None:
    desk.chat()
    assert "the kernel protects Handrail's own files" in " ".join(desk.tmux.screen().split())
    desk.open_another_terminal()
    desk.chat()
    screen = desk.tmux.wait_for("Commands are contained (/status).")
    assert "the kernel protects" not in screen
    desk.say("/status")
    desk.tmux.wait_for("safety  commands are contained: writes outside")


def test_a_no_says_what_to_do_instead(desk: Desk) -> None:
    desk.chat()
    _asks(desk, "rm -rf build")
    desk.tmux.type("i")
    desk.tmux.wait_for("What should it do instead?")
    desk.tmux.type("-l", "use git clean")
    desk.tmux.type("Enter")
    desk.answered("As you wish.")
    assert "use git clean" in desk.told()


def test_what_a_command_printed_stays_when_it_is_stopped_for_you_and_for_the_model(desk: Desk) -> None:
    desk.chat()
    waits = "seq -f 'line %g' 4; until [ -e go ]; do sleep 0.1; done"
    for key, ends in (("Escape", "Interrupted by you."), ("C-c", "Interrupted by you."), ("", "Too slow.")):
        limit = {} if key else {"timeout": 1}
        desk.server.say(ModelReply("", [call("terminal", command=waits, **limit)]), *[] if key else [ModelReply(ends)])
        desk.tmux.type("C-l")
        desk.say("Count")
        desk.tmux.wait_for("    line 4")
        if key:
            desk.tmux.type(key)
        screen = desk.answered(ends)
        assert f"{'Stopped' if key else 'Timed out'}; output so far:\n    line 1\n    line 2\n" in screen
        desk.server.say(ModelReply("I see."))
        desk.say("What did it print?")
        desk.answered("I see.")
        assert "line 1\\\\nline 2\\\\nline 3" in desk.told()
    assert desk.tmux.screen(history=True).count("› Count") == 3, "the history has no prompt that was erased"


def test_a_command_typed_while_it_works_runs_afterwards_and_the_model_does_not_hear_it(desk: Desk) -> None:
    desk.chat()
    waits = call("terminal", command="until [ -e go ]; do sleep 0.1; done")
    desk.server.say(ModelReply("", [waits]), ModelReply("Waited."))
    desk.say("Wait for it")
    desk.tmux.wait_for("terminal until")
    desk.tmux.type("-l", "/title")
    desk.tmux.type("Enter")
    desk.tmux.wait_for("› /title (next)")
    (desk.folder / "go").touch()
    desk.tmux.wait_for("Waited.", "› /title\nWait for it\n", READY)
    assert "/title" not in desk.told()


def test_enter_sends_what_is_typed_while_a_command_of_your_own_runs(desk: Desk) -> None:
    desk.chat()
    desk.server.say(ModelReply("Hello you."))
    desk.say("!touch begun; until [ -e go ]; do sleep 0.1; done")
    wait_until((desk.folder / "begun").exists)
    desk.tmux.type("-l", "Hello there")
    desk.tmux.type("Enter")
    (desk.folder / "go").touch()
    assert "› Hello there\n" in desk.answered("Hello you.")


def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_back(desk: Desk) -> None:
    desk.server.say(ModelReply("", [call("terminal", command=f"echo started; {LONG}")]))
    desk.chat()
    for before in ("", "Run it"):  # at the prompt, and while the agent works
        if before:
            desk.say(before)
            desk.tmux.wait_for("\n    started")
        desk.tmux.type("C-z")
        desk.tmux.wait_for("Stopped")
        desk.tmux.type("clear; echo un$((1 + 1))touched", "Enter")
        assert desk.tmux.wait_for("un2touched\nbash").startswith("un2touched\nbash")  # nothing is drawn over it
        desk.tmux.type("fg", "Enter")
        desk.tmux.wait_for("\n    started" if before else READY)
    desk.tmux.type("Escape")
    assert "Stopped; output so far:\n    started" in desk.answered("Interrupted by you")
    wait_until(lambda: not desk.runs(LONG))


def test_shift_tab_goes_through_the_modes_and_they_hold(desk: Desk) -> None:
    desk.chat()
    for mode in ("yolo", "plan"):
        desk.tmux.type("BTab")
        desk.tmux.wait_for(f"{mode} (Shift-Tab)")
    desk.server.say(ModelReply("", [call("write_file", path="new.txt", content="x")]), ModelReply("Only planned."))
    desk.say("Write it")
    desk.tmux.wait_for("Only planned.", "plan (Shift-Tab)")
    assert not (desk.folder / "new.txt").exists()
    desk.tmux.type("BTab")
    desk.tmux.wait_for("ask (Shift-Tab)")
    desk.server.say(ModelReply("", [call("write_file", path="new.txt", content="x")]), ModelReply("Written."))
    desk.say("Now write it")
    desk.tmux.wait_for("• edits files (mode.edit)", "task and longer: edits files in this folder")
    desk.tmux.type("o")
    desk.tmux.wait_for("Written.", "ask (Shift-Tab)")
    assert (desk.folder / "new.txt").read_text() == "x"


def test_where_commands_are_not_contained_the_chat_starts_in_ask(desk: Desk) -> None:
    desk.tmux.type("export HANDRAIL_TERMINAL_PROFILE=open", "Enter")
    desk.tmux.type(f"clear; {CHAT}", "Enter")
    desk.tmux.wait_for("ask (Shift-Tab)")
    desk.server.say(ModelReply("", [call("terminal", command="touch made")]), ModelReply("Made."))
    desk.say("Make it")
    desk.tmux.wait_for("• runs touch (mode.command.touch)")
    desk.tmux.type("Escape")
    desk.tmux.wait_for("Made.", "ask (Shift-Tab)")
    assert not (desk.folder / "made").exists()


def test_one_key_switches_the_profile_of_commands(desk: Desk) -> None:
    desk.chat()
    desk.tmux.wait_for("contained · /help")
    desk.tmux.type("F2")
    desk.tmux.wait_for("ask (Shift-Tab)", "open · /help")  # nothing contains them now
    desk.tmux.type("-l", "!grep NoNewPrivs /proc/self/status; touch ~/outside; ls ~/outside")
    desk.tmux.type("Enter")
    desk.tmux.wait_for("/outside\n")
    desk.tmux.type("F2")
    desk.tmux.wait_for("auto (Shift-Tab)", "contained · /help")
    desk.tmux.type("-l", "/profile sealed")
    desk.tmux.type("Enter")
    desk.tmux.wait_for("● sealed", "sealed · /help")


def test_files_and_images_go_along_by_at_and_a_long_paste_is_folded(desk: Desk) -> None:
    (desk.folder / "picture.png").write_bytes(PNG)
    (desk.folder / "lib").mkdir()
    (desk.folder / "lib" / "orders.py").write_text("TOTAL = 41\n")
    desk.chat()
    desk.tmux.type("-l", "look at @ordr")
    desk.tmux.wait_for("@lib/orders.py")
    desk.tmux.type("Tab")
    desk.tmux.wait_for("› look at @lib/orders.py")
    desk.server.say(ModelReply("Read."))
    desk.tmux.type("Escape")
    desk.tmux.type("-l", " and @picture.png ")
    desk.tmux.paste("\n".join(f"row {number}" for number in range(400)))
    desk.tmux.wait_for("[Pasted text #1 +400 lines]")
    desk.tmux.type("Enter")
    desk.answered("Read.")
    told = desk.told()
    assert "TOTAL = 41" in told
    assert "row 399" in told
    assert "data:image/png;base64," in told
    waits = call("terminal", command="until [ -e go ]; do sleep 0.1; done")
    desk.server.say(ModelReply("", [waits]), ModelReply("Waited."))
    desk.say("Wait for it")
    desk.tmux.wait_for("terminal until")
    desk.tmux.paste("\n".join(f"later {number}" for number in range(400)))
    desk.tmux.wait_for("› [Pasted text #2 +400 lines]", "terminal until")
    (desk.folder / "go").touch()
    assert "later 398" not in desk.answered("Waited.")
    desk.tmux.wait_for("› [Pasted text #2 +400 lines]\n")


def test_the_status_line_shows_what_changes_and_the_todo_list_stays_in_view(desk: Desk) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk", "."], cwd=desk.folder, check=True)
    todos = [
        {"id": "1", "content": "Read it", "status": "completed"},
        {"id": "2", "content": "Fix it", "status": "in_progress"},
    ]
    desk.server.say(
        ModelReply("", [call("todo", todos=todos)]),
        ModelReply("", [call("terminal", command="sleep 300", background=True)]),
        ModelReply(
            "", [call("terminal", command="for i in $(seq 500); do echo tick $i; sleep 0.5; done", timeout=400)]
        ),
        ModelReply("Never said."),
    )
    desk.chat()
    desk.say("Work")
    desk.tmux.wait_for("\n☑ Read it\n▶ Fix it\n scripted · auto · ", "todo 1/2", "tick 3", "Esc stops it")
    desk.tmux.type("BTab")
    desk.tmux.wait_for(" scripted · yolo · ")
    desk.tmux.type("BTab", "BTab", "BTab")
    desk.tmux.type("Escape")
    desk.answered("Interrupted by you.")
    line = desk.tmux.screen().rstrip().splitlines()[-1]
    for fact in ("scripted", "auto (Shift-Tab)", "% context", "todo 1/2", "1 in background", "trunk"):
        assert fact in line
    assert not line.rstrip().endswith("·"), "what does not fit is left out whole"
    (left,) = json.loads(subprocess.check_output([sys.executable, "-m", "handrail", "ps", "--json"]))
    subprocess.run([sys.executable, "-m", "handrail", "ps", "kill", left["session_id"]], check=True)


def test_a_diff_has_line_numbers_colours_and_marked_words(desk: Desk) -> None:
    desk.tmux.type("unset NO_COLOR", "Enter")
    (desk.folder / "greet.py").write_text('# first\nprint("Hello there")\n')
    patch = call("patch", path="greet.py", old_string="Hello there", new_string="Hello you")
    desk.server.say(ModelReply("", [patch]), ModelReply("Changed."))
    desk.chat()
    desk.say("Change it")
    desk.answered("Changed.")
    lines = desk.tmux._tmux("capture-pane", "-p", "-e").splitlines()
    (removed,) = [line for line in lines if "there" in line]
    (added,) = [line for line in lines if "Hello " in line and "you" in line]
    assert "2 " in removed
    assert "48;5;52" in removed, "a red ground"
    assert "48;5;22" in added, "a green ground"
    assert added.count("\x1b[48;5;") >= 2, "the changed word stands out of its line"


def test_a_call_shows_how_long_it_ran_and_how_long_it_waited(desk: Desk) -> None:
    desk.chat()
    _asks(desk, "rm -rf build")
    desk.tmux.type("o")
    assert "(ran " in desk.answered("As you wish.")
    assert ", waited " in desk.tmux.screen()


def test_a_model_that_there_is_not_is_refused_and_coding_tools_are_at_hand(desk: Desk) -> None:
    desk.chat()
    desk.say("/model nope")
    desk.tmux.wait_for("the provider has no model 'nope'; known: scripted", READY)
    desk.tmux.type("-l", "/model sc")
    desk.tmux.wait_for("› /model sc\n            scripted")
    desk.tmux.type("Tab")
    desk.tmux.wait_for("› /model scripted")
    desk.tmux.type("C-u")
    desk.server.say(ModelReply("Hello."))
    desk.say("Hello")
    desk.answered("Hello.")
    offered = {tool["function"]["name"] for tool in desk.server.requests[-1]["tools"]}
    assert {"terminal", "patch", "tool_search"} <= offered
    assert not {"cronjob", "text_to_speech", "rl_start"} & offered
    desk.tmux.type("C-l")
    desk.say("/toolsets")
    screen = desk.tmux.wait_for("○ off, or cannot be used")
    assert "●  terminal" in screen
    assert "◐  cronjob" in screen
    assert "○  homeassistant" in screen
    assert "handrail-" not in screen


def test_undo_and_rewind_take_back_files_and_conversation_together_or_apart(desk: Desk) -> None:
    desk.chat()
    for number in (1, 2):
        write = call("write_file", path=f"{number}.txt", content="x")
        desk.server.say(ModelReply("", [write]), ModelReply(f"Wrote {number}."))
        desk.say(f"Write {number}")
        desk.answered(f"Wrote {number}.")
    desk.say("/undo files")
    desk.tmux.wait_for("is undone: ", "2.txt", READY)
    assert not (desk.folder / "2.txt").exists()
    desk.tmux.type("C-l")
    desk.say("/rewind")
    desk.tmux.wait_for("Write 1", "add `message`")
    desk.say("/rewind 1")
    desk.tmux.wait_for("› Write 1", READY)
    assert not (desk.folder / "1.txt").exists()
    desk.server.say(ModelReply("Again."))
    desk.tmux.type("Enter")
    desk.answered("Again.")
    assert "Wrote 1" not in json.dumps(desk.server.requests[-1]["messages"])


def test_every_command_that_people_try_says_something(desk: Desk) -> None:
    desk.chat()
    for command, shown in {
        "/mcp": "handrail mcp add",
        "/skills": "handrail skills list",
        "/status": "folder  ",
        "/permissions": "it asks before anything destructive",
        "/theme": "Others: ",
        "/cost": "tokens",
        "/context": "of the 128,000 tokens that fit",
        "/rename Prices": "Prices",
        "/copy": "",
        "/diff": "",
    }.items():
        desk.tmux.type("C-l")
        desk.say(command)
        screen = desk.tmux.wait_for(f"› {command}", shown, READY)
        assert "no command" not in screen.lower(), screen
        desk.tmux.wait_for(READY)


def test_an_image_goes_along_by_its_path_and_from_the_clipboard(desk: Desk) -> None:
    (desk.folder / "picture.png").write_bytes(PNG)
    programs = desk.folder / "bin"
    programs.mkdir()
    (programs / "wl-paste").write_text(f"#!/bin/sh\ncat {desk.folder}/picture.png\n")
    (programs / "wl-paste").chmod(0o755)
    desk.tmux.type(f"export PATH={programs}:$PATH", "Enter")
    desk.chat()
    for typed in ("-l", f"What is {desk.folder}/picture.png"), ("C-v",):
        desk.server.say(ModelReply("A pixel."))
        desk.tmux.type("C-l")
        desk.tmux.type(*typed)
        desk.tmux.wait_for(".png")
        desk.tmux.type("Enter")
        desk.answered("A pixel.")
        assert "data:image/png;base64," in json.dumps(desk.server.requests[-1]["messages"][-1])


def test_a_child_agent_is_seen_while_it_works_and_can_be_opened(desk: Desk) -> None:
    desk.server.say(
        ModelReply("", [call("delegate_task", tasks=[{"goal": "Count the files"}])]),
        ModelReply("I count them.", [call("terminal", command="until [ -e counted ]; do sleep 0.1; done")]),
        ModelReply("There is one."),
        ModelReply("One file."),
    )
    desk.chat()
    desk.say("How many files are there?")
    desk.tmux.wait_for("[Count the files] ", "Ctrl-O shows what a child agent does")
    desk.tmux.type("C-o")
    desk.tmux.wait_for("▸ Count the files · 1 of 1, Ctrl-O: next", "  I count them.")
    (desk.folder / "counted").touch()
    desk.answered("One file.")
    desk.tmux.type("C-l")
    desk.say("/children")
    desk.tmux.wait_for("Count the files", "/children ID shows one.")


def test_own_commands_skills_and_what_mcp_servers_offer_are_used_by_name(desk: Desk) -> None:
    (desk.home / "commands").mkdir()
    (desk.home / "commands" / "release.md").write_text("# Make a release\nRelease version $ARGUMENTS.\n")
    (desk.home / "skills" / "tidy").mkdir(parents=True)
    (desk.home / "skills" / "tidy" / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidy up.\n---\nTidy.\n")
    ConfigFile().set(("mcp_servers", "plain"), {"command": sys.executable, "args": [os.fspath(PLAIN_SERVER)]})
    desk.chat()
    desk.tmux.type("-l", "/rel")
    desk.tmux.wait_for("/release", "Make a release")
    desk.tmux.type("C-u")
    for typed, sent in {
        "/release 1.2": "Release version 1.2.",
        "/tidy the tests": "Use the skill 'tidy'",
        "/plain:greet Ada": "Say hello to Ada.",
        "Sum up @plain:notes://one": "the note",
    }.items():
        desk.server.say(ModelReply("So be it."))
        desk.tmux.type("C-l")
        desk.say(typed)
        desk.answered("So be it.")
        assert sent in json.dumps(desk.server.requests[-1]["messages"][-1])
    desk.tmux.type("-l", "@plain:")
    desk.tmux.wait_for("@plain:notes://one")


def test_the_status_line_of_a_narrow_terminal_has_whole_facts_while_it_works(desk: Desk) -> None:
    desk.tmux.resize(60, 24)
    desk.server.say(ModelReply("", [call("terminal", command="sleep 300")]), ModelReply("Never said."))
    desk.chat()
    desk.say("Wait")
    line = desk.tmux.wait_for("Esc stops it", " scripted · auto · ").rstrip().splitlines()[-1]
    assert line.startswith(" scripted · auto · ")
    assert not line.endswith("…"), line
    desk.tmux.type("Escape")
    desk.answered("Interrupted by you.")
