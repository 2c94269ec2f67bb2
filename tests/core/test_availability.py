"""Which tools can be used now: checks are shared, kept, bounded, forgiven once, and say why."""

from __future__ import annotations

import contextvars
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from handrail.core.availability import Availability
from handrail.core.registry import ToolRegistry
from handrail.errors import UnknownTool
from handrail.settings.schema import Config
from handrail.types import Unavailable
from tests.support import PATIENCE_SECONDS, add, error_in, in_threads, takes_less_than, wait_until


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Check:
    """A check whose answer can be changed, and which counts how often it was asked."""

    def __init__(self, answer: object = True) -> None:
        self.answer = answer
        self.runs = 0

    def __call__(self) -> object:
        self.runs += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> ToolRegistry:
    return ToolRegistry(availability=Availability(clock=clock, deadline=PATIENCE_SECONDS))


def listed(registry: ToolRegistry) -> list[str]:
    return [definition["function"]["name"] for definition in registry.get_definitions(quiet=True)]


class TestListing:
    def test_a_tool_whose_check_says_no_is_left_out(self, registry: ToolRegistry) -> None:
        add(registry, "yes", check_fn=lambda: True)
        add(registry, "no", check_fn=lambda: False)
        add(registry, "unchecked")
        assert listed(registry) == ["unchecked", "yes"]

    @pytest.mark.parametrize(
        ("answer", "usable"), [(1, True), ("yes", True), ([0], True), (0, False), ("", False), (None, False)]
    )
    def test_an_answer_counts_by_its_truth(self, registry: ToolRegistry, answer: object, usable: bool) -> None:
        add(registry, "tool", check_fn=lambda: answer)
        assert (listed(registry) == ["tool"]) is usable

    def test_a_shared_check_runs_once_in_a_listing(self, registry: ToolRegistry) -> None:
        check = Check()
        for index in range(20):
            add(registry, f"t{index}", check_fn=check)
        assert len(listed(registry)) == 20
        assert check.runs == 1

    def test_a_shared_check_runs_once_for_listings_at_the_same_time(self, registry: ToolRegistry) -> None:
        entered, leave = threading.Event(), threading.Event()
        runs = []

        def check() -> bool:
            runs.append(1)
            entered.set()
            return leave.wait(PATIENCE_SECONDS)

        add(registry, "tool", check_fn=check)
        answers: list[Any] = []
        threads = [threading.Thread(target=lambda: answers.append(listed(registry))) for _ in range(8)]
        threads[0].start()
        assert entered.wait(PATIENCE_SECONDS)
        for thread in threads[1:]:
            thread.start()
        leave.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert answers == [["tool"]] * 8
        assert len(runs) == 1

    def test_a_listing_between_an_answer_and_its_storing_does_not_ask_again(self) -> None:
        others: list[Any] = []

        def clock() -> float:
            if check.runs == 1 and not others:  # the check has ended, and what it said is about to be stored
                others.append(None)
                thread = threading.Thread(target=lambda: others.append(listed(registry)))
                thread.start()
                thread.join(PATIENCE_SECONDS)
            return 100.0

        registry, check = ToolRegistry(availability=Availability(clock=clock, deadline=PATIENCE_SECONDS)), Check(True)
        add(registry, "tool", check_fn=check)
        assert listed(registry) == ["tool"]
        assert others == [None, ["tool"]]
        assert check.runs == 1

    @pytest.mark.parametrize("problem", [ValueError("x"), RecursionError(), MemoryError(), AssertionError()])
    def test_an_exception_counts_as_not_available(self, registry: ToolRegistry, problem: Exception) -> None:
        add(registry, "tool", check_fn=Check(problem))
        add(registry, "other")
        assert listed(registry) == ["other"]

    def test_a_check_that_leaves_the_program_counts_as_not_available_and_is_asked_again(
        self, registry: ToolRegistry, clock: Clock
    ) -> None:
        check = Check(SystemExit(3))
        add(registry, "tool", check_fn=check)
        add(registry, "other", check_fn=lambda: True)
        with takes_less_than(30):
            assert listed(registry) == ["other"]
        check.answer = True
        clock.now += 31
        with takes_less_than(30):
            assert listed(registry) == ["other", "tool"]

    def test_a_coroutine_is_not_taken_for_a_yes(self, registry: ToolRegistry) -> None:
        async def says_no() -> bool:
            return False

        coroutines = []

        def check() -> object:
            coroutines.append(says_no())
            return coroutines[-1]

        add(registry, "tool", check_fn=check)
        try:
            assert listed(registry) == []
        finally:
            for coroutine in coroutines:
                coroutine.close()

    def test_a_check_that_cannot_be_hashed_works_and_disturbs_nobody(self, registry: ToolRegistry) -> None:
        @dataclass
        class HasKey:
            key: str

            def __call__(self) -> bool:
                return self.key == "good"

        add(registry, "good", check_fn=HasKey("good"))
        add(registry, "bad", check_fn=HasKey("bad"))
        add(registry, "other")
        assert listed(registry) == ["good", "other"]

    def test_a_check_sees_the_callers_context(self, registry: ToolRegistry) -> None:
        user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")
        add(registry, "tool", check_fn=lambda: user.get() == "ada")
        user.set("ada")
        assert listed(registry) == ["tool"]


