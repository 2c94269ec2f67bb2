"""`handrail mcp`, as a person types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.mcp_client import manager
from handrail.model_tools import reset
from tests.cli.conftest import Ran, run_here
from tests.mcp_servers.guarded import Authority, guarded
from tests.mcp_servers.serving import listening, serving
from tests.support import PYTHON, wait_until

SERVERS = Path(__file__).parents[2] / "mcp_servers"


def here(*args: str) -> Ran:
    """In this process, where everything is imported already; what is configured is read anew each time."""
    reset()
    return run_here(*args)


def test_a_server_that_was_added_can_be_called(cli: Any, plain_server: str) -> None:
    assert cli("mcp", "add", "plain", "--", plain_server).code == 0
    assert cli("call", "mcp__plain__add", "a=2", "b=3").json == {"structured": {"result": 5}}
    tested = here("mcp", "test", "plain", "--json")
    assert tested.json["state"] == "ready", tested.err
    assert "mcp__plain__say" in here("mcp", "tools", "plain").out


def test_adding_a_server_without_the_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, plain_server: str
) -> None:
    monkeypatch.setattr(manager, "find_spec", lambda _: None)
    ran = here("mcp", "add", "plain", "--", plain_server)
    assert ran.code == 0
    assert "[mcp]', before it can be used" in ran.err
    for command in (["tools"], ["schema"], ["call", "read_file", "path=/etc/hostname"], ["mcp", "list"]):
        assert here(*command).code == 0, command


def test_servers_are_listed_shown_and_removed(cli: Any) -> None:
    assert cli("mcp", "list", "--json").json == []
    header = "Authorization: Bearer abcdefghijklmnop"
    assert cli("mcp", "add", "far", "https://example.com/mcp", "--header", header, "--header", "X: ${NAME}").code == 0
    (server,) = cli("mcp", "list", "--offline", "--json").json
    assert (server["name"], server["way"]) == ("far", "http")
    shown = cli("mcp", "get", "far")
    assert shown.json["headers"] == {"Authorization": "[hidden]", "X": "${NAME}"}
    assert cli("mcp", "add", "far", "https://example.com/other").code == 2, "the name is taken"
    assert cli("mcp", "remove", "far").code == 0
    assert cli("mcp", "list", "--json").json == []
    assert cli("mcp", "remove", "far").code == 2


def test_the_list_and_the_doctor_show_the_health_of_every_server(cli: Any, plain_server: str) -> None:
    assert cli("mcp", "add", "plain", "--", plain_server).code == 0
    assert cli("mcp", "add", "crash", "--", "sh", "-c", "echo no key >&2; exit 3").code == 0
    assert cli("mcp", "add", "off", "--", "none").code == 0
    assert cli("config", "set", "mcp_servers.off.enabled", "false").code == 0
    assert cli("config", "set", "mcp_servers.half.timeout", "30").code == 0
    states: dict[str, str] = {}

    def is_ready() -> bool:  # a busy machine may need longer than the list waits
        states.update({each["name"]: each["state"] for each in cli("mcp", "list", "--json").json})
        return states["plain"].startswith("ready: ")

    wait_until(is_ready)
    assert states["crash"] == "it ended with code 3: no key"
    assert states["off"] == "not enabled"
    offline = {each["name"]: each["state"] for each in cli("mcp", "list", "--offline", "--json").json}
    assert (offline["plain"], offline["crash"]) == ("configured", "configured")
    assert cli("config", "set", "tools.enabled_toolsets", '["web", "mcp-plain", "mcp-off"]').code == 0
    assert cli("schema").code == 0
    found: dict[str, Any] = {}

    def is_examined() -> bool:
        found.update({each["what"]: each for each in cli("doctor", "--json").json["findings"]})
        return bool(found["MCP server plain"]["health"] == "ok")

    wait_until(is_examined)
    assert "tools.enabled_toolsets, .disabled_toolsets" not in found
    assert {name: each["health"] for name, each in found.items() if name.startswith("MCP")} == {
        "MCP server plain": "ok",
        "MCP server crash": "broken",
        "MCP server off": "missing",
        "MCP server half": "broken",
    }
    assert "no key" in found["MCP server crash"]["detail"]
    assert cli("doctor").code == 1


def test_a_server_that_waits_to_be_confirmed_is_not_called_ready(cli: Any, home: Path, plain_server: str) -> None:
    config = home / "config.yaml"
    config.write_text("approvals: {timeout: 50}\n")
    assert cli("tools").code == 0  # confirms what it finds
    config.write_text(f"approvals: {{timeout: 50}}\nmcp_servers:\n  late: {{command: {plain_server}}}\n")
    (state,) = [each["state"] for each in cli("mcp", "list", "--json").json]
    assert "`handrail config confirm`" in state
    for command in ("test", "tools"):
        ran = cli("mcp", command, "late")
        assert ran.code == 2
        assert "config confirm" in ran.err
        assert "Traceback" not in ran.err


@pytest.mark.parametrize("command", [["tools"], ["schema"], ["mcp", "list"], ["doctor"]])
def test_a_missing_package_is_said_and_everything_else_goes_on(cli: Any, command: list[str], plain_server: str) -> None:
    assert cli("mcp", "add", "plain", "--", plain_server).code == 0
    folder = cli.cwd / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    cli.env["PYTHONPATH"] = str(folder)
    ran = cli(*command)
    assert ran.code == 0, ran.err
    assert "[mcp]'" in ran.out + ran.err
    assert "Traceback" not in ran.err


def test_a_login_is_made_kept_and_forgotten(cli: Any) -> None:
    authority, bound = Authority(), listening()
    base = f"http://127.0.0.1:{bound.getsockname()[1]}"
    browser = cli.cwd / "browser"
    browser.write_text(
        "#!/bin/sh\n"
        f"exec {PYTHON} -S -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()' \"$1\"\n"
    )
    browser.chmod(0o755)
    with serving(guarded(authority, base, "/mcp").streamable_http_app(), bound):
        here("mcp", "add", "far", f"{base}/mcp")
        assert "handrail mcp login far" in here("mcp", "test", "far").err
        ran = cli("mcp", "login", "far", BROWSER=f"{browser} %s &")
        assert ran.code == 0, ran.err
        assert "Log in at this page: " in ran.err
        assert here("call", "mcp__far__secret").json == {"content": "the secret"}
        assert "is forgotten" in here("mcp", "logout", "far").out
        assert "handrail mcp login far" in here("mcp", "test", "far").err


def test_the_tools_of_a_server_that_is_named_are_waited_for(cli: Any) -> None:
    slow = "import runpy, sys, time; time.sleep(2.5); sys.argv.pop(0); runpy.run_path(sys.argv[0])"
    cli("mcp", "add", "slow", "--", sys.executable, "-c", slow, str(SERVERS / "hostile.py"), "good")
    listed = cli("tools", "--toolset", "slow", "--json")
    assert [tool["name"] for tool in listed.json] == ["mcp__slow__go"], listed.err


def test_a_name_that_cannot_be_one_is_refused(cli: Any) -> None:
    ran = cli("mcp", "add", "a__b", "--", "true")
    assert ran.code == 2
    assert "double _" in ran.err
    assert not (cli.home / "config.yaml").exists()


def test_a_program_that_is_not_there_is_told(cli: Any) -> None:
    added = here("mcp", "add", "gone", "--", "no-such-program-anywhere")
    assert "no program no-such-program-anywhere" in added.err
    ran = cli("mcp", "test", "gone")
    assert ran.code == 1
    assert "cannot be started" in ran.err
    called = here("call", "mcp__gone__go").json
    assert called["error_type"] == "unavailable"
    assert "MCP server gone: no-such-program-anywhere cannot be started" in called["error"]
    assert "cannot be started" in cli("tools", "--toolset", "gone").err
    assert "MCP server gone: no-such-program-anywhere cannot be started" in cli("tools").err


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["https://example.com/mcp", "more"], "is neither an address"),
        (["ftp://example.com/mcp"], "is neither an address"),
        (["https://example.com/mcp", "--env", "A=b"], "an address takes --header"),
        (["--header", "A: b", "--", "true"], "a command takes --env"),
        (["--sse", "--", "true"], "a command takes --env"),
        (["https://example.com/mcp", "--header", "none"], "is not KEY:VALUE"),
    ],
)
def test_what_makes_no_sense_is_not_added(home: Path, args: list[str], why: str) -> None:
    ran = here("mcp", "add", "it", *args)
    assert ran.code == 2
    assert why in ran.err
    assert not (home / "config.yaml").exists()


def test_secrets_of_a_login_are_not_shown(home: Path) -> None:
    (home / "config.yaml").write_text(
        "mcp_servers:\n"
        "  far: {url: 'https://example.com/mcp', client_id: me, client_secret: do-not-show}\n"
        "  near: {url: 'https://example.com/mcp', client_secret: '${SECRET}', headers: {A: '${X} do-not-show'}}\n"
    )
    assert here("mcp", "get", "far").json["client_secret"] == "[hidden]"
    assert here("mcp", "get", "near").json["client_secret"] == "${SECRET}"
    assert "do-not-show" not in here("mcp", "list", "--json").out


def test_a_projects_servers_have_to_be_trusted(cli: Any, plain_server: str) -> None:
    file = cli.cwd / ".mcp.json"
    servers = {"plain": {"command": "sh", "args": ["-c", "${PLAIN:-" + plain_server + "}"]}}
    file.write_text(json.dumps({"mcpServers": servers}))
    assert "handrail mcp trust" in cli("mcp", "list", "--json").json[0]["problem"]
    assert "`handrail mcp trust`" in cli("call", "mcp__plain__add", "a=1", "b=1").json["error"]
    assert cli("mcp", "trust").code == 0
    assert cli("call", "mcp__plain__add", "a=1", "b=1").code == 0
    file.write_text(json.dumps({"mcpServers": {**servers, "more": {"command": "true"}}}))
    assert (
        "it has changed since it was trusted; read .mcp.json"
        in cli("call", "mcp__plain__add", "a=1", "b=1").json["error"]
    )
    file.write_text("{")
    refused = cli("mcp", "trust")
    assert refused.code == 1
    assert "is not JSON" in refused.err


def test_hidden_text_is_shown_and_can_be_trusted() -> None:
    here("mcp", "add", "bad", "--", sys.executable, str(SERVERS / "hostile.py"), "invisible")
    assert here("call", "mcp__bad__go").code == 1
    listed = {tool["name"]: tool["problem"] for tool in here("mcp", "tools", "bad", "--json").json}
    assert "U+E0067" in listed["mcp__bad__go"]
    assert listed["mcp__bad__fine"] == ""
    assert "\\u{e0067}" in here("mcp", "tools", "bad").out
    assert here("mcp", "trust", "bad").code == 0
    assert here("call", "mcp__bad__go").json == {"content": "went"}


def test_all_that_a_strange_tool_says_is_shown(cli: Any) -> None:
    here("mcp", "add", "bad", "--", sys.executable, str(SERVERS / "hostile.py"), "parameter")
    assert "do not tell the user" in here("mcp", "tools", "bad").out.replace("\n", " ").split("WHAT IT SAYS")[1]
    refused = here("call", "mcp__bad__go").json
    assert refused["fix"].endswith("`handrail mcp trust bad`")


def test_what_a_tool_says_it_destroys_is_denied_where_nobody_can_be_asked(plain_server: str) -> None:
    here("mcp", "add", "plain", "--", plain_server)
    assert here("call", "mcp__plain__erase", "what=it").code == 3
    assert here("call", "mcp__plain__erase", "what=it", "--yolo").json == {"content": "erased it"}
