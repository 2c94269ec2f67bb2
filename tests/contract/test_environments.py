"""Every backend keeps the promises of an environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail import environments
from handrail.testing.environment_conformance import Check, Conformance, checks

from .backends import BACKENDS


@pytest.fixture(scope="module", params=list(BACKENDS))
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conformance]:
    backend = BACKENDS[request.param]
    service = request.getfixturevalue(backend.fixture) if backend.fixture else None
    with pytest.MonkeyPatch.context() as patch:
        for name, value in getattr(service, "env", {}).items():
            patch.setenv(name, value)
        with backend.subject(tmp_path_factory.mktemp("subject"), service) as subject:
            yield subject


@pytest.fixture(autouse=True)
def _nothing_is_left_running() -> None:
    """The subject is used by many tests, and so are its threads. The kit looks for what is left behind itself."""


@pytest.mark.parametrize("check", checks(), ids=str)
def test_a_backend_keeps_its_promises(subject: Conformance, check: Check) -> None:
    subject.check(check)


def test_every_backend_is_checked() -> None:
    """A backend is a class with a name of its own in this folder."""
    names = set()
    for path in Path(environments.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name != "LiveEnvironment":
                names |= {_value(line) for line in node.body}
    assert names - {None} == {name.partition("-")[0] for name in BACKENDS}


def _value(line: ast.stmt) -> object:
    """The text of `name = "text"`."""
    is_name = isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") == "name"
    return line.value.value if is_name and isinstance(line.value, ast.Constant) else None  # type: ignore[attr-defined]
