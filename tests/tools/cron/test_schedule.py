"""What a schedule means, when clocks change too."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import InvalidArguments
from handrail.tools.cron.schedule import Schedule, first_run, local_zone, read_schedule, shown

NOW = datetime(2026, 3, 27, 12, 0, tzinfo=UTC).timestamp()
BERLIN = "Europe/Berlin"


def _times(text: str, zone: str, after: str, count: int = 3) -> list[str]:
    at = datetime.fromisoformat(after).timestamp()
    schedule = read_schedule(text, zone, now=at)
    found: list[str] = []
    since = at
    for _ in range(count):
        following = schedule.next_after(at, since=since)
        assert following is not None
        at = following
        found.append(shown(at, zone))
    return found


def test_a_cron_expression_means_the_clocks_of_its_zone() -> None:
    assert _times("0 9 * * mon-fri", BERLIN, "2026-03-27T12:00+01:00", 2) == [
        "2026-03-30T09:00:00+02:00",
        "2026-03-31T09:00:00+02:00",
    ]
    assert _times("0 9 * * *", "Asia/Kathmandu", "2026-03-27T00:00+00:00", 1) == ["2026-03-27T09:00:00+05:45"]
    assert _times("@daily", "UTC", "2026-03-27T00:00+00:00", 1) == ["2026-03-28T00:00:00+00:00"]


def test_an_hour_that_is_skipped_runs_after_the_gap_and_one_that_comes_twice_runs_once() -> None:
    assert _times("30 2 * * *", BERLIN, "2026-03-28T12:00+01:00", 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    assert _times("30 2 * * *", BERLIN, "2026-10-24T12:00+02:00", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_a_job_of_every_hour_runs_in_both_hours_of_the_same_name() -> None:
    assert _times("30 * * * *", BERLIN, "2026-10-25T01:45+02:00") == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T03:30:00+01:00",
    ]


def test_an_interval_counts_the_time_that_passes_over_a_change_of_clocks() -> None:
    assert _times("12h", BERLIN, "2026-03-28T12:00+01:00") == [
        "2026-03-29T00:00:00+01:00",
        "2026-03-29T13:00:00+02:00",
        "2026-03-30T01:00:00+02:00",
    ]


def test_an_interval_keeps_its_rhythm_however_late_it_is() -> None:
    schedule = read_schedule("every 30 minutes", "UTC", now=NOW)
    assert schedule.next_after(NOW + 4000, since=NOW) == NOW + 5400
    assert schedule.next_after(NOW + 1800, since=NOW) == NOW + 3600


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("every 2h", 7200),
        ("90s", 90),
        ("1 day", 86_400),
        ("2W", 1_209_600),
        ("1h30m", 5400),
        ("every 1 hour 30 minutes", 5400),
        ("every minute", 60),
        ("Every Hour", 3600),
        ("every day", 86_400),
    ],
)
def test_an_interval_has_amounts_and_units(text: str, seconds: int) -> None:
    assert read_schedule(text, "UTC", now=NOW).seconds == seconds


def test_one_time_is_read_again_as_the_same() -> None:
    for text in ("in 2h", "2026-12-24T18:00", "2026-12-24 18:00:30", "2026-12-24T18:00+09:00", "2026-12-24"):
        schedule = read_schedule(text, BERLIN, now=NOW)
        assert schedule.at is not None
        assert read_schedule(schedule.text, BERLIN, now=NOW + 99) == schedule
        assert schedule.next_after(schedule.at, since=NOW) is None
    assert read_schedule("in 2h", "UTC", now=NOW).at == NOW + 7200
    assert read_schedule("in 1h 5m", "UTC", now=NOW).at == NOW + 3900
    assert read_schedule("2026-12-24T18:00", BERLIN, now=NOW).text == "2026-12-24T18:00:00+01:00"


def test_a_time_that_the_clocks_skip_is_moved_by_what_they_skip() -> None:
    assert read_schedule("2026-03-29T02:30", BERLIN, now=NOW).text == "2026-03-29T03:30:00+02:00"


@pytest.mark.parametrize(
    "text",
    [
        "* * */20 * 1L",
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        "2020-01-01T00:00",
        "1970-01-01T00:00",
        "2026-03-27T11:59:59+00:00",
    ],
)
def test_what_never_comes_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments):
        first_run(read_schedule(text, "UTC", now=NOW), NOW)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a schedule"),
        ("whenever", "not a schedule"),
        ("61 * * * *", "bad minute"),
        ("* * * * * *", "6 fields"),
        ("30s", "one minute"),
        ("0m", "one minute"),
        ("every second", "one minute"),
        ("every month", "not a schedule"),
        ("every day at 9am", "not a schedule"),
        ("999999w", "one year"),
        ("2026-13-01", "not a time"),
        ("2026-12-24T25:00", "not a time"),
        ("9999-12-31T23:59:59-23:59", "not a time"),
        ("in -2h", "not a schedule"),
        ("x" * 5000, "not a schedule"),
    ],
)
def test_what_is_no_schedule_is_said_with_examples(text: str, said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        first_run(read_schedule(text, "UTC", now=NOW), NOW)


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "../../etc/passwd", "/etc/localtime", "Europe", "", "a\x00b"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidArguments, match="time zone"):
        read_schedule("30m", zone, now=NOW)


def test_this_machine_has_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    assert local_zone() == "Pacific/Auckland"
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    assert isinstance(read_schedule("30m", local_zone(), now=NOW), Schedule)


@given(
    st.one_of(
        st.text(max_size=40),
        st.text("0123456789*/,-LW#@ monjfeg", max_size=30),
        st.text("0123456789-T:+ .Zinevrysmhdw", max_size=30),
    )
)
def test_any_text_is_a_schedule_that_is_read_again_as_itself_or_is_refused(text: str) -> None:
    try:
        schedule = read_schedule(text, BERLIN, now=NOW)
    except InvalidArguments:
        return
    assert read_schedule(schedule.text, BERLIN, now=NOW) == schedule
    following = schedule.next_after(NOW, since=NOW)
    assert following is None or following > NOW
