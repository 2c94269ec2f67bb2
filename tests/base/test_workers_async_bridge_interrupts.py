"""Ctrl-C is told from a KeyboardInterrupt that code raises."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from handrail.base.workers import is_interrupt


def raised(cause: Callable[[], object]) -> KeyboardInterrupt:
    with pytest.raises(KeyboardInterrupt) as found:
        cause()
    return found.value


def raise_it() -> None:
    raise KeyboardInterrupt


@pytest.fixture(params=["the default", "one of the program"])
def handler(request: pytest.FixtureRequest) -> Iterator[None]:
    def own(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, signal.default_int_handler if "default" in request.param else own)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handler")
def test_the_signal_is_one_and_a_raise_statement_is_not() -> None:
    assert is_interrupt(raised(lambda: signal.raise_signal(signal.SIGINT)))
    assert not is_interrupt(raised(raise_it))
    assert not is_interrupt(SystemExit(1))


def test_no_other_thread_is_interrupted() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(is_interrupt(raised(raise_it))))
    thread.start()
    thread.join()
    assert found == [False]
