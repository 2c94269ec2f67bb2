"""Run the checks against a backend, and report the outcomes."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from enum import Enum
from functools import cache
from typing import NamedTuple, Self

from ...base.workers import pool
from ...environments.base import Environment
from .place import BreakConnection, Check, ConformanceFailure, MakeEnvironment, NotApplicable, Place, checks_of

PATIENCE_SECONDS = 30.0
FLOOD_SECONDS = 1.0
# A check that takes longer than this has hung: it fails, and the others still run.
_MAX_PATIENCES = 4


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    DOES_NOT_APPLY = "does not apply"


class Outcome(NamedTuple):
    check: Check
    verdict: Verdict
    message: str
    seconds: float

    def __str__(self) -> str:
        line = f"{self.verdict.value:<15}{self.check.name}"
        if self.verdict is Verdict.PASSED:
            return line
        return f"{line}: {self.check.sentence}\n{'':<15}{self.message}"


class Report(NamedTuple):
    """The outcomes for a backend. As text: a summary, and everything that did not pass."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """Nothing failed, and something was checked."""
        return any(one.verdict is Verdict.PASSED for one in self.outcomes) and not self.failed

    @property
    def failed(self) -> tuple[Outcome, ...]:
        return tuple(one for one in self.outcomes if one.verdict is Verdict.FAILED)

    def __str__(self) -> str:
        seconds = sum(one.seconds for one in self.outcomes)
        found = Counter(one.verdict for one in self.outcomes)
        counts = (f"{found[verdict]} {verdict.value}" for verdict in Verdict if found[verdict])
        summary = f"{self.name}: {len(self.outcomes)} checks: {', '.join(counts)} ({seconds:.1f} s)"
        others = [str(one) for one in self.outcomes if one.verdict is not Verdict.PASSED]
        return "\n".join([summary, *others])


class Conformance:
    """A backend under test. `make_environment` returns a new environment of the same place each time; it need not be started.
    `break_connection` gets an environment in the middle of a command and removes what it depends on: it cuts the network, kills
    the client, removes the container. `patience` is the timeout in seconds for what should happen."""

    def __init__(
        self,
        make_environment: MakeEnvironment,
        *,
        break_connection: BreakConnection | None = None,
        patience: float = PATIENCE_SECONDS,
        flood_seconds: float = FLOOD_SECONDS,
    ) -> None:
        self._make, self._break_connection = make_environment, break_connection
        self._patience, self._flood_seconds = patience, flood_seconds
        self._shared: Environment | None = None
        self._in_use: Environment | None = None
        self.name = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self, check: Check) -> None:
        """Raises ConformanceFailure, or NotApplicable."""
        work = pool.submit(self._try, check)
        if not wait([work], self._patience * _MAX_PATIENCES).done:
            hanging, self._in_use, self._shared = self._in_use, None, None
            if hanging is not None:  # closing its environment may end it, or hang as well, so nothing waits for that
                pool.submit(hanging.close)
            raise ConformanceFailure(f"it does not end within {self._patience * _MAX_PATIENCES:g} s")
        problem = work.exception()
        if problem is None:
            return
        if not isinstance(problem, NotApplicable):
            self.close()  # its condition is unknown
        if isinstance(problem, Exception) and not isinstance(problem, ConformanceFailure | NotApplicable):
            raise ConformanceFailure(f"{type(problem).__name__}: {problem}") from problem
        raise problem

    def run(
        self, only: Iterable[Check] | None = None, *, on_outcome: Callable[[Outcome], object] | None = None
    ) -> Report:
        """Run all checks, or `only` some. `on_outcome` gets each outcome."""
        outcomes = []
        for check in environment_checks() if only is None else only:
            outcomes.append(self._outcome(check))
            if on_outcome is not None:
                on_outcome(outcomes[-1])
        return Report(self.name or "environment", tuple(outcomes))

    def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.close()

    def _outcome(self, check: Check) -> Outcome:
        began = time.monotonic()
        verdict, message = Verdict.PASSED, ""
        try:
            self.check(check)
        except NotApplicable as reason:
            verdict, message = Verdict.DOES_NOT_APPLY, str(reason)
        except ConformanceFailure as failure:
            verdict, message = Verdict.FAILED, str(failure)
        return Outcome(check, verdict, message, time.monotonic() - began)

    def _try(self, check: Check) -> None:
        with contextlib.ExitStack() as stack:
            if check.fresh:
                env = self._make()
                stack.callback(env.close)
            else:
                env = self._shared = self._shared or self._make()
            self.name, self._in_use = env.name, env
            place = Place(env, self._make, self._patience, self._flood_seconds, self._break_connection)
            try:
                check.function(place)
            finally:
                place.clean_up()


@cache
def environment_checks() -> Sequence[Check]:
    """All checks, in a sensible reading order."""
    from . import background, commands, concurrency, files, leftovers, limits, output, state  # they import this package

    themes = (state, commands, output, limits, background, files, concurrency, leftovers)
    return tuple(one for theme in themes for one in checks_of(theme))


def check_environment(
    make_environment: MakeEnvironment,
    only: Iterable[Check] | None = None,
    *,
    break_connection: BreakConnection | None = None,
    patience: float = PATIENCE_SECONDS,
    on_outcome: Callable[[Outcome], object] | None = None,
) -> Report:
    """Check a backend, with all checks or `only` some: `[one for one in environment_checks() if one.quick]`."""
    with Conformance(make_environment, break_connection=break_connection, patience=patience) as subject:
        return subject.run(only, on_outcome=on_outcome)
