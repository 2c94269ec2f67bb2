"""Look for what is wrong with this installation, and say how to fix it.

It works when the configuration does not. A tool that lacks something optional is mentioned and is no fault; a
configuration that cannot be used, or a tool that cannot be imported, is one.

\b
Examples:
  handrail doctor
  handrail doctor --json | jq '.findings[] | select(.health != "ok")'

Exit codes: 0 nothing is broken, 1 something is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .. import exit_codes, options

if TYPE_CHECKING:
    from ..health import Finding


cli = options.new_cli()


@cli.command()
def doctor(as_json: options.Json = False) -> None:
    from ..health import Health, examine
    from ..output import colours, emit, emit_json, result_stream

    with result_stream() as stdout:
        findings = list(examine())
        broken = sum(finding.health is Health.BROKEN for finding in findings)
        if as_json:
            listed = [
                {"what": each.what, "health": each.health.value, "detail": each.detail, "fix": each.fix}
                for each in findings
            ]
            emit_json({"ok": not broken, "findings": listed}, stdout)
        else:
            for finding in findings:
                emit(_line(finding, colour=colours(stdout)), stdout)
            emit(f"\n{broken} broken." if broken else "\nNothing is broken.", stdout)
    raise typer.Exit(exit_codes.ExitCode.FAILED if broken else exit_codes.ExitCode.OK)


def _line(finding: Finding, *, colour: bool) -> str:
    from ..health import Health
    from ..output import paint, visible

    mark, style = {Health.OK: ("✓", "green"), Health.MISSING: ("–", "yellow"), Health.BROKEN: ("✗", "red")}[
        finding.health
    ]
    line = f"{paint(mark, style, on=colour)} {paint(finding.what, 'bold', on=colour)}: {visible(finding.detail)}"
    return f"{line}\n    {paint('fix:', 'dim', on=colour)} {visible(finding.fix)}" if finding.fix else line
