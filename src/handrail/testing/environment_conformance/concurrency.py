"""Several things at the same time."""

import shlex
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack

from .place import Place, check, expect, expect_that, text

_ENVIRONMENTS = 3
# What a second command gets to show that it did not wait for the first: so long, and as long as so many commands take.
_AT_ONCE_SECONDS, _AT_ONCE_COMMANDS = 0.1, 10


@check(quick=False)
def environments_work_beside_each_other(place: Place) -> None:
    """Several environments run their commands at the same time, and none sees the state of another."""
    environments = [place.another() for _ in range(_ENVIRONMENTS)]
    with ThreadPoolExecutor(_ENVIRONMENTS) as pool:
        begin = 'kit_own=%d; kit_gate=$(mktemp -u); printf %%s "$kit_gate"'
        started = pool.map(lambda n: environments[n].execute(begin % n, timeout=place.patience), range(_ENVIRONMENTS))
        gates = list(map(text, started))
    with ExitStack() as stack:
        waiting = 'echo begun; until [ -e "$kit_gate" ]; do sleep .02; done; echo $kit_own'
        commands = [stack.enter_context(place.running(waiting, environment)) for environment in environments]
        expect_that(all(command.outcome is None for command in commands), "a command did not wait for the others")
        for environment, gate in zip(environments, gates, strict=True):
            environment.files.write(gate, b"")
        outcomes = [command.end() for command in commands]
    # Not by the commands: whoever has written a file looks at it once more.
    for environment, gate in zip(environments, gates, strict=True):
        environment.files.remove(gate)
    answers = [outcome if isinstance(outcome, BaseException) else text(outcome) for outcome in outcomes]
    expect(answers, [f"begun\n{number}\n" for number in range(_ENVIRONMENTS)], "what each knows")


def files_can_be_used_while_a_command_runs(place: Place) -> None:
    """Files can be written, read and listed, and a process started, while a command runs."""
    gate = f"{place.folder}/gate"
    with place.running(f"echo begun; until [ -e {shlex.quote(gate)} ]; do sleep .02; done; echo over") as command:
        place.env.files.write(f"{place.folder}/file", b"content")
        expect(place.env.files.read(f"{place.folder}/file", max_bytes=100), b"content", "content")
        process = place.env.background("echo beside")
        expect(process.wait(place.patience).exit_code, 0, "exit code of a background process")
        process.forget()
        expect_that(command.outcome is None, "the command did not wait")
        place.env.files.write(gate, b"")
        outcome = command.end()
    expect_that(not isinstance(outcome, BaseException), f"the command ended with {outcome!r}")
    place.works()


def commands_of_one_environment_take_turns(place: Place) -> None:
    """Two threads that use one environment get their commands run one after the other, each with its own output."""
    order, gate = (shlex.quote(f"{place.folder}/{name}") for name in ("order", "gate"))
    begun = time.monotonic()
    place.run("true")
    # On a busy machine one that runs at once takes its time, too.
    enough = max(_AT_ONCE_SECONDS, _AT_ONCE_COMMANDS * (time.monotonic() - begun))
    waits = f"until [ -e {gate} ]; do sleep .02; done"
    with (
        ThreadPoolExecutor(1) as pool,
        place.running(f"echo one >>{order}; echo one; {waits}; echo one >>{order}") as first,
    ):
        second = pool.submit(place.run, f"echo two >>{order}; echo two")
        wait([second], enough)
        place.env.files.write(f"{place.folder}/gate", b"")
        outcome = first.end()
        answers = ["an error" if isinstance(outcome, BaseException) else text(outcome), text(second.result())]
    expect(answers, ["one\n", "two\n"], "what each command printed")
    lines = place.text(f"cat {order}").split()
    expect_that(lines == ["one", "one", "two"], f"they ran at once: {lines}")
