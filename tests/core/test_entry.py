"""A function that is named, and imported when it is needed."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from handrail.core.entry import Reference, dereferenced
from handrail.core.registry import ToolRegistry
from handrail.errors import RegistrationError
from handrail.testing import OpenGate

SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {}}}
MODULE = """
def handle(args, *, context=None, **_):
    return {"task": context.task_id if context else None}

def check(config):
    return bool(config.messages.targets)

def fields(config):
    return {"description": "as of now"}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "a_module_of_this_test"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_it_is_imported_at_its_first_use_and_has_the_signature_of_what_it_names(module: str) -> None:
    import sys

    reference = Reference(f"{module}:handle")
    assert module not in sys.modules
    assert list(inspect.signature(reference).parameters) == ["args", "context", "_"]
    assert reference({}) == {"task": None}
    assert reference == Reference(f"{module}:handle")
    assert repr(reference) == f"{module}:handle"
    del sys.modules[module]


def test_a_tool_may_name_its_functions(module: str) -> None:
    import sys

    registry = ToolRegistry()
    registry.register("named", "t", SCHEMA, f"{module}:handle", dynamic_schema_overrides=f"{module}:fields")
    registry.register("checked", "t", SCHEMA, f"{module}:handle", check_fn=f"{module}:check")
    assert module not in sys.modules
    assert json.loads(str(registry.dispatch("named", {}, task_id="t1", gate=OpenGate()))) == {"task": "t1"}
    [definition] = registry.get_definitions(quiet=True)
    assert definition["function"]["description"] == "as of now"
    assert list(registry.unavailable_tools()) == ["checked"]
    del sys.modules[module]


@pytest.mark.parametrize("text", ["handle", "a module:handle", "module:", ":handle", "module:a.b", "a..b:c", ""])
def test_other_texts_are_no_functions(text: str) -> None:
    assert dereferenced(text) == text
    with pytest.raises(RegistrationError):
        ToolRegistry().register("named", "t", SCHEMA, text)
