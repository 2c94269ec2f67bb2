"""Background processes of all tasks: started, named, watched, found again after a restart.

    table = ProcessTable(ProcessRecords(folder), environments)
    one = table.start("npm run dev", task_id=…, session_id=…, wanted=Wanted(notify_on_complete=True))
    table.add(process, task_id=…, session_id=…, settings=…)    for what runs already, as what a command left behind
    table.get(one.id)  table.list(task_id)                     also those of earlier runtimes
    table.drain_notices(task_id)                               what ended, or printed what was watched for: each once
    table.close()                                              before the environments; what survives goes on

A process that is started in an environment whose processes can outlast it (`environment.persistent`) lives on when the runtime
ends; one in a sandbox ends with it.
"""
