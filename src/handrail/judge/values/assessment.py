"""The judge's answer about one command: what would run, what was found in it, what could not be known, and the verdict."""

import enum
import itertools
from dataclasses import asdict, dataclass, field
from typing import Any

Span = tuple[int, int]
"""Start and end in the text that was judged."""


class Severity(enum.StrEnum):
    """What a finding means for the command."""

    BLOCK = "block"
    """Never runs, whoever allows it."""
    ASK = "ask"
    """Runs if someone approves it, now or by an earlier grant."""
    NOTE = "note"
    """Worth showing; does not stop the command."""


class Verdict(enum.StrEnum):
    """What happens to the whole command."""

    ALLOW = "allow"
    ASK = "ask"
    BLOCK = "block"


class Reach(enum.IntEnum):
    """How far the effect of a finding goes, narrow to wide. A grant for one reach does not cover a wider one."""

    NOWHERE = 0
    """It touches no path, or none that matters."""
    TEMP = 1
    PROJECT = 2
    """In the working directory and below."""
    OUTSIDE = 3
    """Beside the working directory."""
    HOME = 4
    SYSTEM = 5
    UNKNOWN = 6
    """Where it goes cannot be known before it runs."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason to stop and look."""

    rule: str
    severity: Severity
    why: str
    span: Span
    """The part of the command's text that it is about."""
    argv: tuple[str, ...] = ()
    """The command line as it would run; what is unknown in it is shown as `?`."""
    reach: Reach = Reach.NOWHERE


@dataclass(frozen=True, slots=True)
class Segment:
    """One command line that would run."""

    argv: tuple[str, ...]
    span: Span
    depth: int
    """How many shells, substitutions and wrappers surround it."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of the command whose value is only known when it runs."""

    what: str
    span: Span


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything the judge knows about a command."""

    command: str
    findings: tuple[Finding, ...] = ()
    """The gravest first."""
    segments: tuple[Segment, ...] = ()
    unknown: tuple[Unknown, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        severities = {finding.severity for finding in self.findings}
        if Severity.BLOCK in severities:
            return Verdict.BLOCK
        return Verdict.ASK if Severity.ASK in severities else Verdict.ALLOW

    @property
    def dangerous(self) -> bool:
        return self.verdict is not Verdict.ALLOW

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return {
            "command": self.command,
            "verdict": self.verdict.value,
            "findings": [
                {**_plain(found), "severity": found.severity.value, "reach": found.reach.name.lower()}
                for found in self.findings
            ],
            "segments": [_plain(segment) for segment in self.segments],
            "unknown": [_plain(part) for part in self.unknown],
        }


def _plain(part: Finding | Segment | Unknown) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(part).items()}


def stretches(assessment: Assessment) -> list[tuple[str, Severity | None]]:
    """The command's text cut where findings start and end, each stretch with the gravest severity found there."""
    text = assessment.command
    cuts = sorted({0, len(text), *(place for finding in assessment.findings for place in finding.span)})
    out: list[tuple[str, Severity | None]] = []
    for start, end in itertools.pairwise(cuts):
        around = (found.severity for found in assessment.findings if found.span[0] <= start and end <= found.span[1])
        out.append((text[start:end], next(around, None)))
    return out
