"""Which paths a glob means."""

from __future__ import annotations

import pytest

from handrail.errors import InvalidArguments
from handrail.tools.files.searching.query import Glob


@pytest.mark.parametrize(
    ("glob", "fits", "fits_not"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "a.py/b"]),
        ("config", ["config", "a/config"], ["config.py", "config/a"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/x/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py", "src/a.js"]),
        ("**/test_*", ["test_a", "x/test_a"], ["a_test_"]),
        ("src/**", ["src/a", "src/x/y"], ["src", "other/a"]),
        ("**/a/**/b", ["a/b", "x/a/y/z/b"], ["a", "b/a"]),
        ("/top.txt", ["top.txt"], ["x/top.txt"]),
        ("src/", ["src/a", "src/x/y"], ["src", "x/src/a"]),
        ("./a/b", ["a/b"], ["b"]),
        ("*.{js,ts}", ["a.js", "a.ts"], ["a.jsx", "a.{js,ts}"]),
        ("{a,b{c,d}}.x", ["a.x", "bc.x", "bd.x"], ["b.x"]),
        ("{a}.x", ["{a}.x"], ["a.x"]),
        ("a[!b].?", ["ac.x"], ["ab.x", "ac.xy"]),
        ("!*.min.js", ["a.js", "x/b.py"], ["a.min.js", "x/a.min.js"]),
        ("**", ["a", "a/b"], []),
    ],
)
def test_a_glob_fits_what_it_says(glob: str, fits: list[str], fits_not: list[str]) -> None:
    assert [path for path in fits if not Glob(glob)(path)] == []
    assert [path for path in fits_not if Glob(glob)(path)] == []


def test_alternatives_without_end_are_refused() -> None:
    with pytest.raises(InvalidArguments, match="too many alternatives"):
        Glob("{a,b}" * 20)


def test_a_glob_of_many_stars_is_decided_at_once() -> None:
    assert not Glob("*a" * 30 + "b")("a" * 200)
    assert not Glob("**/" * 30 + "b")("/".join("a" * 200))
