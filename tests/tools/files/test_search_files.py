"""What `search_files` finds, with ripgrep and without it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import handrail.tools.files.search_files  # noqa: F401  registers the tool
from handrail.core.builtin import registry
from handrail.errors import CallTimeout
from handrail.files.local import LocalFiles
from handrail.tools.files.searching import ripgrep, scan
from handrail.tools.files.searching.query import Query, rules_above
from handrail.types import CancelToken, ToolContext

Search = Callable[..., dict[str, Any]]


class ElsewhereFiles(LocalFiles):
    """Files that no program of this machine can open, as those of a container: only Python can search them."""

    def host_path(self, path: str) -> str | None:
        return None


def run(files: LocalFiles, **args: Any) -> dict[str, Any]:
    answer = registry.dispatch("search_files", args, context=ToolContext(files=files))
    assert isinstance(answer, str)
    return json.loads(answer)


@pytest.fixture(params=[LocalFiles, ElsewhereFiles], ids=["ripgrep", "python"])
def search(request: pytest.FixtureRequest, tmp_path: Path) -> Search:
    """The tool on `tmp_path`, by either engine."""
    assert shutil.which("rg"), "ripgrep is needed to test that it and Python find the same: apt-get install ripgrep"
    return lambda **args: run(request.param(cwd=str(tmp_path)), **args)


def put(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def paths(answer: dict[str, Any]) -> list[str]:
    return [match["path"] for match in answer["matches"]]


TREE: dict[str, str | bytes] = {
    ".gitignore": "*.log\nbuild/\n/top.txt\n!keep.log\nnamed\nsub/*.tmp\n# comment\n\ntrailing   \n",
    "a.txt": "needle one\nhay\nneedle two\n",
    "b.log": "needle\n",
    "keep.log": "needle\n",
    "top.txt": "needle\n",
    "sub/top.txt": "needle\n",
    "sub/x.tmp": "needle\n",
    "sub/.gitignore": "*.py\n!z.py\n",
    "sub/y.py": "needle\n",
    "sub/z.py": "needle\n",
    "sub/deep/w.py": "needle\n",
    "sub/deep/again.log": "needle\n",
    "build/out.txt": "needle\n",
    "named/inside.txt": "needle\n",
    "other/named": "needle\n",
    "trailing": "needle\n",
    ".hidden": "needle\n",
    ".github/ci.yml": "on: needle\n",
    ".git/config": "needle\n",
    "vendor/.git/HEAD": "needle\n",
    "vendor/lib.log": "needle\n",
    "vendor/lib.c": "needle\n",
    "binary.dat": b"needle\0needle\n",
    "late.dat": b"needle\n" * 10_000 + b"\0",  # beyond the first buffer of ripgrep
    "crlf.txt": b"needle\r\nhay\r\nneedle\r\n",
    "ünï/cødé 日本.txt": "needle é 日本\n",
    "space and 'quote\".txt": "a needle\n",
    "new\nline.txt": "needle\n",
    "utf16.txt": "needle ü\nhay\n".encode("utf-16"),
    "bom.txt": b"\xef\xbb\xbfneedle\n",
    "latin.txt": "needle café\n".encode("latin-1"),
    "empty.txt": "",
    "no-newline.txt": "hay\nneedle",
    "long.txt": "x" * 3000 + "needle" + "y" * 3000 + "\n",
    "-dash.txt": "-needle\n",
}
QUESTIONS: list[dict[str, Any]] = [
    {"pattern": "needle"},
    {"pattern": "needle", "limit": 3, "offset": 2},
    {"pattern": "needle", "context": 2},
    {"pattern": "^needle$"},
    {"pattern": "(?i)NEEDLE"},
    {"pattern": "needle", "output_mode": "count"},
    {"pattern": "needle", "output_mode": "files_only", "limit": 4, "offset": 1},
    {"pattern": "needle", "file_glob": "*.log"},
    {"pattern": "needle", "file_glob": "*.{py,txt}"},
    {"pattern": "needle", "file_glob": "sub/**"},
    {"pattern": "needle", "file_glob": "!*.txt"},
    {"pattern": "needle", "path": "sub"},
    {"pattern": "needle", "path": "build"},
    {"pattern": "needle", "path": "vendor"},
    {"pattern": "needle", "path": "a.txt", "context": 1},
    {"pattern": "needle", "path": "b.log"},
    {"pattern": r"\bneedle\s+(one|two)"},
    {"pattern": r"é|日本"},
    {"pattern": "-needle"},
    {"pattern": r"needle(?= two)"},
    {"pattern": r"(n)e{2}dl\1?"},
    {"pattern": r"[[:alpha:]]+"},
    {"pattern": "nothing like it"},
    {"pattern": "*.txt", "target": "files"},
    {"pattern": "**/*.py", "target": "files"},
    {"pattern": "*", "target": "files", "path": "sub"},
    {"pattern": "*", "target": "files", "limit": 5, "offset": 5},
    {"pattern": "deep/*", "target": "files", "path": "sub"},
    {"pattern": "*", "target": "files", "file_glob": "*.log"},
]


@pytest.fixture(scope="module", params=[True, False], ids=["repository", "no repository"])
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody changes it."""
    folder = tmp_path_factory.mktemp("tree")
    put(folder, TREE)
    (folder / "link.txt").symlink_to("a.txt")
    (folder / "link-to-folder").symlink_to("sub")
    os.mkfifo(folder / "pipe")
    Path(os.fsdecode(bytes(folder) + b"/bad\xff.txt")).write_text("needle\n")
    if not request.param:
        shutil.rmtree(folder / ".git")
    return folder


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: "-".join(map(str, question.values())))
def test_ripgrep_and_python_give_the_same_answer(tree: Path, question: dict[str, Any]) -> None:
    fast = run(LocalFiles(cwd=str(tree)), **question)
    assert "error" not in fast
    assert fast == run(ElsewhereFiles(cwd=str(tree)), **question)


