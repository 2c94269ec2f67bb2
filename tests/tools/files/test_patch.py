"""What `patch` makes of real files, and that it leaves them alone when a hunk does not fit."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import handrail.tools.files.patch
import handrail.tools.files.read_file  # noqa: F401  register the tools
from handrail.core.builtin import registry
from handrail.files.local import LocalFiles
from handrail.files.text import MAX_DIFF_CHARS
from handrail.testing import OpenGate
from handrail.types import ToolContext

CODE = """\
class A:
    def f(self):
        x = 1
        return x

class B:
    def f(self):
        x = 1
        return x
"""


def call(name: str, folder: Path, *, roots: tuple[str, ...] = (), **args: Any) -> dict[str, Any]:
    context = ToolContext(task_id=str(folder), files=LocalFiles(cwd=str(folder), roots=roots))
    return json.loads(str(registry.dispatch(name, args, context=context, gate=OpenGate())))


def replace(folder: Path, old: str, new: str, path: str = "a.py", **more: Any) -> dict[str, Any]:
    return call("patch", folder, mode="replace", path=path, old_string=old, new_string=new, **more)


def patch(folder: Path, text: str, **more: Any) -> dict[str, Any]:
    return call("patch", folder, mode="patch", patch=text, **more)


def hows(answer: dict[str, Any]) -> list[str]:
    return [hunk["matched"] for file in answer["files"] for hunk in file["hunks"]]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Replacing a string.


def test_a_string_is_replaced_where_it_stands_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    answer = replace(tmp_path, "y = 2", "y = 3")
    assert (tmp_path / "a.py").read_text() == "x = 1\ny = 3\n"
    assert answer["files"] == [
        {
            "path": str(tmp_path / "a.py"),
            "action": "update",
            "hunks_applied": 1,
            "hunks": [{"line": 2, "matched": "exact"}],
        }
    ]
    assert "-y = 2\n+y = 3" in answer["diff"]


def test_replace_is_the_default_and_a_patch_without_its_mode_is_understood(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x\n")
    call("patch", tmp_path, path="a.py", old_string="x", new_string="y")
    call("patch", tmp_path, patch="*** Update File: a.py\n-y\n+z\n")
    assert (tmp_path / "a.py").read_text() == "z\n"


def test_a_part_of_a_line_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("foo(bar, baz)\n")
    replace(tmp_path, "bar, ", "")
    assert (tmp_path / "a.py").read_text() == "foo(baz)\n"


def test_a_string_that_is_there_twice_is_refused_with_the_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    answer = replace(tmp_path, "        x = 1\n", "        x = 2\n")
    assert answer["error_type"] == "tool_failed"
    assert answer["lines"] == [3, 8]
    assert "at lines 3, 8" in answer["error"]
    assert (tmp_path / "a.py").read_text() == CODE


def test_replace_all_replaces_all(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    answer = replace(tmp_path, "x", "value", replace_all=True)
    assert (tmp_path / "a.py").read_text() == CODE.replace("x", "value")
    assert answer["files"][0]["hunks_applied"] == 4


def test_replace_all_forgives_whitespace_everywhere(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a \nb\n-\na\t\nb\n")
    answer = replace(tmp_path, "a\nb\n", "c\n", replace_all=True)
    assert (tmp_path / "a.py").read_text() == "c\n-\nc\n"
    assert hows(answer) == ["trailing_whitespace"] * 2


def test_places_that_overlap_are_two_places_and_are_replaced_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a \na \na \na \na \n")
    assert replace(tmp_path, "a\na\n", "b\n")["lines"] == [1, 2, 3, 4]
    replace(tmp_path, "a\na\n", "b\n", replace_all=True)
    assert (tmp_path / "a.py").read_text() == "b\nb\na \n"


@pytest.mark.parametrize(("old", "new", "says"), [("", "x", "old_string is empty"), ("x", "x", "are the same")])
def test_nothing_to_replace_is_a_clear_error(tmp_path: Path, old: str, new: str, says: str) -> None:
    (tmp_path / "a.py").write_text("x\n")
    answer = replace(tmp_path, old, new)
    assert answer["error_type"] == "invalid_arguments"
    assert says in answer["error"]


def test_missing_arguments_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x\n")
    assert call("patch", tmp_path, path="a.py", old_string="x")["argument"] == "new_string"
    assert call("patch", tmp_path, mode="patch")["argument"] == "patch"
    assert call("patch", tmp_path)["argument"] == "path"


def test_a_missing_file_names_the_similar_ones(tmp_path: Path) -> None:
    (tmp_path / "utils.py").touch()
    assert replace(tmp_path, "a", "b", path="util.py")["similar"] == ["utils.py"]


# What is forgiven, and how it is told.


def test_trailing_whitespace_is_forgiven_and_kept_where_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("keep  \nold\t\nend\n")
    answer = replace(tmp_path, "keep\nold\nend\n", "keep\nnew\nend\n")
    assert (tmp_path / "a.py").read_text() == "keep  \nnew\nend\n"
    assert hows(answer) == ["trailing_whitespace"]


def test_a_block_indented_otherwise_is_found_and_the_new_lines_are_indented_like_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class A:\n    def f(self):\n        return 1\n")
    answer = replace(
        tmp_path, "def f(self):\n    return 1\n", "def f(self):\n    if x:\n        return 2\n    return 1\n"
    )
    assert (tmp_path / "a.py").read_text() == (
        "class A:\n    def f(self):\n        if x:\n            return 2\n        return 1\n"
    )
    assert hows(answer) == ["indentation"]
    assert "check in the diff" in answer["notice"]


def test_a_block_indented_too_far_is_moved_back(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    a()\n    b()\n")
    replace(tmp_path, "        a()\n        b()\n", "        a()\n        if c:\n            b()\n")
    assert (tmp_path / "a.py").read_text() == "def f():\n    a()\n    if c:\n        b()\n"


def test_spaces_in_the_patch_become_the_tabs_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("func f() {\n\tif a {\n\t\tb()\n\t}\n}\n")
    replace(
        tmp_path,
        "    if a {\n        b()\n    }\n",
        "    if a {\n        for {\n            b()\n        }\n    }\n",
        path="a.go",
    )
    assert (tmp_path / "a.go").read_text() == "func f() {\n\tif a {\n\t\tfor {\n\t\t\tb()\n\t\t}\n\t}\n}\n"


def test_whitespace_inside_of_lines_is_forgiven(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x   =  1\ny = 2\n")
    answer = replace(tmp_path, "x = 1\ny  = 2", "x = 3\ny = 4")
    assert (tmp_path / "a.py").read_text() == "x = 3\ny = 4\n"
    assert hows(answer) == ["whitespace"]


def test_typographic_quotes_and_dashes_are_forgiven_also_within_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("He said “yes” – twice.\nIt’s here.\n")
    answer = replace(tmp_path, 'said "yes" - tw', "said no, tw", path="a.md")
    assert (tmp_path / "a.md").read_text() == "He said no, twice.\nIt’s here.\n"
    assert hows(answer) == ["unicode_punctuation"]


def test_a_block_with_one_wrong_letter_is_found_when_there_is_only_one_like_it(tmp_path: Path) -> None:
    text = "def compute_total(items):\n    total = 0\n    for item in items:\n        total += item.price\n    return total\n"
    (tmp_path / "a.py").write_text(text)
    answer = replace(
        tmp_path, text.replace("item.price", "item.prize"), text.replace("item.price", "item.price * item.count")
    )
    assert (tmp_path / "a.py").read_text() == text.replace("item.price", "item.price * item.count")
    assert hows(answer) == ["similar"]


def test_a_block_that_is_similar_to_two_places_is_refused(tmp_path: Path) -> None:
    text = "def compute_total(items):\n    total = 0\n    for item in items:\n        total += item.price\n    return total\n"
    (tmp_path / "a.py").write_text(text + "\n" + text)
    answer = replace(tmp_path, text.replace("item.price", "item.prize"), "gone\n")
    assert answer["lines"] == [1, 7]
    assert (tmp_path / "a.py").read_text() == text + "\n" + text


def test_one_similar_line_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("timeout = 30\n")
    answer = replace(tmp_path, "timeout = 60\n", "timeout = 90\n")
    assert "old_string is not in" in answer["error"]
    assert answer["nearest"]["start_line"] == 1
    assert "-timeout = 60\n+timeout = 30" in answer["nearest"]["diff"]
    assert (tmp_path / "a.py").read_text() == "timeout = 30\n"


# V4A patches.

PATCH = """\
*** Begin Patch
*** Update File: a.py
@@ class B:
     def f(self):
