"""Background processes of all tasks: started, named, watched, and found again after a restart.

    table = ProcessTable(ProcessRecords(folder), environments)
    one = table.start("npm run dev", task_id=…, session_id=…, wanted=Wanted(notify_on_complete=True))
    table.add(process, task_id=…, session_id=…, settings=…)    for one that runs already, such as one that a command left behind
    table.get(one.id)  table.list(task_id)                     also those of earlier runtimes
    table.drain_notices(task_id)                               what ended, or printed a watched line: each once
    table.close()                                              before the environments; surviving processes keep running

A process in an environment whose processes can outlast it (`environment.persistent`) survives the runtime; one in a sandbox ends
with it.

    table.py     the table
    tracked.py   one process: status, log, terminal (screen.py), input (interact.py)
    watched_output.py   polls watched processes, finds matching lines, and says what is reported
    leftovers.py        removes what nothing needs any longer
"""