NAMES = st.sampled_from(["a", "b", "ab", "a.py", "b.py", ".a", "c d"])
RULES = st.sampled_from(
    ["a", "a/", "/a", "*.py", "!a.py", "a/b", "**/b", "b/**", "a*", "!/a", "a/*", "[ab].py", "?", "!b", "\\!a", "*/a"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=3)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tree=st.lists(PATHS, min_size=1, max_size=12),
    ignores=st.dictionaries(
        st.sampled_from(["", "a/", "b/", "a/b/"]), st.lists(RULES, min_size=1, max_size=4), max_size=3
    ),
)
def test_both_engines_read_gitignore_as_git_does(
    tmp_path_factory: pytest.TempPathFactory, tree: list[list[str]], ignores: dict[str, list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for steps in tree:
        path = folder.joinpath(*steps)
        if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x\n")
    for where, rules in ignores.items():
        if (folder / where).is_dir():
            (folder / where / ".gitignore").write_text("\n".join(rules) + "\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-per-directory=.gitignore"],
        cwd=folder,
        check=True,
        capture_output=True,
    ).stdout.decode()
    expected = sorted(filter(None, listed.split("\0")))
    query = Query(str(folder), above=rules_above(LocalFiles(), str(folder)))
    assert ripgrep.list_files(query) == expected
    assert scan.list_files(LocalFiles(), query) == expected


def test_hidden_files_are_searched_and_git_is_not(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {".env": "needle", ".git/config": "needle", ".github/ci.yml": "needle"})
    put(tmp_path, {".handrail-undo-0/1-2": "needle"})  # what an undo would put back
    assert paths(search(pattern="needle")) == [".env", ".github/ci.yml"]


def test_gitignore_holds_outside_of_a_repository_too(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": "*.log", "a.log": "needle", "a.txt": "needle"})
    assert paths(search(pattern="needle")) == ["a.txt"]


def test_the_rules_of_the_repository_hold_in_a_folder_of_it(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {".git/HEAD": "", ".gitignore": "*.log", "sub/a.log": "needle", "sub/a.txt": "needle"})
    assert paths(search(pattern="needle", path="sub")) == ["sub/a.txt"]


def test_an_ignored_folder_can_be_searched_by_naming_it(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {".git/HEAD": "", ".gitignore": "build/", "build/deep/a.txt": "needle"})
    assert paths(search(pattern="needle", path="build")) == ["build/deep/a.txt"]
    assert paths(search(pattern="needle", path="build/deep")) == ["build/deep/a.txt"]


def test_a_glob_does_not_bring_back_what_is_ignored(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": "*.log", "a.log": "needle"})
    assert search(pattern="needle", file_glob="*.log")["matches"] == []


def test_pages_put_together_are_all_matches(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {f"{name}.txt": "needle\nhay\n" * 7 for name in "cab"})
    everything = search(pattern="needle", limit=1000)
    assert everything["total"] == 21
    assert everything["truncated"] is False
    assert paths(everything) == ["a.txt"] * 7 + ["b.txt"] * 7 + ["c.txt"] * 7
    pages, offset = [], 0
    while offset is not None:
        page = search(pattern="needle", limit=4, offset=offset)
        assert page["total"] == 21
        pages += page["matches"]
        offset = page.get("next_offset")
    assert pages == everything["matches"]


def test_an_offset_past_the_end_says_how_many_there_are(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": "needle\n"})
    answer = search(pattern="needle", offset=5)
    assert (answer["matches"], answer["total"], answer["truncated"]) == ([], 1, False)
    assert "there are 1 results" in answer["notice"]


def test_a_match_far_into_a_line_is_shown_with_what_is_around_it(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {"min.js": "é" * 5000 + "needle" + "b" * 5000})
    text = search(pattern="needle")["matches"][0]["text"]
    assert "needle" in text
    assert text.startswith("…é")
    assert text.endswith("b…")
    assert len(text) <= 502


def test_lines_around_a_match_are_given_on_request(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": "1\n2\nneedle\nneedle\n5\n"})
    first, second = search(pattern="needle", context=1)["matches"]
    assert (first["before"], first["after"]) == (["2"], ["needle"])
    assert (second["before"], second["after"]) == (["needle"], ["5"])


def test_paths_can_be_used_as_they_are(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {"src/deep/a.py": "needle\n"})
    for asked, shown in [
        (".", "src/deep/a.py"),
        ("src", "src/deep/a.py"),
        ("./src/", "src/deep/a.py"),
        ("src/deep/a.py", "src/deep/a.py"),
        (str(tmp_path / "src"), str(tmp_path / "src/deep/a.py")),
        ("src/../src", "src/../src/deep/a.py"),
    ]:
        assert paths(search(pattern="needle", path=asked)) == [shown]


def test_a_name_without_wildcards_is_the_whole_name(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {"config.py": "", "deep/config.py": "", "my_config.py": ""})
    assert search(pattern="config.py", target="files")["files"] == ["config.py", "deep/config.py"]
    assert "*config*" in search(pattern="config", target="files")["notice"]


def test_a_regular_expression_that_is_none_says_where(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": "foo(\n"})
    answer = search(pattern="foo(")
    assert (answer["error_type"], answer["position"]) == ("invalid_arguments", 3)
    assert "at position 3" in answer["error"]


@pytest.mark.parametrize("pattern", ["a**", "x{2}{3}", "(?P<n>a)(?P<n>b)", "[z-a]", r"\p{L}", "(" * 3000])
def test_what_only_one_engine_would_refuse_is_refused_by_both(search: Search, tmp_path: Path, pattern: str) -> None:
    put(tmp_path, {"a.txt": "a\n"})
    assert search(pattern=pattern)["error_type"] == "invalid_arguments"


def test_a_search_leads_nowhere_out_of_the_roots(tmp_path: Path) -> None:
    put(tmp_path, {"outside/a.txt": "needle", "inside/b.txt": "needle"})
    (tmp_path / "inside/link").symlink_to(tmp_path / "outside")
    (tmp_path / "inside/file").symlink_to(tmp_path / "outside/a.txt")
    for kind in (LocalFiles, ElsewhereFiles):
        files = kind(cwd=str(tmp_path / "inside"), roots=[str(tmp_path / "inside")])
        assert paths(run(files, pattern="needle")) == ["b.txt"]
        for path in ("..", "link", "file", "/"):
            assert run(files, pattern="needle", path=path)["error_type"] == "denied"
            assert run(files, pattern="*", target="files", path=path)["error_type"] == "denied"


def test_a_folder_that_is_not_there_and_a_binary_file_say_so(search: Search, tmp_path: Path) -> None:
    put(tmp_path, {"src/a.txt": "", "x.bin": b"\0needle"})
    assert search(pattern="x", path="scr")["similar"] == ["src"]
    assert "not text" in search(pattern="needle", path="x.bin")["error"]
    assert "is a file" in search(pattern="*", target="files", path="src/a.txt")["error"]


def test_without_ripgrep_the_search_works_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"a.txt": "needle\n"})
    files = LocalFiles(cwd=str(tmp_path))
    fast = run(files, pattern="needle"), run(files, pattern="*", target="files")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert (run(files, pattern="needle"), run(files, pattern="*", target="files")) == fast


CATASTROPHE = "(a|a)*$"


def test_a_pattern_that_never_ends_is_stopped(tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": "a" * 60 + "b\n"})
    with pytest.raises(CallTimeout, match="did not end within"):
        scan.search_lines(LocalFiles(), Query(str(tmp_path), CATASTROPHE, last=10, seconds=0.4))


def test_a_search_that_is_cancelled_ends_soon(tmp_path: Path) -> None:
    put(tmp_path, {"a.txt": "a" * 60 + "b\n"})
    cancel = CancelToken()
    answers: list[str] = []
    has_read = threading.Event()

    class Noting(ElsewhereFiles):
        def read(self, path: str, **how: Any) -> bytes:
            has_read.set()
            return super().read(path, **how)

    context = ToolContext(files=Noting(cwd=str(tmp_path)), cancel=cancel)
    thread = threading.Thread(
        target=lambda: answers.append(str(registry.dispatch("search_files", {"pattern": CATASTROPHE}, context=context)))
    )
    thread.start()
    assert has_read.wait(60)
    cancel.cancel("never mind")
    thread.join(60)
    assert json.loads(answers[0])["error_type"] == "cancelled"


def test_ripgrep_that_takes_too_long_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Callable[[], set[int]]
) -> None:
    slow = tmp_path / "bin/rg"
    put(tmp_path, {"bin/rg": "#!/bin/sh\nsleep 1000 & sleep 1000\n", "a.txt": "needle"})
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    with pytest.raises(CallTimeout):
        ripgrep.search_lines(Query(str(tmp_path), "needle", last=10, seconds=0.3))
    wait_for(lambda: not started())


def test_what_it_reads_is_the_folder(tmp_path: Path) -> None:
    entry = registry.get_entry("search_files")
    assert entry is not None
    assert entry.resources is not None
    assert entry.resources({"pattern": "x", "path": str(tmp_path)}, ToolContext()).reads == (str(tmp_path),)
    assert entry.resources({"pattern": "x"}, ToolContext()).reads == (os.path.realpath("."),)
    assert entry.timeout == 60


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[int]]:
    """The processes that the test started, whoever is their parent by now: they carry its mark."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("HANDRAIL_TEST_MARK", mark)

    def alive() -> set[int]:
        found = set()
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if process.name.isdigit() and mark.encode() in (process / "environ").read_bytes():
                    found.add(int(process.name))
        return found

    return alive


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        os.sched_yield()
