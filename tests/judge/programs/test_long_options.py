"""What an abbreviated long option means, for rules, for wrappers and for programs that run what an option says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from handrail.judge import assess
from handrail.judge.programs.long_options import options_of, same_options, spelled_out
from handrail.judge.values.word_values import Arg


def _spelled(line: str) -> str:
    words = [Arg(word) for word in line.split()]
    return " ".join(spelled_out(str(words[0]), words))


@pytest.mark.parametrize(
    ("line", "full"),
    [
        ("rm --r x", "rm --recursive x"),
        ("git reset --h", "git reset --hard"),
        ("git -C sub push --mir origin", "git -C sub push --mirror origin"),
        ("git worktree remove --fo x", "git worktree remove --force x"),
        ("sort --o=/etc/hosts x", "sort --output=/etc/hosts x"),
        ("cp --targ=/etc/cron.d x", "cp --target-directory=/etc/cron.d x"),
        ("gtar --to-com=sh -xf a", "gtar --to-command=sh -xf a"),
        ("timeout -k 3 --sig=KILL 5 rm --r x", "timeout -k 3 --signal=KILL 5 rm --r x"),  # rm's own are read with rm
        ("env -u A --chd=/ rm x", "env -u A --chdir=/ rm x"),
        ("pip install --index-u x y", "pip install --index-url x y"),
    ],
)
def test_a_unique_prefix_is_spelled_out(line: str, full: str) -> None:
    assert _spelled(line) == full


@pytest.mark.parametrize(
    "line",
    [
        "git push --f origin",  # force, follow-tags and others
        "rm -- --r",  # an operand
        "rm --recursive x",
        "docker run --privi x",  # wants options in full
        "git commit --message --h",  # a value
        "mytool --r x",
    ],
)
def test_what_is_no_unique_prefix_stays_as_it_is(line: str) -> None:
    assert _spelled(line) == line


def test_an_option_is_known_by_its_letters() -> None:
    assert same_options("rm", ["x"], "--recursive") == ("--recursive", "-r", "-R")
    assert "--force" in same_options("git", ["push", "origin"], "-f")
    assert same_options("tar", [], "--force") == ("--force",)
    assert same_options("mytool", [], "-f") == ("-f",)


def test_an_exact_name_is_not_ambiguous() -> None:
    options = options_of("git", ["push"])
    assert options is not None
    assert options.full("force") == "force"
    assert len(options.fitting("force-")) > 1


@pytest.mark.parametrize(
    "command",
    [
        "rm --r ~",
        "sudo --us=root rm --r ~",
        "env --split='rm -r x'",
        "script --comm 'rm -r x' /dev/null",
        "tar --to-com='sh -c \"rm -r x\"' -xf a.tar",
        "tar --to-com=sh -xf a.tar",
        "git rebase --ex 'rm -r x' HEAD~1",
        "xargs --arg=list rm --r",
        "mysql --exec 'DROP DATABASE prod'",
        "mariadb --exec='drop table x'",
        "mysql --init-c='truncate x' db",
        "mytool --delet",
        "somefs-tool --wip",
    ],
)
def test_abbreviated_options_are_found(command: str) -> None:
    assert assess(command).dangerous


@pytest.mark.parametrize(
    "command",
    ["git reset --sof HEAD~1", "rm --verb a.txt", "sed --quie p a", "timeout --fore 5 make", "mysql --exec='SELECT 1'"],
)
def test_harmless_abbreviations_pass(command: str) -> None:
    assert not assess(command).dangerous


def test_the_real_program_agrees() -> None:
    """`--=` is the empty prefix, which getopt_long answers with every option that the program has."""
    for program in ("rm", "cp", "sort"):
        words = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
        said = subprocess.run([program, "--="], capture_output=True, text=True, check=False, env=words)
        if "possibilities" not in said.stderr:
            continue  # not GNU's
        options = options_of(program)
        assert options is not None
        has = {
            word.strip("'-") for word in said.stderr.partition("possibilities:")[2].split() if word.startswith("'--")
        }
        assert {"recursive", "output"} & has <= set(options.names)


def test_the_table_is_read_with_the_first_long_option() -> None:
    code = (
        "from handrail.judge import assess; from handrail.judge.programs import long_options as o; assess('rm -r x');"
        "print(o._lines.cache_info().currsize); assess('rm --r x'); print(o._lines.cache_info().currsize)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["0", "1"]
