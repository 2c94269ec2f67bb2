"""Find the command lines among the strings of a program, in whatever language, when something in it can run them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from .host import Host
from .tokens import Token, tokens

_RUNS = re.compile(
    r"(?i)\b(?:\w*system\w*|exec\w*|\w*spawn\w*|\w*popen\w*|shell|shell_exec|shell-command\S*|os/shell|subprocess|child_process|runtime|process\w*|\w*command|"
    r"run|\w+run|run-program|call-process\S*|sh|cmd|qx|call_user_func\w*|send)\b|\.!|\$\w+\s*\(|\(!\s"
)
_PRINTS = frozenset(
    "print println printf puts echo say p pp log info warn warning error debug display format message write writeln "
    "console.log console.error console.warn console.info sys.stdout.write fmt.Println fmt.Printf IO.puts cat".split()
)
_TREE = re.compile(
    r"\b(?:RemoveAll|removeDirectoryRecursive|removePathForcibly|delete-directory(?:/files|-tree)?|delete-tree|deleteDir|"
    r"deleteRecursively|deleteDirectory|removeItem|remove_dir_all|remove_all|rmtree|rmSync|rimraf|removeDir|dirRemove|"
    r"rm_rf|FileUtils\.rm_r\w*|Directory\.Delete)\b|\brmdir\s*\([^()]*,\s*['\"]s['\"]"
)
_WRITES = re.compile(
    r"\b(?:write-region|append-to-file|spit|WriteFile|writeFile|write_all|fs::write|WriteAllText|with-output-to-file|"
    r"call-with-output-file)\b"
)
_REVERSES = re.compile(r"(?i)\b(?:str)?rev(?:erse\w*)?\b")
_ESCAPED = re.compile(r"(?m)^\s*:?!\s*(\S.*)$")
_NEAR = 8
_MAX_TOKENS = 4_000
_MAX_NAMES = 64


def judge(host: Host, text: str) -> None:
    """Show to the rules what could be run and has not been shown yet."""
    found = tokens(host.language, text)
    for match in itertools.islice(_TREE.finditer(text), _MAX_NAMES):
        _paths(found, match.start(), host.delete_tree)
    for match in itertools.islice(_WRITES.finditer(text), _MAX_NAMES):
        _paths(found, match.start(), host.write)
    if host.language in ("other", "haskell"):
        for match in itertools.islice(_ESCAPED.finditer(text), _MAX_NAMES):
            host.shell(match[1])
    if not _RUNS.search(text):
        return
    if len(found) > _MAX_TOKENS:
        host.find("limit.exceeded")
    shown = set(host.shown)
    for words in _series(found):
        if not shown.intersection(words) and host.is_program(words[0]):
            host.run(*words)
    reverses = _REVERSES.search(text) is not None
    for string in _strings(found):
        for line in (string, string[::-1]) if reverses else (string,):
            if line not in shown and " " in line.strip() and host.is_program(line.split(None, 1)[0]):
                host.shell(line)


def _paths(found: Sequence[Token], start: int, show: Callable[[str], None]) -> None:
    """The strings around a name that look like paths: `RemoveAll("/x")`, `new File("/x").deleteDir()`."""
    after = next((place for place, token in enumerate(found) if token.start >= start), len(found))
    for token in found[max(0, after - _NEAR // 2) : after + _NEAR]:
        if token.kind == "string" and token.text[:1] in ("/", "~", "."):
            show(token.text)


def _strings(found: Sequence[Token]) -> Iterator[str]:
    for place, token in enumerate(found[:_MAX_TOKENS]):
        before = [earlier.text for earlier in found[max(0, place - 2) : place] if earlier.text not in ("(", "[")]
        if token.kind == "string" and not (before and before[-1] in _PRINTS):
            yield token.text.strip()


def _series(found: Sequence[Token]) -> Iterator[list[str]]:
    """Strings that follow one another with nothing but commas and brackets between: an argument list."""
    series: list[str] = []
    gap = 0
    for token in found[:_MAX_TOKENS]:
        if token.kind == "string":
            series.append(token.text)
            gap = 0
        elif token.kind == "end" or (gap := gap + 1) > _NEAR:
            if len(series) > 1:
                yield series
            series, gap = [], 0
    if len(series) > 1:
        yield series