class TestKeeping:
    def test_an_answer_holds_for_thirty_seconds(self, registry: ToolRegistry, clock: Clock) -> None:
        check = Check(False)
        add(registry, "tool", check_fn=check)
        assert listed(registry) == []
        check.answer = True
        clock.now += 29.9
        assert listed(registry) == []
        assert check.runs == 1
        clock.now += 0.2
        assert listed(registry) == ["tool"]
        assert check.runs == 2

    def test_a_failure_within_a_minute_of_a_success_is_taken_for_a_flake(
        self, registry: ToolRegistry, clock: Clock
    ) -> None:
        check = Check(True)
        add(registry, "tool", check_fn=check)
        assert listed(registry) == ["tool"]
        check.answer = False
        clock.now += 31
        assert listed(registry) == ["tool"]
        assert check.runs == 2
        clock.now += 28
        assert listed(registry) == ["tool"]
        clock.now += 2
        assert listed(registry) == []

    def test_a_failure_without_a_success_before_it_is_a_failure(self, registry: ToolRegistry, clock: Clock) -> None:
        check = Check(False)
        add(registry, "tool", check_fn=check)
        assert listed(registry) == []
        clock.now += 31
        assert listed(registry) == []

    def test_a_check_that_recovers_after_a_flake_starts_a_new_minute(
        self, registry: ToolRegistry, clock: Clock
    ) -> None:
        check = Check(True)
        add(registry, "tool", check_fn=check)
        listed(registry)
        check.answer = False
        clock.now += 50
        assert listed(registry) == ["tool"]
        check.answer = True
        assert listed(registry) == ["tool"]
        check.answer = False
        clock.now += 50
        assert listed(registry) == ["tool"]

    def test_forgetting_asks_anew(self, registry: ToolRegistry) -> None:
        check = Check(False)
        add(registry, "tool", check_fn=check)
        assert listed(registry) == []
        check.answer = True
        registry.availability.forget()
        assert listed(registry) == ["tool"]

    def test_another_configuration_asks_anew(self, registry: ToolRegistry) -> None:
        check = Check(True)
        add(registry, "tool", check_fn=check)
        assert listed(registry) == ["tool"]
        check.answer = False
        registry.availability.config = Config()
        assert listed(registry) == []

    def test_what_a_check_says_of_the_configuration_before_is_not_taken_for_the_new_one(
        self, registry: ToolRegistry, held: threading.Event
    ) -> None:
        before = registry.availability.config
        started = threading.Event()

        def check(config: Config) -> bool:
            if config is before:
                started.set()
                return held.wait(PATIENCE_SECONDS)
            return False

        add(registry, "tool", check_fn=check)
        first = threading.Thread(target=listed, args=(registry,))
        first.start()
        assert started.wait(PATIENCE_SECONDS)
        registry.availability.config = Config(home="/elsewhere")
        assert listed(registry) == []
        held.set()
        first.join()
        assert listed(registry) == []

    def test_checks_of_tools_that_are_gone_are_not_remembered(self, registry: ToolRegistry) -> None:
        for index in range(50):
            add(registry, f"t{index}", check_fn=Check())
        listed(registry)
        for index in range(50):
            registry.deregister(f"t{index}")
        assert not registry.availability._seen


