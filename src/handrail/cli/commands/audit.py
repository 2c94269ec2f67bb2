"""Export the signed receipts of calls, and check an export.

A receipt binds the call, what it changed, the approval as it was shown and who gave it, the policy, and the receipt
before. To check an export only the public key is needed.

Examples:
  handrail audit export receipts.jsonl
  handrail audit key > handrail.pem
  handrail audit verify receipts.jsonl --key handrail.pem
"""

import json
from pathlib import Path
from typing import Annotated

from ...effects.audit import verify as check
from ...errors import ToolFailed
from ..call_text import counted
from ..options import Exit, Json, argument, new_cli, option, text_of
from ..output import ExitCode, as_typed, emit, emit_json, emit_to, fitted, say
from ..runtime import open_runtime

cli = new_cli()
File = Annotated[
    str | None, argument("[FILE]", "The file of an export. Without it: stdout, or the receipts kept here.")
]
KeyFile = Annotated[str | None, option("--key FILE", "The public key; default: your own.")]
Witness = Annotated[str | None, option("FILE", "Seals that a witness has kept.")]
Authority = Annotated[str | None, option("--tsa FILE", "Certificates (PEM) of the timestamp authority.")]


@cli.command()
def export(file: File = None) -> None:
    """Write all receipts, seals and a signed end, one JSON object per line."""
    text = "".join(f"{line}\n" for line in open_runtime().effects.receipts.export())
    emit_to(Path(file) if file else None, text)


@cli.command()
def key() -> None:
    """Print the public key, with which others can check your exports."""
    emit(open_runtime().effects.receipts.public_key(), end="")


@cli.command()
def verify(
    file: File = None,
    key_file: KeyFile = None,
    witness: Witness = None,
    authority: Authority = None,
    as_json: Json = False,
) -> None:
    """Check that no receipt was changed, removed, moved or cut off.

    Examples:
      handrail audit verify
      handrail audit verify receipts.jsonl --key handrail.pem --tsa authority.pem

    Exit codes: 0 all is as it was signed, 1 it is not.
    """
    kept = open_runtime().effects.receipts if not (file and key_file) else None
    public = text_of(key_file) if key_file else kept.public_key() if kept else ""
    lines = text_of(file).splitlines() if file else list(kept.export() if kept else ())
    witnessed = text_of(witness).splitlines() if witness else []
    try:
        seals = [*map(json.loads, witnessed), *(kept.known_head() if kept is not None and file is None else ())]
        trusted = text_of(authority).encode() if authority else b""
        found = check(lines, public, witnessed=seals, authority=trusted)
    except ValueError as error:
        raise ToolFailed(str(error)) from None
    if as_json:
        emit_json(found._asdict())
    else:
        for problem in found.problems:
            say(problem)
        what = f"{counted(found.receipts, 'receipt')} under {counted(found.seals, 'seal')}"
        emit(f"{what}: {'not as signed' if found.problems else 'all as signed'}.")
        if not found.receipts:
            emit(fitted(as_typed("No call has changed anything yet; `handrail calls` lists those that do.")))
    raise Exit(ExitCode.FAILED if found.problems else ExitCode.OK)
