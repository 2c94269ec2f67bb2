"""Figures of the judge of commands: what it finds, what it lets pass, and how long it takes.

The samples are our own: the examples of the rules, and commands in every way of writing them that the tests know.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.respelling.forms import all_forms
from tests.fuzz.respelling.rows import DANGEROUS, HARMLESS
from tests.judge.test_judge_floor import NEVER
from tests.judge.test_judge_labelled import NAMED, rows

from handrail.judge import assess, detect_dangerous_command
from handrail.judge.rules import builtin
from handrail.judge.values.assessment import Verdict

from .harness import Figure, microseconds, milliseconds

_PLAIN = (
    "ls -la src",
    "git status",
    "npm run build",
    "pytest -q tests/unit",
    "cat README.md",
    "grep -rn TODO src",
    "make test",
)
_SHORT = (
    'for f in *.txt; do mv "$f" "${f%.txt}.md"; done',
    "find . -type f -name '*.py' -print0 | xargs -0 -n1 sh -c 'wc -l \"$1\"' x | sort -n | tail -5",
    "diff <(sort a.txt) <(sort b.txt) && echo same || echo other",
    "docker run --rm -it -v \"$PWD:/src\" -w /src node:20 sh -c 'npm ci && npm test'",
    "ssh host 'cd /srv/app && git pull && sudo systemctl status app'",
)
_PIPELINE = "cat a.txt | grep -v 'x y' | sort -u > out.txt && echo \"done $x\"\n"
_CORPORA = frozenset(("tldr", "nl2bash", "nl2bash_complex"))
_COLD = "from handrail.judge import assess; assess('ls')"


def figures() -> Iterator[Figure]:
    yield from labelled()
    yield from given()
    yield from examples()
    yield from floor()
    yield from forms()
    yield from times()


def labelled() -> Iterator[Figure]:
    """Our own sets. Each was written before it was judged; what a set missed at first is in the tests' folder now."""
    families: dict[str, list[bool]] = {}
    for family, command in rows("dangerous"):
        families.setdefault(family, []).append(not assess(command).dangerous)
    named = [missed for family, judged in families.items() if family in NAMED for missed in judged]
    everything = [missed for judged in families.values() for missed in judged]
    mean = sum(sum(judged) / len(judged) for judged in families.values()) / len(families)
    asked = [assess(command).dangerous for _, command in rows("harmless")]
    yield _share("dangerous commands missed, eight named families", sum(named), len(named), 0.02, "hermes 37 %")
    yield _share("  all families", sum(everything), len(everything), 0.03, "hermes 54 %")
    yield Figure("  mean over families", f"{mean:.2%}", "<= 4 %", mean / 0.04, 1, "hermes 66 %")
    yield _share("tricky harmless commands asked about", sum(asked), len(asked), 0.01, "hermes 13 %")
    rare = [not assess(command).dangerous for _, command in rows("rare")]
    yield _share("destructive uses of rare tools missed", sum(rare), len(rare), 0.15)


def given() -> Iterator[Figure]:
    """Labelled commands that are not ours: `dangerous*.jsonl` and `benign*.jsonl` in the folder that is named."""
    folder = os.environ.get("HANDRAIL_LABELLED")
    if not folder:
        return
    dangerous, benign = (
        [json.loads(line) for path in sorted(Path(folder).glob(f"{kind}*.jsonl")) for line in path.open()]
        for kind in ("dangerous", "benign")
    )
    missed = [row["category"] in NAMED for row in dangerous if not assess(row["command"]).dangerous]
    flagged = [row["tag"] in _CORPORA for row in benign if assess(row["command"]).dangerous]
    corpus = sum(row["tag"] in _CORPORA for row in benign)
    named = sum(row["category"] in NAMED for row in dangerous)
    yield _share("given: dangerous missed, eight named families", sum(missed), named, 0.02, "hermes 37 %")
    yield _share("  all families", len(missed), len(dangerous), 0.03, "hermes 54 %")
    yield _share(
        "  tricky harmless asked about", len(flagged) - sum(flagged), len(benign) - corpus, 0.01, "hermes 13 %"
    )
    yield _share("  commands of a corpus asked about", sum(flagged), corpus, 0.002, "hermes 0")


