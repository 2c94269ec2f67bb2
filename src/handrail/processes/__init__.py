"""Background processes of all tasks: started, named, watched, and found again after a restart.

    table = ProcessTable(ProcessRecords(folder), environments)
    one = table.start("npm run dev", task_id=…, session_id=…, wanted=Wanted(notify_on_complete=True))
    table.add(process, task_id=…, session_id=…, settings=…)    for one that runs already, such as one that a command left behind
    table.get(one.id)  table.list(task_id)                     also those of earlier runtimes
    table.drain_notices(task_id)                               what ended, or printed a watched line: each once
    table.close()                                              before the environments; surviving processes keep running

A process in an environment whose processes can outlast it (`environment.persistent`) survives the runtime; one in a sandbox ends
with it.

    table.py     the table; `process_table` makes it at its first use
    tracked.py   one process: status, log, terminal (screen.py), input (interact.py)
    watched_output.py   polls watched processes, finds matching lines, and says what is reported
    leftovers.py        removes what nothing needs any longer
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ..config import Config
    from ..environments.tasks import TaskEnvironments
    from .table import ProcessTable


def process_table(config: Config, environments: TaskEnvironments) -> ProcessTable:
    """A `ProcessTable` whose records are in the state folder. Nothing is imported or read before it is used."""
    return cast("ProcessTable", _Lazy(config, environments))


class _Lazy:
    def __init__(self, config: Config, environments: TaskEnvironments) -> None:
        self._config, self._environments = config, environments
        self._made: ProcessTable | None = None
        self._making = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        with self._making:
            if self._made is None:
                from ..config.paths import state_dir
                from ..store.processes import ProcessRecords
                from .table import ProcessTable

                records = ProcessRecords(state_dir(self._config.home) / "process-table")
                self._made = ProcessTable(records, self._environments, self._config.processes)
        return getattr(self._made, name)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
