"""The hook manager by itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import invoke_hook
from handrail.errors import RegistrationError
from handrail.plugins.hook_manager import HookManager
from handrail.plugins.hook_specs import HOOK_NAMES, HookSpecs, hookimpl
from tests.support import PATIENCE_SECONDS, in_threads, takes_less_than

EVENT: dict[str, Any] = {"tool_name": "t", "args": {}, "task_id": None, "session_id": None, "tool_call_id": ""}


def test_a_hook_is_called_by_name_and_gives_back_what_the_functions_said(hook_manager: HookManager) -> None:
    hook_manager.register_hook("pre_tool_call", lambda tool_name: f"first {tool_name}")
    hook_manager.register_hook("pre_tool_call", lambda: None)
    hook_manager.register_hook("pre_tool_call", lambda args, task_id: "second")
    assert hook_manager.invoke("pre_tool_call", **EVENT) == ["first t", "second"]


def test_the_default_manager_is_reached_by_the_public_function(default_hooks: Any) -> None:
    default_hooks("pre_tool_call", lambda tool_name: f"seen {tool_name}")
    assert invoke_hook("pre_tool_call", **EVENT) == ["seen t"]


def test_with_no_plugin_nothing_is_active_and_the_hooks_are_not_even_imported() -> None:
    code = (
        "import sys\nfrom handrail.plugins.hook_manager import HookManager\nh = HookManager()\n"
        "assert not h.active and h.invoke('pre_tool_call') == []\nassert 'handrail.plugins.hook_specs' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_that_fails_or_hangs_does_not_keep_the_others_from_being_called(
    hook_manager: HookManager, held: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    hook_manager.timeout = 0.1
    hook_manager.register_hook("post_tool_call", lambda: 1 / 0)
    hook_manager.register_hook("post_tool_call", lambda: held.wait(PATIENCE_SECONDS))
    hook_manager.register_hook("post_tool_call", lambda: "fine")
    with takes_less_than(30):
        assert hook_manager.invoke("post_tool_call", **EVENT) == ["fine"]
    assert sum(hook_manager.failures.values()) == 2
    assert "ZeroDivisionError" in caplog.text


def test_an_unknown_hook_is_refused_with_the_nearest(hook_manager: HookManager) -> None:
    with pytest.raises(RegistrationError, match="pre_tool_call"):
        hook_manager.register_hook("pre_tool_cal", lambda: None)


def test_an_argument_that_the_hook_does_not_offer_is_refused(hook_manager: HookManager) -> None:
    with pytest.raises(RegistrationError, match="colour"):
        hook_manager.register_hook("pre_tool_call", lambda colour: None)

    class Plugin:
        @hookimpl
        def pre_tool_call(self, colour: str) -> None: ...

    with pytest.raises(RegistrationError, match="colour"):
        hook_manager.register(Plugin())
    assert not hook_manager.active


def test_a_plugin_that_misspells_a_hook_is_refused(hook_manager: HookManager) -> None:
    class Plugin:
        @hookimpl
        def pre_tool_cal(self, tool_name: str) -> None: ...

    with pytest.raises(RegistrationError, match="pre_tool_cal"):
        hook_manager.register(Plugin())
    assert not hook_manager.active


def test_attributes_that_cannot_be_read_are_no_hooks(hook_manager: HookManager) -> None:
    class Unreadable:
        def __get__(self, instance: object, owner: object) -> None:
            raise TypeError("as the slot for weak references of a dataclass does in Python 3.11.2")

    class Plugin:
        slot = Unreadable()

        @property
        def connection(self) -> None:
            raise ConnectionError("reading a property runs code")

        @hookimpl
        def pre_tool_call(self, tool_name: str) -> str:
            return tool_name

    hook_manager.register(Plugin())
    assert hook_manager.invoke("pre_tool_call", **EVENT) == ["t"]


def test_a_plugin_is_registered_once_under_one_name(hook_manager: HookManager) -> None:
    class Plugin:
        @hookimpl
        def pre_tool_call(self, tool_name: str) -> str:
            return tool_name

    plugin = Plugin()
    name = hook_manager.register(plugin)
    with pytest.raises(RegistrationError):
        hook_manager.register(plugin)
    with pytest.raises(RegistrationError):
        hook_manager.register(Plugin(), name)
    assert hook_manager.invoke("pre_tool_call", **EVENT) == ["t"]
    assert hook_manager.register(Plugin()) != name


def test_what_is_unregistered_is_not_called(hook_manager: HookManager) -> None:
    name = hook_manager.register_hook("pre_tool_call", lambda: "here")
    assert hook_manager.active
    assert hook_manager.unregister(name)
    assert not hook_manager.active
    assert hook_manager.invoke("pre_tool_call", **EVENT) == []
    assert not hook_manager.unregister(name)


def test_the_same_function_may_serve_twice_with_other_options(hook_manager: HookManager) -> None:
    def function() -> str:
        return "x"

    hook_manager.register_hook("pre_tool_call", function, policy=True)
    hook_manager.register_hook("post_tool_call", function)
    (first,) = hook_manager.implementations("pre_tool_call")
    (second,) = hook_manager.implementations("post_tool_call")
    assert (first.options.policy, second.options.policy) == (True, False)


def test_a_hook_may_be_a_coroutine_function(hook_manager: HookManager) -> None:
    async def later(session_id: str) -> str:
        await asyncio.sleep(0)
        return session_id

    hook_manager.register_hook("on_session_start", later)
    assert hook_manager.invoke("on_session_start", session_id="s", platform="cli") == ["s"]


def test_every_hook_says_what_it_is_for() -> None:
    hooks = [value for name, value in vars(HookSpecs).items() if not name.startswith("_")]
    assert hooks
    assert all(hook.__doc__ for hook in hooks)


def test_every_hook_is_called_by_somebody() -> None:
    """One that is documented and never called would be a promise that nobody keeps."""
    folder = Path(handrail.__file__).parent
    names = (folder / "plugins" / name for name in ("hooks.py", "external.py"))
    ours = "".join(path.read_text(encoding="utf-8") for path in {*folder.rglob("*.py")} - {*names})
    assert [name for name in HOOK_NAMES if f'"{name}"' not in ours] == []


@pytest.mark.usefixtures("restless_threads")
def test_threads_that_register_at_once_lose_nothing(hook_manager: HookManager) -> None:
    names = in_threads(16, lambda number: hook_manager.register_hook("pre_tool_call", lambda: number))
    assert len(set(names)) == 16
    assert sorted(hook_manager.invoke("pre_tool_call", **EVENT)) == list(range(16))
    in_threads(16, lambda number: hook_manager.unregister(names[number]))
    assert not hook_manager.active