def examples() -> Iterator[Figure]:
    rules = builtin().rules.values()
    found = [_found(rule.id, example) for rule in rules for example in rule.match]
    flagged = [_found(rule.id, example) for rule in rules for example in rule.not_match]
    yield _share("examples of rules that are not found", len(found) - sum(found), len(found), 0.001)
    yield _share("counter-examples that are found", sum(flagged), len(flagged), 0.001)


def _found(rule: str, command: str) -> bool:
    return rule in {finding.rule for finding in assess(command).findings}


def floor() -> Iterator[Figure]:
    """What must never run, in every form: whoever allows it, it is blocked."""
    texts = [text for row in NEVER for way in all_forms().values() if (text := way(row)) is not None]
    leaks = sum(assess(text).verdict is not Verdict.BLOCK for text in (*NEVER, *texts))
    yield _share("the floor leaks", leaks, len(NEVER) + len(texts), 0.00001, "hermes 27 of 33")


def forms() -> Iterator[Figure]:
    ways = all_forms()
    lost = [not assess(text).dangerous for row in DANGEROUS for way in ways.values() if (text := way(row)) is not None]
    stirred = [assess(text).dangerous for row in HARMLESS for way in ways.values() if (text := way(row)) is not None]
    yield _share(f"dangerous, lost when written in {len(ways)} ways", sum(lost), len(lost), 0.001, "equivalence: tests")
    yield _share(f"harmless, asked about in {len(ways)} ways", sum(stirred), len(stirred), 0.0001)


def _share(what: str, bad: int, of: int, most: float, peers: str = "") -> Figure:
    return Figure(what, f"{bad}", f"of {of:,}", bad / of / most, 1, peers)


def times() -> Iterator[Figure]:
    detect_dangerous_command("ls")
    yield _time("judge a plain command", max(_best(command, 200) for command in _PLAIN), 60e-6, "hermes 311 µs")
    yield _time("  any short command", max(_best(command, 100) for command in _SHORT), 0.5e-3)
    yield _time("  10 kB of pipelines", _best(_PIPELINE * (10_000 // len(_PIPELINE)), 5), 25e-3, "hermes 99 ms")
    yield _time("  100 kB of pipelines", _best(_PIPELINE * (100_000 // len(_PIPELINE)), 3), 250e-3, "hermes 3.4 s")
    yield _time("  a here-document of 100 kB", _best(_document(100_000), 5), 30e-3, "hermes 0.84 s")
    yield _time("  a here-document of 1 MB", _best(_document(1_000_000), 3), 1)
    yield _time("  1 MB of pipelines (asks)", _best(_PIPELINE * (1_000_000 // len(_PIPELINE)), 2), 1)
    yield _growth()
    yield _time("  first command, with all that is loaded for it", _cold(), 0.06)


def _document(size: int) -> str:
    return "cat > notes.txt <<'EOF'\n" + "lorem ipsum dolor sit amet\n" * (size // 27) + "EOF\n"


def _best(command: str, rounds: int) -> float:
    return min(_timed(lambda: detect_dangerous_command(command)) for _ in range(rounds))


def _timed(work: Callable[[], object]) -> float:
    """Computing time: other programs on the machine lengthen it least."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def _time(what: str, seconds: float, most: float, peers: str = "") -> Figure:
    show = microseconds if most < 1e-3 else milliseconds
    return Figure(what, show(seconds), f"<= {show(most)}", seconds / most, 1, peers)


def _growth() -> Figure:
    small, large = (_best(_PIPELINE * count, 5) / count for count in (50, 800))
    return Figure("  a line among 800, to one among 50", microseconds(large), microseconds(small), large / small, 2)


def _cold() -> float:
    """What a process pays on top of Python and the core."""

    code = f"import handrail.model_tools, time; t = time.process_time()\n{_COLD}\nprint(time.process_time() - t)"
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(5)
    )
