"""A diff as the chat shows it."""

from __future__ import annotations

from rich.console import Console

from handrail.cli.chat.diffs import diff_lines, diff_rows

DIFF = """--- a/shop.py
+++ b/shop.py
@@ -3,4 +3,4 @@
 def price(n):
-    return n * 2
+    return n * 3
     # end
@@ -20,1 +20,2 @@
 x = 1
+y = 2
"""


def test_lines_are_numbered_and_changed_words_are_marked() -> None:
    lines = list(diff_lines(DIFF, "shop.py"))
    assert [line.plain for line in lines] == [
        "   3   def price(n):",
        "   4 -     return n * 2",
        "   4 +     return n * 3",
        "   5       # end",
        "⋯",
        "  20   x = 1",
        "  21 + y = 2",
    ]
    marked = [line.plain[span.start : span.end] for line in lines for span in line.spans if "7a2329" in str(span.style)]
    assert marked == ["2"]


def test_a_long_diff_is_cut_and_an_unknown_language_is_plain() -> None:
    long = "@@ -0,0 +1,99 @@\n" + "".join(f"+line {n}\n" for n in range(99))
    lines = [line.plain for line in diff_lines(long, "data.unknown", most=11)]
    assert lines[-1] == "… 89 more lines"
    assert lines[0] == "   1 + line 0"


def test_escapes_in_a_diff_are_shown_not_obeyed() -> None:
    assert "\x1b" not in "".join(line.plain for line in diff_lines("@@ -1 +1 @@\n+\x1b[2Jgone\n", "a.py"))


def test_a_light_theme_has_light_backgrounds() -> None:
    removed, added = diff_lines("-old\n+new\n", "a.txt", theme="ansi_light")
    assert "#ffebe9" in str(removed.spans)
    assert "#dafbe1" in str(added.spans)


def test_of_a_long_diff_what_was_added_is_shown_too() -> None:
    removed = "".join(f"-old {number}\n" for number in range(50))
    lines = [
        line.plain for line in diff_lines(f"@@ -1,50 +1,50 @@\n{removed}{removed.replace('-old', '+new')}", most=12)
    ]
    assert "   1 - old 0" in lines
    assert "   1 + new 0" in lines
    assert lines[-1] == "… 89 more lines"


def test_a_line_that_is_too_long_goes_on_below_its_code() -> None:
    console = Console(width=40)
    with console.capture() as shown:
        console.print(*diff_rows("@@ -1 +1 @@\n+" + "word " * 12, "", 9, theme="ansi_dark"))
    first, second, *_ = shown.get().splitlines()
    assert first.startswith("   1 + word")
    assert second.startswith("       word")
