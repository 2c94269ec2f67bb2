"""What every environment with a journal beside its shell has to manage."""

from __future__ import annotations

import os
import random

from handrail.environments.live_environment import LiveEnvironment

from .shell_host.random_changes import random_call

# `make soak` asks for more.
_FIRST, _SEEDS = int(os.environ.get("FIRST_SEED", "0")), int(os.environ.get("ELSEWHERE_SEEDS", "1"))
_CALLS = 8

_PREPARE = """
folder=$(mktemp -d) && cd "$folder" && mkdir -p dir/sub && echo one > a && seq 30000 > b && echo x > dir/sub/x
ln -s a link && chmod 640 b && echo "$folder"
"""
_SHOW = "find . -printf '%p %y %m %l %T@\\n' | sort; find . -type f | sort | xargs cksum"
_DAMAGE = "rm -rf dir; echo two > a; sed -i s/1/2/ b; mv link other; mkdir new; cp -a a new/copy; chmod 700 ."


def check_undo(shell: LiveEnvironment) -> None:
    def show() -> bytes:
        return shell.execute(_SHOW, timeout=60).output.head

    assert shell.coverage == ("full", "")
    shell.execute(_PREPARE, timeout=60)
    before = show()
    assert shell.execute(_DAMAGE, timeout=60, call=11).changed
    process = shell.background("rm b", call=12)
    process.wait(60)
    after = show()
    assert after != before
    for call, number in ((12, 21), (11, 22)):
        answer = shell.call_effects("undo", call=call, number=number)
        assert (answer["status"], answer["failed"]) == ("undone", []), answer
    assert show() == before
    answer = shell.call_effects("undo", call=22, number=30)
    assert answer["status"] == "undone"
    assert shell.execute("cat a; ls dir", timeout=60).output.head.startswith(b"two\n")
    shell.execute('cd /; rm -rf "$OLDPWD"', timeout=60)


def check_undo_of_random_calls(shell: LiveEnvironment) -> None:
    def show() -> bytes:
        return shell.execute(_SHOW, timeout=60).output.head

    for seed in range(_FIRST, _FIRST + _SEEDS):
        choice, first = random.Random(seed), 100 + 4 * _CALLS * seed
        shell.execute(f"cd /tmp{_PREPARE}ln a hard; mkdir dir/sub/deep", timeout=60)
        states = [show()]
        for number in range(first, first + _CALLS):
            shell.execute(random_call(choice), call=number, timeout=60)
            states.append(show())
        for number in reversed(range(first, first + _CALLS)):
            assert show() == states.pop(), f"seed {seed}, before undoing call {number}"
            answer = shell.call_effects("undo", call=number, number=2 * first + 3 * _CALLS - number)
            nothing = answer["status"] == "refused" and show() == states[-1]
            assert nothing or (answer["status"], answer["failed"]) == ("undone", []), answer
        assert show() == states.pop(), f"seed {seed}"
        shell.execute('cd /; rm -rf "$OLDPWD"', timeout=60)
