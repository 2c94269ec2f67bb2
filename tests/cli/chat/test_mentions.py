"""What `@path` in a message stands for."""

from __future__ import annotations

import base64
from pathlib import Path

from handrail.cli.chat.mentions import FolderIndex, mentioned


def test_a_file_goes_along_with_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    (tmp_path / "my notes.md").write_text("milk")
    found = mentioned('look at @a.py, and @"my notes.md"', str(tmp_path))
    assert found.texts == ["[a.py:]\nprint(1)\n", "[my notes.md:]\nmilk"]
    assert (found.images, found.problems) == ([], [])


def test_a_folder_goes_along_as_names_and_a_long_file_as_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "long.txt").write_text("x" * 50_000)
    (tmp_path / "raw.bin").write_bytes(b"a\0b")
    folder, long, raw = mentioned("@src @src/long.txt @raw.bin", str(tmp_path)).texts
    assert folder == "[The folder src holds:]\nlong.txt"
    assert 20_000 < len(long) < 20_100
    assert long.endswith("read_file reads the rest]")
    assert raw == "[raw.bin is a binary file of 3 bytes.]"


def test_an_image_is_sent_as_an_image_by_mention_and_by_a_dropped_path(tmp_path: Path) -> None:
    (tmp_path / "plot.png").write_bytes(b"png")
    sent = {"url": f"data:image/png;base64,{base64.b64encode(b'png').decode()}"}
    for text in ("what is @plot.png", f"what is {tmp_path}/plot.png", f"'{tmp_path}/plot.png'"):
        assert [each["image_url"] for each in mentioned(text, str(tmp_path)).images] == [sent]


def test_what_is_no_file_is_only_text(tmp_path: Path) -> None:
    found = mentioned("mail ada@example.org about @property and @nobody", str(tmp_path))
    assert found == ([], [], [], [], ["property", "nobody"])


def test_the_end_of_a_sentence_is_no_part_of_a_name_and_what_goes_along_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\nprint(2)\n")
    (tmp_path / "plot.png").write_bytes(b"png")
    (tmp_path / "src").mkdir()
    found = mentioned("Read @a.py. Is it like @plot.png? See @src, too!", str(tmp_path))
    assert found.attached == ["a.py (2 lines)", "plot.png (image)", "src (0 names)"]


def test_folders_are_completed_too(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.py").touch()
    assert FolderIndex().matching(str(tmp_path), "sour") == ["source/", "source/a.py"]
