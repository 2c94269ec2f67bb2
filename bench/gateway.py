"""Figures of the chat gateway: how soon a tap in a chat is heard, on the Matrix server that the tests start."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.serve.gateway.conftest import Place
from tests.services.synapse import Matrix
from tests.services.tenants import Services

from .harness import Figure, milliseconds

_TAPS = 9


def figures() -> Iterator[Figure]:
    matrix = Matrix.join(Services())
    with matrix.tenant, tempfile.TemporaryDirectory() as folder:
        place = Place(matrix, Path(folder))
        try:
            place.pair()
            rounds = [(_tapped(place, number), _synapse_alone(place)) for number in range(_TAPS + 1)][1:]
        finally:
            place.close()
    ours, alone = (statistics.median(seconds) for seconds in zip(*rounds, strict=True))
    what = "a reaction in Matrix, to the command's start"
    yield Figure(what, milliseconds(ours), "300 ms", ours / 0.3, 1, f"the Matrix server alone {milliseconds(alone)}")


def _synapse_alone(place: Place) -> float:
    """Seconds from a tap until the server has told another client of it."""
    said = place.home.hears("Welcome")
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(place.home.wait_for_news, place.home.wait_for_news(""))
        start = time.time()
        place.home.react(said, f"seen {start}")
        told.result()
    return time.time() - start


def _tapped(place: Place, number: int) -> float:
    """Seconds from a tap to the first thing that the command does."""
    stamp = place.work / "stamp"
    command = f"date +%s.%N > {stamp}; rm -rf {place.work}/nothing-{number}"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(place.server.call, "terminal", command=command)
        question = place.home.hears(f"nothing-{number}")
        start = time.time()
        place.home.react(question, "✅")
        running.result()
    return float(stamp.read_text()) - start
