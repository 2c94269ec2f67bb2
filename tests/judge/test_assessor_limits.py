"""Bad and endless input: a person is asked, in time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from handrail.judge import assess, detect_dangerous_command
from handrail.judge.values.assessment import Verdict

from ..support import costs_less_than, uses_less_memory_than
from .bombs import BOMBS, MORE_BOMBS

# Each makes a command of about so many characters.
GROWING: dict[str, Callable[[int], str]] = {
    "one word": lambda n: "a" * n,
    "arguments": lambda n: "ls " + "./file.txt " * (n // 11),
    "blanks": lambda n: " " * n + "ls",
    "newlines": lambda n: "\n" * n + "ls",
    "comments": lambda n: "# a note\n" * (n // 9),
    "commands": lambda n: "true; " * (n // 6),
    "pipes": lambda n: "echo a" + " | cat" * (n // 6),
    "pipelines": lambda n: "cat a.txt | grep -v 'x y' | sort -u > out.txt && echo \"done $x\"\n" * (n // 66),
    "quoted text": lambda n: "git commit -m '" + "lorem ipsum " * (n // 12) + "'",
    "double quotes": lambda n: 'echo "' + "lorem $x ipsum " * (n // 15) + '"',
    "here-document": lambda n: "cat > n.txt <<'E'\n" + "lorem ipsum\n" * (n // 12) + "E\n",
    "expanded here-document": lambda n: "cat > n.txt <<E\n" + "lorem $x ipsum\n" * (n // 15) + "E\n",
    "stripped here-document": lambda n: "cat > n.txt <<-E\n" + "\tlorem\n" * (n // 7) + "\tE\n",
    "here-documents": lambda n: "cat <<A\na\nA\n" * (n // 12),
    "here-documents that wait": lambda n: "cat" + " <<A" * (n // 4),
    "here-documents without end": lambda n: "cat <<A\n" * (n // 8),
    "assignments": lambda n: "".join(f"v{i}=x; " for i in range(n // 8)),
    "appending": lambda n: "x=a; " + "x+=b; " * (n // 6),
    "variables and subshells": lambda n: "".join(f"v{i}=x; (echo $v{i}); " for i in range(n // 22)),
    "branches": lambda n: "if a; then x=1; else x=2; fi; echo $x; " * (n // 40),
    "and chains": lambda n: "a && x=1 && echo $x; " * (n // 21),
    "functions": lambda n: "".join(f"f{i}() {{ :; }}; " for i in range(n // 14)),
    "functions that call": lambda n: (
        "f0() { :; }; " + "".join(f"f{i + 1}() {{ f{i}; f{i}; }}; " for i in range(12)) + "f12; " * (n // 5)
    ),
    "files": lambda n: "".join(f"echo a > f{i}; cat f{i}; " for i in range(n // 25)),
    "substitutions": lambda n: "echo " + "$(date) " * (n // 8),
    "process substitutions": lambda n: "cat " + "<(ls) " * (n // 6),
    "backquotes": lambda n: "echo " + "`ls` " * (n // 5),
    "parameters": lambda n: "echo " + "${x:-y} " * (n // 8),
    "stripping": lambda n: "x=" + "a" * (n // 2) + "; echo " + "${x##*b*} " * 50,
    "braces": lambda n: "echo " + "{a,b} " * (n // 6),
    "open braces": lambda n: "echo " + "{a," * (n // 3),
    "brace ranges": lambda n: "echo " + "{1..9}" * (n // 6),
    "wide ranges": lambda n: "echo " + "{1..999999999} " * (n // 15),
    "escapes": lambda n: "echo " + "\\a" * (n // 2),
    "joined lines": lambda n: "ls " + "\\\n" * (n // 2),
    "joined words": lambda n: "l\\\ns " * (n // 5),
    "quotes": lambda n: "''" * (n // 2),
    "arrays": lambda n: "a=(" + "x " * (n // 2) + ")",
    "array elements": lambda n: "".join(f"a[{i}]=x; " for i in range(n // 9)),
    "arithmetic": lambda n: "echo $((" + "1+" * (n // 2) + "1))",
    "arithmetic parentheses": lambda n: "((" * (n // 2),
    "parentheses": lambda n: "(" * (n // 2) + "ls" + ")" * (n // 2),
    "open substitutions": lambda n: "echo " + "$(" * (n // 2),
    "open parameters": lambda n: "${" * (n // 2),
    "wrappers": lambda n: "sudo " * (n // 5) + "ls",
    "env": lambda n: "env A=1 " * (n // 8) + "ls",
    "find -exec": lambda n: "find . " + "-exec ls {} \\; " * (n // 15),
    "loops": lambda n: "for i in " + "x " * (n // 2) + "; do echo $i; done",
    "nested loops": lambda n: (
        "for i in {1..99}; do for j in {1..99}; do for k in {1..99}; do ls $i $j $k; done; done; done; " + "a" * n
    ),
    "case": lambda n: "case x in " + "a) b;; " * (n // 7) + "esac",
    "tests": lambda n: "[[ a " + "&& b " * (n // 5) + "]]",
    "redirections": lambda n: "ls" + " > a" * (n // 4),
    "xargs": lambda n: "echo " + "x " * (n // 2) + "| xargs echo",
    "base64": lambda n: "echo " + "QUJD" * (n // 4) + " | base64 -d",
    "awk": lambda n: "awk '" + '{ print $1 | "sort" } ' * (n // 23) + "'",
    "sed": lambda n: "sed '" + "s/a/b/;" * (n // 7) + "'",
    "python": lambda n: "python3 -c '" + "x=1;" * (n // 4) + "'",
    "sql": lambda n: "psql -c 'select " + "1," * (n // 2) + "1'",
    "eval": lambda n: "eval '" + "true; " * (n // 6) + "'",
}
SMALL, LARGE = 2_000, 16_000


def _seconds(text: str) -> float:
    start = time.process_time()
    detect_dangerous_command(text)
    return time.process_time() - start


@pytest.mark.parametrize("kind", GROWING)
def test_time_grows_with_the_text_and_not_faster(kind: str) -> None:
    """Eight times the text in at most sixteen times the time: were it quadratic, it would be sixty-four."""
    detect_dangerous_command("ls")
    short, long = GROWING[kind](SMALL), GROWING[kind](LARGE)
    small = large = 60.0
    for _ in range(10):  # what else the machine does may disturb one look, or some
        small, large = min(small, _seconds(short)), min(large, _seconds(long))
        if large < 16 * max(small, 0.002):
            return
    pytest.fail(f"{small:.4f} s, then {large:.4f} s")


@pytest.mark.parametrize("kind", random.Random(1).sample(sorted(GROWING), 8))
def test_a_third_of_a_megabyte_is_judged_or_refused_in_time(kind: str) -> None:
    with costs_less_than(7):  # a third of a second on a quiet machine
        assess(GROWING[kind](333_000))


@pytest.mark.parametrize("name", [*BOMBS, *MORE_BOMBS])
def test_a_bomb_costs_little_time_and_memory(name: str) -> None:
    """50 ms on a quiet machine for a short command; memory does not depend on what else runs."""
    detect_dangerous_command("python3 -c 'print(1)'; perl -e 'print 1'")  # what is loaded with the first one
    bomb = {**BOMBS, **MORE_BOMBS}[name]
    with costs_less_than(2), uses_less_memory_than(50_000_000):
        detect_dangerous_command(bomb)


@pytest.mark.parametrize(
    "text",
    [
        BOMBS["doubling"],
        'x=$(printf %9999999d 0); eval "$x ls"',
        "awk '{" + "x=1;" * 40_000 + "}' f",
        "sed '" + "s/a/b/;" * 20_000 + "' f",
        "vim -c '" + "a|" * 200 + "b' x",
        "printf '%s\\n' " + "a " * 20 + "| xargs -I{} rm -rf ~/{}",
        "printf '%s\\n' " + "a " * 20 + "/ | xargs -I{} rm -rf {}",
        "printf '%s\\n' " + "a " * 80 + "/ | xargs rm -rf",
        "printf 'a\\n%.0s' {1..20} | parallel rm -rf ~/{}",
        "perl -e '" + "$x=1;" * 50_000 + "'",
        "for i in a b c d e f g h i j k l m n o p q r s t u v w x y z rm; do $i -rf ~/work; done",
        "find " + "a " * 20 + "/ -exec rm -rf {} +",
        "sqlite3 x.db <<E\n" + "select 1;\n" * 12_000 + "E\n",
    ],
    ids=lambda text: text[:24],
)
def test_what_is_over_a_bound_is_asked_about(text: str) -> None:
    assert assess(text).verdict is not Verdict.ALLOW


@pytest.mark.parametrize(
    "text",
    [
        "( " * 10_000 + ")" * 10_000,
        "$(" * 10_000,
        "{ " * 10_000,
        "if " * 10_000,
        "`" * 9_999,
        "[[ " + "( " * 10_000,
        "${x:-" * 10_000 + "}" * 10_000,
        "<(" * 10_000,
        "f() " * 10_000,
        "! " * 10_000 + "ls",
        "time " * 10_000 + "ls",
        "a=(" * 10_000,
        "x" * 2_000_001,
        "ls\0rm -rf /",
        "'",
        "echo ${",
        "for",
        "case x",
        "cat <<",
        "a |",
        "&",
    ],
    ids=lambda text: text[:12],
)
def test_what_cannot_be_read_or_is_too_much_is_asked_about(text: str) -> None:
    assessment = assess(text)
    assert assessment.verdict is Verdict.ASK or (
        text.startswith(("! ", "time ")) and assessment.verdict is Verdict.ALLOW
    )
    assert all(0 <= start <= end <= len(text) for start, end in (finding.span for finding in assessment.findings))


@pytest.mark.parametrize("shells", [1, 5, 9, 20, 60])
def test_shells_in_shells_are_followed_or_asked_about(shells: int) -> None:
    text = "rm -rf ~"
    for _ in range(shells):
        text = f"bash -c {_quoted(text)}"
        if len(text) > 100_000:
            break
    assert assess(text).dangerous
    deep = "ls"
    for _ in range(shells):
        deep = f'eval "{deep}"' if shells < 2 else f"sh -c 'true'; ( {deep}\n)"
    assert assess(deep).verdict is (Verdict.ASK if shells > 14 else Verdict.ALLOW)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.parametrize(
    "text",
    [
        "echo \udcff\udc80",
        "rm -rf \udcff",
        "ls \u202e txt",
        "echo \u200b",
        "l\u200bs",
        "echo \x1b[31mred\x1b[0m",
        "ls\r\n",
        "\ufeffls",
        "echo \ue000 x",
    ],
)
def test_odd_characters_are_judged_like_others(text: str) -> None:
    assessment = assess(text)
    assert assessment.command == text
    assert assessment.as_dict()["verdict"] == assessment.verdict.value


def test_characters_that_turn_text_around_are_asked_about() -> None:
    assert [finding.rule for finding in assess("echo \u202e abc").findings] == ["text.hidden"]


def test_what_stands_for_the_unknown_cannot_be_smuggled_in() -> None:
    assert assess("rm -rf \ue000").dangerous
    assert not assess("echo \ue000").dangerous
    assert assess("\ue000 x").segments[0].argv[0] != "\ue000"


def test_any_text_at_all_gets_an_assessment() -> None:
    chance = random.Random()
    alphabet = [
        *"abr m-f/~$(){}[]<>|&;'\"\\`\n\t#!=*?:@%^,+0123456789\u00e9\udcff\0",
        "rm ",
        "if ",
        "do ",
        "<<E\n",
        "${",
        "$((",
        "[[ ",
    ]
    for _ in range(1_500):
        text = "".join(chance.choices(alphabet, k=chance.randint(0, 60)))
        assessment = assess(text)
        for start, end in [part.span for part in (*assessment.findings, *assessment.segments, *assessment.unknown)]:
            assert 0 <= start <= end <= len(text), repr(text)


@pytest.mark.parametrize("text", ["! )", "time )", "a; ! )", "! ! )", "if a; then ! ) fi"])
def test_a_bracket_after_no_command_is_asked_about(text: str) -> None:
    assert assess(text).findings