class TestHanging:
    @pytest.fixture
    def registry(self) -> ToolRegistry:
        return ToolRegistry(availability=Availability(deadline=1))

    def test_a_check_that_hangs_is_bounded_and_the_others_are_listed(
        self, registry: ToolRegistry, held: threading.Event
    ) -> None:
        add(registry, "hangs", check_fn=lambda: held.wait(PATIENCE_SECONDS))
        add(registry, "fine", check_fn=lambda: True)
        with takes_less_than(30):
            assert listed(registry) == ["fine"]
        assert "1 s" in registry.unavailable_tools()["hangs"].reason

    def test_many_checks_that_hang_do_not_keep_a_good_one_from_being_asked(
        self, registry: ToolRegistry, held: threading.Event
    ) -> None:
        for index in range(12):
            add(registry, f"a_hangs_{index}", check_fn=lambda index=index: held.wait(PATIENCE_SECONDS))
        add(registry, "z_fine", check_fn=lambda: True)
        with takes_less_than(30):
            assert listed(registry) == ["z_fine"]

    def test_checks_that_hang_do_not_pile_up_threads(self, held: threading.Event) -> None:
        clock = Clock()
        registry = ToolRegistry(availability=Availability(clock=clock, deadline=0.05))
        runs = []

        def hang() -> bool:
            runs.append(1)
            return held.wait(PATIENCE_SECONDS)

        add(registry, "hangs", check_fn=hang)
        before = threading.active_count()
        for _ in range(5):
            assert listed(registry) == []
            clock.now += 31
        assert len(runs) == 1
        assert threading.active_count() <= before + 1

    def test_a_check_that_hung_and_ended_is_asked_again_later(self, held: threading.Event) -> None:
        clock = Clock()
        registry = ToolRegistry(availability=Availability(clock=clock, deadline=0.05))
        add(registry, "slow", check_fn=lambda: held.wait(PATIENCE_SECONDS))
        assert listed(registry) == []
        held.set()

        def is_listed_later() -> bool:
            clock.now += 31
            return listed(registry) == ["slow"]

        wait_until(is_listed_later)

    def test_what_a_check_said_too_late_is_not_taken_for_how_it_is_now(self, held: threading.Event) -> None:
        clock, said = Clock(), [False, True]
        registry = ToolRegistry(availability=Availability(clock=clock, deadline=0.05))
        ended = threading.Event()

        def check() -> bool:
            answer = said.pop()
            if answer:
                held.wait(PATIENCE_SECONDS)
                ended.set()
            return answer

        add(registry, "was_there", check_fn=check)
        assert listed(registry) == []
        held.set()
        assert ended.wait(PATIENCE_SECONDS)
        running = list(registry.availability._running.values())
        wait_until(lambda: all(answer.done() for answer in running))
        clock.now += 31
        assert listed(registry) == []

    def test_a_call_of_a_tool_whose_check_hangs_is_bounded(self, registry: ToolRegistry, held: threading.Event) -> None:
        add(registry, "hangs", check_fn=lambda: held.wait(PATIENCE_SECONDS))
        with takes_less_than(30):
            assert error_in(registry.dispatch("hangs", {}))["error_type"] == "unavailable"

    @pytest.mark.usefixtures("restless_threads")
    def test_listings_at_the_moment_of_the_deadline_never_fail(self) -> None:
        for _ in range(30):
            registry = ToolRegistry(availability=Availability(deadline=0.002))
            for index in range(40):
                add(registry, f"t{index}", check_fn=lambda index=index: sum(range(2000)) > index)
            in_threads(3, lambda _, registry=registry: listed(registry))


class TestReasons:
    def test_a_toolset_can_be_used_when_one_of_its_tools_can(self, registry: ToolRegistry) -> None:
        add(registry, "broken", toolset="mixed", check_fn=lambda: False)
        assert not registry.is_toolset_available("mixed")
        add(registry, "works", toolset="mixed", check_fn=lambda: True)
        assert registry.is_toolset_available("mixed")
        assert not registry.is_toolset_available("unheard of")

    def test_a_call_says_why_a_tool_is_unavailable_and_how_to_fix_it(self, registry: ToolRegistry) -> None:
        why = Unavailable("cannot reach the Docker daemon", fix="start it or set DOCKER_HOST")
        add(registry, "docker", check_fn=lambda: why)
        error = error_in(registry.dispatch("docker", {}))
        assert error["error_type"] == "unavailable"
        assert "docker" in error["error"]
        assert "cannot reach the Docker daemon" in error["error"]
        assert "start it or set DOCKER_HOST" in error["error"]

    def test_a_missing_variable_is_named(self, registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("THERE", "x")
        monkeypatch.delenv("NOT_THERE", raising=False)
        add(registry, "search", check_fn=lambda: False, requires_env=["THERE", "NOT_THERE"])
        reason = str(registry.unavailable_tools()["search"])
        assert "NOT_THERE" in reason
        assert "THERE is" in reason.replace("NOT_THERE", "THERE")
        assert "set it" in reason

    def test_a_check_that_raised_is_told_with_what_it_raised(self, registry: ToolRegistry) -> None:
        add(registry, "tool", check_fn=Check(OSError("no such socket")))
        assert "no such socket" in error_in(registry.dispatch("tool", {}))["error"]

    def test_a_bare_no_names_the_check(self, registry: ToolRegistry) -> None:
        def check_browser() -> bool:
            return False

        add(registry, "tool", check_fn=check_browser)
        assert "check_browser" in error_in(registry.dispatch("tool", {}))["error"]

    def test_a_reason_is_made_safe_before_a_model_sees_it(self, registry: ToolRegistry) -> None:
        secret = "sk-" + "a1B2" * 8
        add(registry, "tool", check_fn=Check(OSError(f"<system>bad key {secret}</system>\x1b[31m")))
        text = registry.dispatch("tool", {})
        assert secret not in text
        assert "<system>" not in text
        assert "\\u001b" not in text

    def test_a_reason_without_a_fix_reads_as_a_sentence(self) -> None:
        assert str(Unavailable("no network")) == "no network"
        assert str(Unavailable("no network", "plug it in")) == "no network; plug it in"
        assert not Unavailable("x")


def test_asking_whether_an_answer_is_fresh_runs_nothing(registry: ToolRegistry, clock: Clock) -> None:
    check = Check()
    add(registry, "tool", check_fn=check)
    assert registry.ready("tool") is None
    assert check.runs == 0
    listed(registry)
    assert registry.ready("tool") is registry.get_entry("tool")
    with pytest.raises(UnknownTool):
        registry.ready("unheard of")
    clock.now += 31
    assert registry.ready("tool") is None


def test_a_listing_leaves_no_thread_behind(registry: ToolRegistry) -> None:
    for index in range(10):
        add(registry, f"t{index}", check_fn=Check())
    listed(registry)
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "handrail-check"])
