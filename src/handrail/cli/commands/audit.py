"""Export the signed receipts of all calls that changed something, and check an export.

A receipt binds the call, what it changed, the approval as it was shown and who gave it, the policy, and the receipt
before. To check an export only the public key is needed.

\b
Examples:
  handrail audit export receipts.jsonl
  handrail audit key > handrail.pem
  handrail audit verify receipts.jsonl --key handrail.pem
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...effects.audit import BadExport, verify
from ...effects.witness import read_witnessed
from ...errors import ToolFailed
from .. import options
from ..call_text import counted
from ..output import ExitCode, emit, emit_json, say
from ..runtime import open_runtime

cli = options.new_cli()


@cli.command()
def export(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Where to; without it to stdout.")] = None,
) -> None:
    """Write all receipts, seals and a signed end, one JSON object per line.

    \b
    Examples:
      handrail audit export receipts.jsonl
    """
    lines = open_runtime().effects.receipts.export()
    if file is None:
        for line in lines:
            emit(line)
        return
    try:
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    except OSError as error:
        raise ToolFailed(f"{file} cannot be written: {error.strerror}") from None


@cli.command()
def key() -> None:
    """Print the public key, with which others can check your exports.

    \b
    Examples:
      handrail audit key > handrail.pem
    """
    emit(open_runtime().effects.receipts.public_key(), end="")


@cli.command("verify")
def verify_(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="An export; without it, what is kept here.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="The public key; else your own.")
    ] = None,
    witness: Annotated[Path | None, typer.Option(metavar="FILE", help="Seals that a witness has kept.")] = None,
    as_json: options.Json = False,
) -> None:
    """Check that no receipt was changed, removed, moved or cut off.

    \b
    Examples:
      handrail audit verify
      handrail audit verify receipts.jsonl --key handrail.pem

    Exit codes: 0 all is as it was signed, 1 it is not.
    """
    witnessed = []
    try:
        if file is None or key_file is None:
            receipts = open_runtime().effects.receipts
        public = key_file.read_text("utf-8") if key_file is not None else receipts.public_key()
        lines = file.read_text("utf-8").splitlines() if file is not None else list(receipts.export())
        if witness is not None:
            witnessed = read_witnessed(witness)
        if file is None and (head := receipts.known_head()) is not None:
            witnessed.append(head)
        found = verify(lines, public, witnessed=witnessed)
    except (OSError, ValueError) as error:
        if isinstance(error, BadExport):
            raise ToolFailed(str(error)) from None
        raise ToolFailed(f"it cannot be read: {error}") from None
    if as_json:
        emit_json(found._asdict())
    else:
        for problem in found.problems:
            say(problem)
        what = f"{counted(found.receipts, 'receipt')} under {counted(found.seals, 'seal')}"
        emit(f"{what}: {'not as signed' if found.problems else 'all as signed'}.")
        if not found.receipts:
            emit("There is nothing to check before a call has changed something; `handrail calls` lists those.")
    raise typer.Exit(ExitCode.FAILED if found.problems else ExitCode.OK)
