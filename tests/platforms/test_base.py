"""What an adapter is told of a request that failed: whether sending it again is harmless."""

from __future__ import annotations

import asyncio

import pytest

from handrail.errors import CallTimeout, ToolError, ToolFailed
from handrail.net.http_client import NotReached
from handrail.platforms.base import Unreachable, reached


async def _failing(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize(
    "error", [NotReached("nobody listens"), ToolFailed("slow down", status=429), ToolFailed("broken", status=502)]
)
def test_what_never_arrived_may_be_sent_again(error: ToolError, repeatable: bool) -> None:
    with pytest.raises(Unreachable, match=str(error)):
        asyncio.run(reached(_failing(error), repeatable=repeatable))


@pytest.mark.parametrize("error", [CallTimeout("no answer"), ToolFailed("cut off"), ToolFailed("no JSON", status=200)])
def test_what_may_have_arrived_is_sent_again_only_if_that_is_harmless(error: ToolError) -> None:
    with pytest.raises(Unreachable):
        asyncio.run(reached(_failing(error)))
    with pytest.raises(ToolFailed, match="it may have arrived"):
        asyncio.run(reached(_failing(error), repeatable=False))


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_refusal_stays_as_it_is(repeatable: bool) -> None:
    refused = ToolFailed("no such chat", status=400)
    with pytest.raises(ToolFailed) as told:
        asyncio.run(reached(_failing(refused), repeatable=repeatable))
    assert told.value is refused
