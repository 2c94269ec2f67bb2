"""What is remembered of files that were read."""

from __future__ import annotations

from handrail.files.content import ReadTracker, Since


def test_the_content_decides_when_it_is_known() -> None:
    reads = ReadTracker()
    reads.record("t", "/a", version="1", data=b"x")
    assert reads.since("t", "/a", version="2", data=b"x") is Since.SAME
    assert reads.since("t", "/a", version="1", data=b"y") is Since.CHANGED


def test_the_version_decides_when_the_file_is_too_large() -> None:
    reads = ReadTracker()
    reads.record("t", "/a", version="1", data=None)
    assert reads.since("t", "/a", version="1", data=None) is Since.SAME
    assert reads.since("t", "/a", version="2", data=None) is Since.CHANGED


def test_each_task_and_each_file_is_remembered_on_its_own() -> None:
    reads = ReadTracker()
    reads.record("t", "/a", version="1", data=b"x")
    assert reads.since("other", "/a", version="1", data=b"x") is Since.UNREAD
    assert reads.since("t", "/b", version="1", data=b"x") is Since.UNREAD
    reads.forget("t", "/a")
    assert reads.since("t", "/a", version="1", data=b"x") is Since.UNREAD


def test_what_was_read_longest_ago_is_forgotten_first() -> None:
    reads = ReadTracker(max_remembered=2)
    for path in ("/a", "/b", "/a", "/c"):
        reads.record("t", path, version="1", data=b"")
    known = [path for path in ("/a", "/b", "/c") if reads.since("t", path, version="1", data=b"") is Since.SAME]
    assert known == ["/a", "/c"]
