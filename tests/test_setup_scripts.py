"""What the set-up scripts share: they find the archive on any Debian, say what they leave out, and read what the demo says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIB = Path(__file__).parents[1] / "scripts" / "lib.sh"
DEB822 = "Types: deb\n# URIs: http://old.example/debian\nURIs: http://a.example/debian\nSuites: bookworm\n"
SECURITY = "Types: deb\nURIs: http://a.example/debian-security\nSuites: bookworm-security\n\n"


def _bash(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'set -euo pipefail\n. "$LIB"\n{script}'],
        env={"PATH": "/usr/bin:/bin", "LIB": str(LIB), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "sources",
    [
        {"sources.list.d/debian.sources": DEB822},
        {"sources.list.d/debian.sources": SECURITY + DEB822},
        {"sources.list": "deb http://a.example/debian bookworm main\n"},
        {
            "sources.list": "# none\n",
            "sources.list.d/x.list": "deb [arch=amd64 trusted=yes] http://a.example/debian/ sid main\n",
        },
    ],
    ids=["deb822 alone", "security first", "sources.list alone", "a list beside an empty sources.list"],
)
def test_the_archive_is_found_whichever_file_names_it(tmp_path: Path, sources: dict[str, str]) -> None:
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    ran = _bash('archive=$(debian_archive "$APT"); echo "$archive"', APT=str(tmp_path))
    assert (ran.returncode, ran.stdout.rstrip("/\n"), ran.stderr) == (0, "http://a.example/debian", "")


def test_without_an_archive_the_answer_is_empty(tmp_path: Path) -> None:
    ran = _bash('archive=$(debian_archive "$APT"); echo "[$archive]"', APT=str(tmp_path))
    assert (ran.returncode, ran.stdout) == (0, "[]\n")


@pytest.mark.parametrize(("ci", "installs", "code"), [("true", "true", 1), ("", "true", 0), ("true", "false", 0)])
def test_what_is_missing_fails_where_all_could_be_installed_and_ci_asks_for_it(
    ci: str, installs: str, code: int
) -> None:
    ran = _bash(f"can_apt() {{ {installs}; }}; leave_out a 'no a'; leave_out 'a b' 'no b'; finish", CI=ci)
    assert ran.returncode == code
    assert "setup: left out: a b (no b)" in ran.stderr
    assert ("FAILED: could not install: a; a b." if code else "done without: a; a b\n") in ran.stderr


def test_a_set_up_with_everything_says_nothing() -> None:
    ran = _bash("finish", CI="true")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_fresh_machine_follows_what_the_demo_recommends() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "handrail", "chat", "--or-demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    commands = _bash('recommended <<<"$SHOWN"', SHOWN=shown).stdout.splitlines()
    ends = [command.rpartition("handrail ")[2] for command in commands]
    assert ends == ["tools", "call read_file path=README.md", "serve"]
