"""Every backend keeps the promises of an environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handrail.environments.backend_table import built_in
from handrail.testing import Check, Conformance, environment_checks

from .backends import BACKENDS

# Podman runs our code for Docker, and the clouds differ in how a sandbox is made and reached: `make soak` tries all with all.
pytestmark = pytest.mark.by_turns("subject", ("docker", "podman"), ("modal", "daytona"))


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
    """The subject is used by many tests, and so are its threads. The kit itself looks for what is left behind."""


@pytest.mark.parametrize("check", environment_checks(), ids=str)
def test_a_backend_keeps_its_promises(subject: Conformance, check: Check) -> None:
    subject.check(check)


def test_every_backend_is_checked() -> None:
    assert set(built_in()) == {name.partition("-")[0] for name in BACKENDS}
