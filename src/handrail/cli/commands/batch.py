"""Run a file of tasks, each an agent session of its own.

On this machine or a Ray cluster; a run that was cut off can be resumed.

Examples:
  handrail batch tasks.jsonl --out run1
  handrail batch tasks.jsonl --out run1 --engine ray --address auto
  handrail batch status run1 --watch
  handrail batch resume run1
  handrail batch stop run1
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any

from typer.core import TyperGroup

from ...agent.models.model_selection import build, known_providers
from ...batch.driver import ENGINES, Batch
from ...batch.folder import Options, create, read_options, request_stop, status
from ...batch.tasks import read_tasks
from ...batch.worker import main as be_worker
from ...errors import InvalidArguments
from ...types import JsonDict
from ..options import Exit, Json, argument, new_cli, option
from ..output import ExitCode, emit, emit_either, note, say
from ..runtime import open_runtime

_LINE_SECONDS = 10.0
Folder = Annotated[Path, argument("FOLDER", "The folder of a batch.", show_default=False)]


class _RunByDefault(TyperGroup):
    """`handrail batch FILE` means `handrail batch run FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args.insert(0, "run")
        return super().parse_args(ctx, args)


cli = new_cli(cls=_RunByDefault)
Watch = Annotated[bool, option("--watch", "Keep showing it until it has ended.")]


@cli.command()
def run(
    tasks: Annotated[Path, argument("FILE", "A task per line, as JSON.", show_default=False)],
    out: Annotated[Path, option("FOLDER", "Where the ledger and the results go.")],
    engine: Annotated[str, option("|".join(ENGINES), "Where the workers run.")] = "local",
    address: Annotated[str, option("ADDRESS", "Address of the Ray cluster; auto finds a local one.")] = "auto",
    workers: Annotated[int, option("N", "Worker processes or actors.", min=1)] = 2,
    sessions: Annotated[int, option("K", "Sessions per worker at a time.", min=1)] = 8,
    attempts: Annotated[int, option("N", "How often a task may fail.", min=1)] = 3,
    lease: Annotated[float, option("S", "Seconds after which a silent worker is lost.", min=2)] = 30,
    approvals: Annotated[str, option("inbox|deny", "Ask you in the inbox, or deny.")] = "inbox",
    ledger: Annotated[str, option("URL", "A PostgreSQL database instead of a file.")] = "",
    artifacts: Annotated[str, option("URL", "Where trajectories and kept files go; any that fsspec knows.")] = "",
    as_json: Json = False,
) -> None:
    """Run the tasks of a file. Ctrl-C or `batch stop` stops it, `batch resume` goes on.

    \b
    Exit codes: 0 all done, 1 some tasks failed, 130 stopped.
    """
    if engine not in ENGINES or approvals not in ("inbox", "deny"):
        raise InvalidArguments(f"--engine is one of {', '.join(ENGINES)}, --approvals is inbox or deny")
    if artifacts and "://" not in artifacts:
        artifacts = str(Path(artifacts).absolute())
    chosen = Options(engine, address, workers, sessions, attempts, lease, approvals, ledger, artifacts=artifacts)
    create(read_tasks(tasks), out, chosen)
    _run(out, as_json)


@cli.command()
def resume(out: Folder, as_json: Json = False) -> None:
    """Resume a batch that was stopped or whose driver was killed. No effect happens twice."""
    _run(out, as_json)


@cli.command("status")
def show(out: Folder, watch: Watch = False, as_json: Json = False) -> None:
    """Show how far a batch is."""
    while True:
        found = status(out)
        if watch and sys.stdout.isatty() and not as_json:
            emit(f"\r\x1b[K{_line(found)}", end="")
        else:
            emit_either(found, _line(found), as_json=as_json)
        if not watch or found["state"] not in ("running", "stopping"):
            break
        time.sleep(1.0)
    if watch and sys.stdout.isatty() and not as_json:
        emit("")


@cli.command()
def stop(out: Folder) -> None:
    """Stop a batch: within seconds no command of it runs any more."""
    if not request_stop(out):
        say(f"{out} does not run")


@cli.command(hidden=True)
def worker() -> None:
    """Be a worker of the engine local. The driver starts this."""
    be_worker()


def _run(out: Path, as_json: bool) -> None:
    read_options(out)
    app = open_runtime(asks=False)
    build(app.config.model, providers=known_providers(app.plugins))  # fails here, not in every worker
    batch, last = Batch(app, out), 0.0
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: batch.stop())

    def show_progress(progress: JsonDict) -> None:
        """One line that is written over at a terminal, else a line now and then."""
        nonlocal last
        text = progress.get("problem") or _line(progress)
        if sys.stderr.isatty():
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            sys.stderr.write(f"\r\x1b[K{text[: width - 1]}")
            sys.stderr.flush()
        elif time.monotonic() - last > _LINE_SECONDS:
            last = time.monotonic()
            note(text)

    summary = batch.run(show_progress)
    emit_either(summary, f"{_line(summary)}  {out / 'results.jsonl'}", as_json=as_json)
    if summary["state"] != "done":
        say(f"stopped; `handrail batch resume {out}` goes on")
        raise Exit(ExitCode.INTERRUPTED)
    if summary["failed"]:
        raise Exit(ExitCode.FAILED)


def _line(found: JsonDict) -> str:
    """Such as `[####------] 40/100, 1 failed, 8 running  2.1/s  $0.31  ETA 0:28  reward 0.82`."""
    ended = found["done"] + found["failed"]
    total = ended + found["waiting"] + found["running"]
    full = ended * 20 // total if total else 20
    parts = [f"{found.get('state', '')} [{'#' * full}{'-' * (20 - full)}] {ended}/{total}".strip()]
    parts += [f"{found[name]} {name}" for name in ("failed", "running") if found[name]]
    text = ", ".join(parts)
    if found.get("per_second"):
        text += f"  {found['per_second']:.2g}/s" if found["per_second"] < 1 else f"  {found['per_second']:.1f}/s"
    if found.get("cost") is not None:
        text += f"  ${found['cost']:.2f}"
    if found.get("eta"):
        text += f"  ETA {found['eta'] // 60}:{found['eta'] % 60:02}"
    if found.get("mean_reward") is not None:
        text += f"  reward {found['mean_reward']:.3g}"
    return text
