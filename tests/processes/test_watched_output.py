"""Notices about processes: each once, at a limited rate, and none about what was already seen."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from handrail.base.rate_limit import RateLimit
from handrail.environments.tasks import TaskEnvironments
from handrail.processes.table import ProcessTable
from handrail.processes.watched_output import MAX_NOTICES, LineMatcher, Notice, NoticeKind, TooSlow
from handrail.store.processes import ProcessRecords

from ..support import wait_until
from .conftest import Start


class Collector:
    """Drains a table again and again."""

    def __init__(self, table: ProcessTable, task_id: str | None = None) -> None:
        self._table, self._task_id = table, task_id
        self.notices: list[Notice] = []

    def has(self, kind: NoticeKind) -> bool:
        self.notices += self._table.drain_notices(self._task_id)
        return any(notice.kind is kind for notice in self.notices)


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "handrail-processes"]


@pytest.fixture
def collector(table: ProcessTable) -> Collector:
    return Collector(table)


def test_the_end_is_told_once_with_code_and_last_lines(start: Start, collector: Collector) -> None:
    one = start("seq 100; exit 4", notify_on_complete=True)
    wait_until(lambda: collector.has(NoticeKind.ENDED))
    (notice,) = collector.notices
    assert (notice.id, notice.exit_code, notice.task_id, notice.session_id) == (one.id, 4, "t1", "s1")
    assert notice.text.splitlines() == [str(number) for number in range(81, 101)]
    assert f"{one.id} (seq 100; exit 4) ended with exit code 4:\n81" in str(notice)
    wait_until(lambda: not watchers())
    collector.has(NoticeKind.ENDED)
    assert len(collector.notices) == 1


def test_nothing_is_told_that_nobody_asked_for(start: Start, table: ProcessTable) -> None:
    one = start("echo hi")
    one.use(lambda process: process.wait(60))
    one.status()
    assert table.drain_notices() == []
    assert not watchers()


def test_what_somebody_saw_by_himself_is_not_told_again(start: Start, table: ProcessTable) -> None:
    one = start("echo hi", notify_on_complete=True)
    one.use(lambda process: process.wait(60))
    table.seen(one, one.status())
    wait_until(lambda: not watchers())
    assert table.drain_notices() == []


def test_news_is_told_to_the_task_that_it_is_of(start: Start, table: ProcessTable) -> None:
    one = start("true", task_id="a", notify_on_complete=True)
    start("true", task_id="b", notify_on_complete=True)
    wait_until(lambda: not watchers())
    assert [notice.id for notice in table.drain_notices("a")] == [one.id]
    assert table.drain_notices("a") == []
    assert len(table.drain_notices()) == 1


def test_a_listener_hears_of_it_at_once(start: Start, table: ProcessTable) -> None:
    heard: list[Notice] = []

    def fail(_: Notice) -> None:
        raise RuntimeError("a bug")

    forget = table.on_notice(heard.append)
    table.on_notice(fail)
    start("exit 2", notify_on_complete=True)
    wait_until(lambda: heard)
    assert heard[0].exit_code == 2
    forget()
    start("exit 2", notify_on_complete=True)
    wait_until(lambda: not watchers())
    assert len(heard) == 1
    assert len(table.drain_notices()) == 2


def test_a_line_that_is_watched_for_is_told_while_it_runs(start: Start, collector: Collector) -> None:
    one = start(
        "echo booting; printf '\\e[32mlistening on \\e[0m:80\\n'; echo more; read x; echo ERROR $x; sleep 1000",
        watch_patterns=[r"listening on :\d+", "ERROR"],
    )
    wait_until(lambda: collector.has(NoticeKind.MATCHED))
    assert [notice.text for notice in collector.notices] == ["listening on :80"]
    one.use(lambda process: process.write(b"bad\n"))
    wait_until(lambda: collector.has(NoticeKind.MATCHED) and len(collector.notices) == 2)
    assert collector.notices[1].text == "ERROR bad"
    assert "printed a line that you watch for" in str(collector.notices[1])


def test_lines_that_come_together_are_told_together(start: Start, collector: Collector) -> None:
    start("seq -f 'hit %g' 500", watch_patterns=["hit"])
    wait_until(lambda: not watchers())
    collector.has(NoticeKind.MATCHED)
    text = "\n".join(notice.text for notice in collector.notices)
    assert "hit 1\nhit 2" in text
    assert "more" in text
    assert len(collector.notices) <= MAX_NOTICES + 1


def test_too_many_matches_pause_the_watch_until_somebody_looks(
    start: Start, table: ProcessTable, collector: Collector
) -> None:
    one = start("while read x; do echo hit $x; done", watch_patterns=["hit"])
    for number in range(MAX_NOTICES):
        one.use(lambda process: process.write(b"%d\n" % number))  # noqa: B023  called at once
        wait_until(lambda: collector.has(NoticeKind.MATCHED) and len(collector.notices) == number + 1)  # noqa: B023  it is called before the next turn of the loop
    one.use(lambda process: process.write(b"one too many\n"))
    wait_until(lambda: collector.has(NoticeKind.PAUSED))
    paused = collector.notices[-1]
    assert paused.text == "hit one too many"
    assert "paused; it goes on when you have looked" in str(paused)
    one.use(lambda process: process.write(b"unheard\n"))
    wait_until(lambda: b"unheard" in one.tail(100).data)
    table.seen(one, one.status())
    table._watches[one.id]._rate = RateLimit(1, 60)  # the window is over
    one.use(lambda process: process.write(b"again\n"))
    wait_until(lambda: collector.has(NoticeKind.MATCHED) and collector.notices[-1].text == "hit again")
    assert not any("unheard" in notice.text for notice in collector.notices)


def test_one_whose_watch_was_paused_is_told_of_at_its_end(start: Start, collector: Collector) -> None:
    one = start("while read x; do echo hit; done", watch_patterns=["hit"])
    for number in range(MAX_NOTICES + 1):
        one.use(lambda process: process.write(b"\n"))
        wait_until(lambda: collector.has(NoticeKind.MATCHED) and len(collector.notices) == number + 1)  # noqa: B023  it is called before the next turn of the loop
    one.use(lambda process: process.close_stdin())
    wait_until(lambda: collector.has(NoticeKind.ENDED))


def test_the_end_is_told_when_the_environment_was_closed_meanwhile(
    start: Start, collector: Collector, environments: TaskEnvironments
) -> None:
    one = start("read x; exit 7", notify_on_complete=True)
    environments.close("t1")
    one.use(lambda process: process.write(b"\n"))
    wait_until(lambda: collector.has(NoticeKind.ENDED))
    assert collector.notices[0].exit_code == 7


def test_closing_the_table_ends_the_watching_and_not_the_process(
    home: Path, records: ProcessRecords, environments: TaskEnvironments, start: Start, table: ProcessTable
) -> None:
    one = start("sleep 1000", notify_on_complete=True)
    assert len(watchers()) == 1
    table.close()
    assert not watchers()
    assert one.status().state.value == "running"


def test_a_question_without_an_end_of_line_is_a_line_once() -> None:
    matcher = LineMatcher(["name"])
    assert matcher.feed(b"your na") == []
    assert matcher.feed(b"me? ") == ["your name?"]
    assert matcher.feed(b"bob") == []
    assert matcher.feed(b"\nname\nno\n") == ["name"]


def test_a_pattern_may_be_plain_text_with_special_characters() -> None:
    matcher = LineMatcher(["done (ok)", "50%"])
    assert matcher.feed(b"done (ok)\nprogress 10%\rprogress 50%\n\xff\xfe\n") == ["done (ok)", "progress 50%"]


def test_a_pattern_that_never_comes_to_an_end_is_given_up() -> None:
    with pytest.raises(TooSlow):
        LineMatcher(["(a|aa)+$b", "(x+x+)+y"]).feed(b"x" * 5000 + b"a" * 5000 + b"\n")


def test_a_slow_pattern_ends_the_watch_and_says_so(start: Start, collector: Collector) -> None:
    start("printf 'x%.0s' {1..5000}; echo; sleep 1000", watch_patterns=["(x+x+)+y"])
    wait_until(lambda: collector.has(NoticeKind.PAUSED))
    assert "took too long" in str(collector.notices[0])
