"""Several things at once."""

from __future__ import annotations

import contextlib
import shlex
import threading
from concurrent.futures import ThreadPoolExecutor

from .check import check, expect, expect_that
from .place import Place, text

_ENVIRONMENTS = 4


@check(quick=False)
def environments_work_beside_each_other(place: Place) -> None:
    """Several environments run their commands at the same time, and none sees the state of another."""
    environments = [place.another() for _ in range(_ENVIRONMENTS)]
    with ThreadPoolExecutor(_ENVIRONMENTS) as pool:
        list(pool.map(lambda env: env.start(), environments))

        all_print = threading.Barrier(_ENVIRONMENTS)

        def meet(_: bytes) -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                all_print.wait(place.patience)

        def work(number: int) -> str:
            env = environments[number]
            env.execute(f"kit_own={number}", timeout=place.patience)
            return text(env.execute("echo $kit_own", timeout=place.patience * 2, on_output=meet))

        answers = list(pool.map(work, range(_ENVIRONMENTS)))
    expect(answers, [f"{number}\n" for number in range(_ENVIRONMENTS)], "what each knows")
    expect_that(not all_print.broken, "a command does not run before that of another environment has ended")


@check()
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
    expect_that(not isinstance(outcome, Exception), f"the command ended with {outcome!r}")
    place.works()


@check()
def commands_of_one_environment_take_turns(place: Place) -> None:
    """Two threads that use one environment get their commands run one after the other, each with its own output."""
    order = f"{place.folder}/order"
    answers: dict[str, str] = {}

    def work(name: str) -> None:
        command = f"echo {name} >>{shlex.quote(order)}; sleep .1; echo {name} >>{shlex.quote(order)}; echo {name}"
        answers[name] = text(place.run(command))

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(place.patience)
    expect(answers, {"one": "one\n", "two": "two\n"}, "what each command printed")
    lines = text(place.run(f"cat {shlex.quote(order)}")).split()
    expect_that(lines in (["one", "one", "two", "two"], ["two", "two", "one", "one"]), f"they ran at once: {lines}")
