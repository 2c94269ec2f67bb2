"""Whether something else wrote to the terminal."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator

import pytest

from handrail.approval.approvers.terminal import TtyWatch


@pytest.fixture
def terminal() -> Iterator[int]:
    other, ours = pty.openpty()
    yield ours
    os.close(ours)
    os.close(other)


@pytest.mark.parametrize(("apart", "is_ours"), [(True, False), (False, True)])
def test_a_report_during_own_writing_is_ours_only_if_that_is_watched_too(
    terminal: int, apart: bool, is_ours: bool
) -> None:
    with TtyWatch(terminal, apart=apart) as watch:
        with watch.own_write():
            os.write(terminal, b"x")
        assert watch.was_touched() is not is_ours


@pytest.mark.parametrize("apart", [True, False])
def test_what_comes_between_two_writings_is_somebody_elses(terminal: int, apart: bool) -> None:
    with TtyWatch(terminal, apart=apart) as watch:
        with watch.own_write():
            pass
        assert not watch.was_touched()
        os.write(terminal, b"x")
        with watch.own_write():
            pass
        assert watch.was_touched()
        watch.reset()
        assert not watch.was_touched()