-        x = 1
+        x = 2
         return x
*** Add File: new/b.py
+print("hello")
+
+print("bye")
*** Delete File: old.py
*** Update File: script.sh
*** Move to: bin/script.sh
-echo one
+echo two
*** End Patch
"""


def test_a_patch_changes_adds_deletes_and_moves(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "old.py").write_text("x\n")
    (tmp_path / "script.sh").write_text("echo one\n")
    (tmp_path / "script.sh").chmod(0o755)
    answer = patch(tmp_path, PATCH)
    assert everything(tmp_path) == {
        "a.py": CODE[: CODE.index("class B")].encode() + CODE[CODE.index("class B") :].replace("1", "2").encode(),
        "new/b.py": b'print("hello")\n\nprint("bye")\n',
        "bin/script.sh": b"echo two\n",
    }
    assert stat.S_IMODE((tmp_path / "bin/script.sh").stat().st_mode) == 0o755
    assert [file["action"] for file in answer["files"]] == ["update", "add", "delete", "update"]
    assert answer["files"][3]["moved_to"] == str(tmp_path / "bin/script.sh")


@pytest.mark.parametrize(
    "wrap",
    ["{}", "```diff\n{}```\n", "\n\n{}\n\n", "Here it is:\n{}"],
    ids=["plain", "fenced", "spaced", "introduced"],
)
def test_what_chats_put_around_a_patch_is_taken_off(tmp_path: Path, wrap: str) -> None:
    (tmp_path / "a.txt").write_text("a\n\nb\n")
    patch(tmp_path, wrap.format("*** Begin Patch\n*** Update File: a.txt\n@@\n a\n\n-b\n+c\n*** End Patch\n"))
    assert (tmp_path / "a.txt").read_text() == "a\n\nc\n"


def test_the_move_line_of_the_original_is_understood(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    answer = patch(tmp_path, "*** Begin Patch\n*** Move File: a.txt -> sub/b.txt\n*** End Patch")
    assert everything(tmp_path) == {"sub/b.txt": b"a\n"}
    assert answer["files"][0]["action"] == "move"


def test_several_hunks_are_applied_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 31)))
    answer = patch(
        tmp_path, "*** Update File: a.txt\n@@\n 20\n-21\n+twenty-one\n@@\n-5\n+five\n@@\n 29\n-30\n+thirty\n+more\n"
    )
    lines = (tmp_path / "a.txt").read_text().splitlines()
    assert (lines[4], lines[20], lines[29:]) == ("five", "twenty-one", ["thirty", "more"])
    assert [hunk["line"] for hunk in answer["files"][0]["hunks"]] == [20, 5, 29]


def test_hunks_may_share_their_context(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n3\n4\n5\n")
    patch(tmp_path, "*** Update File: a.txt\n@@\n 1\n-2\n+two\n 3\n@@\n 3\n-4\n+four\n 5\n")
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n3\nfour\n5\n"


def test_a_hunk_that_fits_twice_is_refused_with_the_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    answer = patch(tmp_path, "*** Update File: a.py\n@@\n-        x = 1\n+        x = 2\n")
    assert (answer["hunk"], answer["lines"]) == (1, [3, 8])
    assert (tmp_path / "a.py").read_text() == CODE


def test_an_anchor_that_stands_twice_does_not_decide(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    assert patch(tmp_path, "*** Update File: a.py\n@@ def f(self):\n-        x = 1\n+        x = 2\n")["lines"] == [
        3,
        8,
    ]
    patch(tmp_path, "*** Update File: a.py\n@@ class B:\n@@ def f(self):\n-        x = 1\n+        x = 2\n")
    assert (tmp_path / "a.py").read_text().splitlines()[7] == "        x = 2"


def test_lines_are_added_below_an_anchor_or_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("[one]\na\n[two]\nb\n")
    patch(tmp_path, "*** Update File: a.txt\n@@ [two]\n+new\n@@\n+last\n*** End of File\n")
    assert (tmp_path / "a.txt").read_text() == "[one]\na\n[two]\nnew\nb\nlast\n"


def test_lines_to_add_without_a_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    assert "nothing says where" in patch(tmp_path, "*** Update File: a.txt\n@@\n+new\n")["error"]
    assert (tmp_path / "a.txt").read_text() == "a\n"


def test_changes_to_one_file_build_on_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    patch(
        tmp_path,
        "*** Update File: a.txt\n-a\n+b\n*** Update File: a.txt\n-b\n+c\n*** Add File: n.txt\n+x\n"
        "*** Update File: n.txt\n-x\n+y\n*** Add File: gone.txt\n+x\n*** Delete File: gone.txt\n",
    )
    assert everything(tmp_path) == {"a.txt": b"c\n", "n.txt": b"y\n"}


def test_when_one_hunk_does_not_fit_nothing_at_all_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "b.py").write_text(CODE)
    before = everything(tmp_path)
    answer = patch(
        tmp_path,
        "*** Update File: a.txt\n-a\n+b\n*** Add File: c.txt\n+x\n*** Update File: b.py\n@@\n-class A:\n+class Z:\n"
        "@@\n     def f(self):\n-        y = 1\n+        y = 2\n         return x\n",
    )
    assert everything(tmp_path) == before
    assert "b.py, hunk 2 of 2, does not fit" in answer["error"]
    assert (answer["path"], answer["hunk"]) == ("b.py", 2)
    assert (answer["nearest"]["start_line"], answer["nearest"]["end_line"]) == (2, 4)
    assert "-        y = 1\n+        x = 1" in answer["nearest"]["diff"]


def test_a_patch_applied_twice_says_that_it_seems_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    text = "*** Update File: a.txt\n@@\n one\n-two\n+zwei\n three\n"
    patch(tmp_path, text)
    assert "applied before" in patch(tmp_path, text)["error"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("*** Add File: a.txt\n+x\n", "it exists"),
        ("*** Update File: a.txt\n*** Move to: b.txt\n-a\n+c\n", "that exists"),
        ("*** Delete File: c.txt\n", "there is no c.txt"),
        ("*** Delete File: a.txt\n*** Update File: a.txt\n-a\n+b\n", "gone by then"),
        ("*** Update File: a.txt\n*** Delete File: sub\n", "has no hunk"),
        ("*** Delete File: sub\n", "is a folder"),
        ("*** Delete File: link\n", "links are left alone"),
        ("*** Update File: a.txt\nwhat is this\n", "line 2 of the patch"),
        ("*** Add File: c.txt\nno plus\n", "line 2 of the patch"),
        ("*** Begin Patch\n-a\n+b\n*** End Patch\n", "must come before it"),
        ("*** Begin Patch\n*** End Patch\n", "names no file"),
        ("just words", "neither a V4A patch"),
        ("--- a/a.txt\n+++ b/a.txt\n", "has no hunk"),
    ],
)
def test_a_patch_that_cannot_be_done_says_why_and_does_nothing(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "b.txt").write_text("b\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("a.txt")
    before = everything(tmp_path)
    assert says in patch(tmp_path, text)["error"]
    assert everything(tmp_path) == before


# Unified diffs.


def test_a_git_diff_is_applied(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "gone.txt").write_text("x\n")
    (tmp_path / "old name.txt").write_text("1\n2\n3\n")
    answer = patch(
        tmp_path,
        "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -6,4 +6,4 @@ class A:\n class B:\n"
        "     def f(self):\n-        x = 1\n+        x = 2\n         return x\n"
        "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/n/new.txt b/n/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/n/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        "\\ No newline at end of file\n"
        "diff --git a/old name.txt b/new name.txt\nsimilarity index 60%\nrename from old name.txt\nrename to new name.txt\n"
        "--- a/old name.txt\n+++ b/new name.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n-- \n2.39.2\n",
    )
    assert "error" not in answer
    assert everything(tmp_path) == {
        "a.py": (CODE[:-40] + CODE[-40:].replace("x = 1", "x = 2")).encode(),
        "n/new.txt": b"a\nb",
        "new name.txt": b"1\nzwei\n3\n",
    }


def test_wrong_line_numbers_and_counts_do_not_matter_when_the_place_is_clear(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 31)))
    text = "--- a.txt\t2024-01-01\n+++ a.txt\t2024-01-02\n@@ -99,9 +99,1 @@\n 9\n-10\n+ten\n 11\n@@ -1 +1 @@\n-20\n+twenty\n"
    assert "error" not in patch(tmp_path, text)
    lines = (tmp_path / "a.txt").read_text().splitlines()
    assert (lines[9], lines[19]) == ("ten", "twenty")


def test_line_numbers_decide_between_equal_places_only_when_they_are_exact(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\ny\n" * 5)
    assert "fits in 5 places" in patch(tmp_path, "--- a.txt\n+++ a.txt\n@@ -6,1 +6,1 @@\n-x\n+z\n")["error"]
    assert "error" not in patch(tmp_path, "--- a.txt\n+++ a.txt\n@@ -5,1 +5,1 @@\n-x\n+z\n")
    assert (tmp_path / "a.txt").read_text().splitlines()[4] == "z"


def test_dropped_lines_that_look_like_a_header_are_still_lines(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- a\nselect 1\n")
    patch(tmp_path, "--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n--- a\n+++ b\n select 1\n")
    assert (tmp_path / "a.sql").read_text() == "++ b\nselect 1\n"


def test_a_hunk_alone_goes_to_the_path_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    patch(tmp_path, "@@ -1 +1 @@\n-a\n+b\n", path="a.txt")
    patch(tmp_path, "-b\n+c\n", path="a.txt")
    assert (tmp_path / "a.txt").read_text() == "c\n"
    assert "names no file" in patch(tmp_path, "@@ -1 +1 @@\n-c\n+d\n")["error"]


def test_the_diff_in_an_answer_can_be_applied_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\nc")
    answer = replace(tmp_path, "b\nc", "x\ny", path="a.txt")
    (tmp_path / "a.txt").write_text("a\nb\nc")
    call("read_file", tmp_path, path="a.txt")
    patch(tmp_path, answer["diff"])
    assert (tmp_path / "a.txt").read_text() == "a\nx\ny"


LINES = st.lists(
    st.sampled_from(["a", "b", "", " ", "-- a", "++ b", "\\ x", "@@ -1 +1 @@", "--- a", "x\tä"]), max_size=12
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + ("\n" if lines and end else ""), LINES, st.booleans())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=TEXTS, after=TEXTS, context=st.integers(0, 3))
def test_a_generated_diff_of_two_texts_makes_the_second_of_the_first(
    tmp_path: Path, before: str, after: str, context: int
) -> None:
    if before == after:
        return
    target = tmp_path / "t.txt"
    target.write_text(before)
    call("read_file", tmp_path, path="t.txt")
    answer = patch(tmp_path, unified(before, after, context))
    assert "error" not in answer
    assert target.read_text() == after
    assert set(hows(answer)) <= {"exact"}


def unified(before: str, after: str, context: int) -> str:
    """As `diff -u` writes it."""
    import difflib

    old, new = (text.split("\n") for text in (before, after))
    old, new = ([line + "\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1]) for lines in (old, new))
    marked = "\n\\ No newline at end of file\n"
    lines = difflib.unified_diff(old, new, "a/t.txt", "b/t.txt", n=context)
    return "".join(line if line.endswith("\n") else line + marked for line in lines)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=TEXTS, after=TEXTS)
def test_a_v4a_patch_makes_the_second_text_or_refuses(tmp_path: Path, before: str, after: str) -> None:
    if before == after or not before:
        return
    target = tmp_path / "t.txt"
    target.write_text(before)
    call("read_file", tmp_path, path="t.txt")
    hunks = unified(before, after, 3).split("\n")[2:]
    hunks = ["@@" if line.startswith("@@") else line for line in hunks if line]
    answer = patch(tmp_path, "*** Begin Patch\n*** Update File: t.txt\n" + "\n".join(hunks) + "\n*** End Patch\n")
    if "error" in answer:
        assert target.read_text() == before
        assert "places" in answer["error"] or "nothing says where" in answer["error"]
    else:
        assert target.read_text() == after


# What stays as it was.


def test_crlf_stays_crlf_whatever_the_patch_brings(tmp_path: Path) -> None:
    for text in ("*** Update File: a.txt\n a\n-b\n+c\n+d\n", "*** Update File: a.txt\r\n a\r\n-b\r\n+c\r\n+d\r\n"):
        (tmp_path / "a.txt").write_bytes(b"a\r\nb\r\n")
        call("read_file", tmp_path, path="a.txt")
        assert hows(patch(tmp_path, text)) == ["exact"]
        assert (tmp_path / "a.txt").read_bytes() == b"a\r\nc\r\nd\r\n"
    replace(tmp_path, "c\nd\n", "e\n", path="a.txt")
    assert (tmp_path / "a.txt").read_bytes() == b"a\r\ne\r\n"


def test_in_a_file_with_both_line_ends_each_line_keeps_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\nb\r\nc\r\nd\n")
    patch(tmp_path, "*** Update File: a.txt\n b\n-c\n+x\n+y\n")
    assert (tmp_path / "a.txt").read_bytes() == b"a\nb\r\nx\r\ny\r\nd\n"


def test_a_missing_newline_at_the_end_stays_missing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb")
    patch(tmp_path, "*** Update File: a.txt\n a\n-b\n+c\n")
    assert (tmp_path / "a.txt").read_text() == "a\nc"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_the_encoding_stays(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("café\nx\n".encode(encoding))
    replace(tmp_path, "x", "thé", path="a.txt")
    assert (tmp_path / "a.txt").read_bytes() == "café\nthé\n".encode(encoding)


def test_bytes_that_are_not_utf8_survive_beside_the_change(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("naïve ünï ".encode() + b"\xff\xfe\nold\n")
    replace(tmp_path, "old", "new", path="a.txt")
    assert (tmp_path / "a.txt").read_bytes() == "naïve ünï ".encode() + b"\xff\xfe\nnew\n"


def test_a_character_that_the_encoding_lacks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("café\nx\n".encode("latin-1"))
    assert "latin-1, which has no '語'" in replace(tmp_path, "x", "語", path="a.txt")["error"]
    assert (tmp_path / "a.txt").read_bytes() == "café\nx\n".encode("latin-1")


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\n")
    call("read_file", tmp_path, path="a.txt")
    (tmp_path / "a.txt").write_text("a\nx\n")
    answer = replace(tmp_path, "a", "c", path="a.txt")
    assert answer["changed_since_read"] is True
    assert (tmp_path / "a.txt").read_text() == "a\nx\n"


def test_ones_own_patches_are_no_change_by_someone_else(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    call("read_file", tmp_path, path="a.txt")
    for old, new in ("ab", "bc", "cd"):
        assert "error" not in replace(tmp_path, old, new, path="a.txt")


def test_outside_of_the_roots_nothing_is_touched_and_the_rest_neither(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a.txt").write_text("a\n")
    (tmp_path / "b.txt").write_text("b\n")
    for outside in (
        "*** Update File: ../b.txt\n-b\n+c\n",
        "*** Delete File: ../b.txt\n",
        "*** Add File: ../c.txt\n+x\n",
    ):
        answer = patch(inside, "*** Update File: a.txt\n-a\n+x\n" + outside, roots=(str(inside),))
        assert answer["error_type"] == "denied"
    moved = "*** Update File: a.txt\n*** Move to: ../a.txt\n-a\n+x\n"
    assert patch(inside, moved, roots=(str(inside),))["error_type"] == "denied"
    assert everything(tmp_path) == {"inside/a.txt": b"a\n", "b.txt": b"b\n"}


def test_the_diff_of_a_big_change_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 2000)
    answer = replace(tmp_path, "x", "y", path="a.txt", replace_all=True)
    assert len(answer["diff"]) <= MAX_DIFF_CHARS + 100


def test_every_path_of_a_patch_is_declared_as_written(tmp_path: Path) -> None:
    entry = registry.get_entry("patch")
    assert entry is not None
    assert entry.resources is not None
    named = entry.resources({"mode": "patch", "patch": PATCH}, ToolContext()).writes
    assert {os.path.relpath(path) for path in named} == {"a.py", "new/b.py", "old.py", "script.sh", "bin/script.sh"}
    assert entry.resources({"path": "/x/a.py", "old_string": "a", "new_string": "b"}, ToolContext()).writes == (
        "/x/a.py",
    )
    assert entry.resources({"mode": "patch", "patch": "nonsense"}, ToolContext()).writes == ("/",)


@pytest.mark.parametrize(
    ("there", "old", "new", "after"),
    [
        ("say(“hi…”, it’s  –  fine)\n", '"hi...", it\'s - fine', "“yes…”  - 'a'", "say(“yes…”  - 'a')\n"),
        ("x = call(a,   b)  # wait...\n", "call(a, b) # wait…", "call(a,  b)", "x = call(a,  b)\n"),
        ("one two\tthree four\n", "two three", "2\t 3", "one 2\t 3 four\n"),
    ],
)
def test_typography_and_inner_white_space_do_not_matter_and_what_is_written_is_as_asked(
    tmp_path: Path, there: str, old: str, new: str, after: str
) -> None:
    (tmp_path / "a.txt").write_text(there)
    answer = replace(tmp_path, old, new, path="a.txt")
    assert (tmp_path / "a.txt").read_text() == after
    assert "not every hunk matched exactly" in answer["notice"]


def test_a_part_of_an_ellipsis_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("wait…\n")
    assert "error" in replace(tmp_path, "wait..", "go", path="a.txt")
    assert (tmp_path / "a.txt").read_text() == "wait…\n"


def test_syntax_errors_of_what_was_patched_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    answer = replace(tmp_path, "return 1", "return (1")
    assert "line 2" in answer["syntax_errors"][str(tmp_path / "a.py")]
    assert "syntax_errors" not in replace(tmp_path, "return (1", "return 2")
