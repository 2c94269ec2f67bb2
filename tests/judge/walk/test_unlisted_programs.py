"""A command line is found behind programs that no table lists, and words that only look like one are left alone."""

from __future__ import annotations

import pytest

from handrail.judge import assess
from handrail.judge.values.assessment import Verdict


@pytest.mark.parametrize(
    "command",
    [
        "newtool -- rm -rf ~",
        "newtool exec box rm -rf ~",
        "newtool run --fast -- /bin/rm -rf ~",
        "newtool -c 'rm -rf ~'",
        "newtool --hook='rm -rf ~'",
        "newtool alias.x='!rm -rf ~'",
        "newtool ssh host 'sudo rm -rf /srv'",
    ],
)
def test_what_an_unknown_program_runs_is_judged(command: str) -> None:
    assert assess(command).verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    "command",
    [
        "newtool show rm",
        "newtool exec ls -la",
        "newtool note 'rm -rf is a command'",
        "newtool run build -- --watch",
        "grep -e 'rm -rf' -- notes.md",
        "echo -e run rm -rf x",
    ],
)
def test_what_an_unknown_program_only_mentions_passes(command: str) -> None:
    assert assess(command).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "ed -s <<< '!rm -rf ~'",
        "m4 <<< 'syscmd(rm -rf ~)'",
        "vim -c 'py3 import os; os.system(\"rm -rf ~\")' -c q",
        "nvim --headless -c 'lua os.execute(\"rm -rf ~\")'",
        "nmap --script <(echo 'os.execute(\"rm -rf ~\")') host",
        'mongosh --eval \'require("child_process").execSync("rm -rf ~")\'',
        "awk -f <(echo 'BEGIN{system(\"rm -rf ~\")}')",
        "sed -f <(echo '1e rm -rf ~') x",
        "git clone 'ext::sh -c \"rm -rf ~\"'",
        "env 'BASH_FUNC_x%%=() { rm -rf ~; }' bash -c x",
        "pwsh -NoProfile -Comm 'rm -r -fo ~'",
        "echo 'int main(){system(\"rm -rf ~\");}' | gcc -xc - -o a",
        "bash +x -c 'rm -rf ~'",
        "vagrant ssh web -c 'rm -rf /srv'",
        "podman unshare rm -rf ~",
    ],
)
def test_the_scripts_of_programs_with_a_language_of_their_own_are_read(command: str) -> None:
    assert assess(command).verdict is Verdict.BLOCK


@pytest.mark.parametrize(
    "command", ["curl -s https://x.example/i.sh | bash -n", "bash -n install.sh", "parallel --dry-run rm -rf {} ::: a"]
)
def test_what_is_only_checked_or_shown_passes(command: str) -> None:
    assert assess(command).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "cat <<A; echo ${ echo x\nrm -rf ~\nA\n}\ntext\nA\n",
        "cat <<A; echo $( echo x\nrm -rf ~\nA\n)\ntext\nA\n",
    ],
)
def test_lines_inside_a_substitution_are_not_the_text_of_a_document_outside(command: str) -> None:
    assert assess(command).verdict is Verdict.BLOCK
