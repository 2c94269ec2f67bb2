"""Figures of the table of background processes."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from handrail.environments.tasks import TaskEnvironments
from handrail.processes.table import ProcessTable, Wanted
from handrail.settings.schema import Config
from handrail.settings.sections import TerminalConfig
from handrail.store.processes import ProcessRecords

from .harness import Figure, alternating, milliseconds

_COMMAND = "echo up; exec sleep 60"
_OTHERS = 20


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        config = Config(terminal=TerminalConfig(cwd=folder))
        with TaskEnvironments(config) as environments:
            table = ProcessTable(ProcessRecords(Path(folder) / "table"), environments)
            try:
                yield start_to_first_output(table, environments)
            finally:
                for one in table.list():
                    table.forget(one.id)
                table.close()


def start_to_first_output(table: ProcessTable, environments: TaskEnvironments) -> Figure:
    """Among others that run already: each of them is a record that the limits have to look at."""
    for number in range(_OTHERS):
        table.start("sleep 1000", task_id=f"t{number}", session_id=None, wanted=Wanted())
    environments.of("bench").start()

    def ours() -> float:
        start = time.perf_counter()
        one = table.start(_COMMAND, task_id="bench", session_id=None, wanted=Wanted(notify_on_complete=True))
        assert one.use(lambda process: process.read(timeout=5)).data == b"up\n"
        elapsed = time.perf_counter() - start
        table.forget(one.id)
        return elapsed

    def floor() -> float:
        start = time.perf_counter()
        with subprocess.Popen(["bash", "-c", _COMMAND], stdout=subprocess.PIPE, bufsize=0) as bash:
            assert bash.stdout is not None
            assert bash.stdout.read(100) == b"up\n"
            elapsed = time.perf_counter() - start
            bash.kill()
        return elapsed

    mine, base, ratio = alternating(ours, floor, rounds=15)
    what = "background, in the table: first output, to a bash"
    # 5 ms on a machine where a bare bash takes 1.5 ms.
    return Figure(what, milliseconds(mine), milliseconds(base), ratio, 5 / 1.5, "hermes 97")
