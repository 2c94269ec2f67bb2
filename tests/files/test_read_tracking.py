"""What is remembered of files that were read."""

from __future__ import annotations

from handrail.files.read_tracking import Seen, Since


def test_the_content_decides_when_it_is_known() -> None:
    seen = Seen()
    seen.record("t", "/a", version="1", data=b"x")
    assert seen.since("t", "/a", version="2", data=b"x") is Since.SAME
    assert seen.since("t", "/a", version="1", data=b"y") is Since.CHANGED


def test_the_version_decides_when_the_file_is_too_large() -> None:
    seen = Seen()
    seen.record("t", "/a", version="1", data=None)
    assert seen.since("t", "/a", version="1", data=None) is Since.SAME
    assert seen.since("t", "/a", version="2", data=None) is Since.CHANGED


def test_each_task_and_each_file_is_remembered_on_its_own() -> None:
    seen = Seen()
    seen.record("t", "/a", version="1", data=b"x")
    assert seen.since("other", "/a", version="1", data=b"x") is Since.UNREAD
    assert seen.since("t", "/b", version="1", data=b"x") is Since.UNREAD
    seen.forget("t", "/a")
    assert seen.since("t", "/a", version="1", data=b"x") is Since.UNREAD


def test_what_was_read_longest_ago_is_forgotten_first() -> None:
    seen = Seen(max_remembered=2)
    for path in ("/a", "/b", "/a", "/c"):
        seen.record("t", path, version="1", data=b"")
    known = [path for path in ("/a", "/b", "/c") if seen.since("t", path, version="1", data=b"") is Since.SAME]
    assert known == ["/a", "/c"]
