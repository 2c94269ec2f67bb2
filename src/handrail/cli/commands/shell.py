"""Open a shell where a model's commands run, at your own terminal.

It has the same files, variables and limits, and passes no gate: you are the person that would be asked. It ends
with `exit` or Ctrl-D, and nothing of it is left. What the task's own shell has set since is its own.

\b
Examples:
  handrail shell
  handrail shell --env docker:python:3.12
  handrail shell --task t1

The exit code is the shell's.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .. import exit_codes, options

Env = Annotated[
    str | None,
    typer.Option(
        "--env", metavar="NAME", help="An environment (local, docker:python:3.12, …); default: the configured one."
    ),
]


cli = options.new_cli()


@cli.command()
def shell(env: Env = None, task: options.Task = None) -> None:
    from ...environments.base import ProcessState
    from ..open_runtime import open_runtime
    from ..output import note, say
    from ..terminal_relay import relay, window_size

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say("this needs a terminal for input and output; a program uses `handrail call terminal command=...`")
        raise typer.Exit(exit_codes.ExitCode.USAGE)
    here = open_runtime()
    try:
        if env is not None:
            here.environments.override(task or "default", {"backend": env})
        with here.environments.use(task) as environment:
            environment.start()
            note(f"{environment.name}, in {environment.cwd}; Ctrl-D ends it")
            rows, columns = window_size()
            process = environment.open_pty("exec bash -i", rows=rows, columns=columns)
            try:
                status = relay(process)
            finally:
                process.forget()
    finally:
        here.close()
    if status.state is not ProcessState.ENDED or status.exit_code is None:
        say("the shell was lost; nobody knows how it ended")
        raise typer.Exit(exit_codes.ExitCode.FAILED)
    raise typer.Exit(status.exit_code)
