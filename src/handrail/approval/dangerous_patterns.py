"""`DANGEROUS_PATTERNS`: the documented list of `(regex, description)`, which a program may add to.

The judge reads a command as the shell would and does not need these expressions. They describe what it finds, for listings
and for readers who know such lists. What a program adds to the list is asked about.
"""

from __future__ import annotations

import functools
import re

from ..judge.values.assessment import Finding, Severity

_START = r"(?:^|[\s;&|(`/])"  # where a command's name can start
_REST = r"[^;&|\n]*"  # within the same command

DANGEROUS_PATTERNS: list[tuple[str, str]] = [
    (rf"{_START}rm\b{_REST}\s(?:-\w*[rR]|--recursive\b)", "deletes a tree of files"),
    (rf"{_START}find\s+{_REST}(?:-delete\b|-exec\s+rm\b)", "deletes the files that find finds"),
    (rf"{_START}(?:shred|wipe|srm)\s+\S", "overwrites files beyond recovery"),
    (rf"{_START}mkfs(?:\.\w+)?(?=\s|$)", "formats a disk"),
    (rf"{_START}(?:wipefs|fdisk|parted|sgdisk|sfdisk)\s+{_REST}/dev/", "changes the layout of a disk"),
    (rf"{_START}dd\s+{_REST}(?:if|of)=", "copies raw data over a file or disk"),
    (r">\s*/dev/(?:sd|nvme|vd|hd|mmcblk|disk)", "writes to a raw disk"),
    (r"(?i)\bDROP\s+(?:TABLE|DATABASE|SCHEMA)\b", "drops a table or database"),
    (r"(?i)\bDELETE\s+FROM\b(?!.*\bWHERE\b)", "deletes every row of a table"),
    (r"(?i)\bTRUNCATE\s+(?:TABLE\s+)?\w", "empties a table"),
    (r">>?\s*/etc/", "overwrites system configuration"),
    (rf"{_START}tee\s+{_REST}/etc/", "overwrites system configuration"),
    (rf"{_START}systemctl\s+{_REST}\b(?:stop|restart|disable|mask|kill)\b", "stops or disables a service"),
    (rf"{_START}(?:service|rc-service)\s+\S+\s+(?:stop|restart)\b", "stops or restarts a service"),
    (
        rf"{_START}(?:curl|wget)\s[^;&\n]*\|\s*(?:sudo\s+)?(?:\w*sh|python\d?|perl|ruby|node)\b",
        "runs code from the network",
    ),
    (r"(?:\w*sh|source|eval)\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b", "runs code from the network"),
    (r":\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:", "a fork bomb"),
    (rf"{_START}kill\s+(?:-\w+\s+)*-?\d", "kills processes"),
    (rf"{_START}(?:pkill|killall)\s+\S", "kills processes by name"),
    (rf"{_START}chmod\b{_REST}\s(?:-\w*R|--recursive\b|[0-7]?777\b)", "opens files to everybody"),
    (rf"{_START}chown\b{_REST}\s(?:-\w*R|--recursive\b)", "changes the owner of a tree of files"),
    (rf"{_START}(?:shutdown|reboot|halt|poweroff)(?=\s|$)", "shuts the machine down"),
    (rf"{_START}git\s+{_REST}(?:push\s{_REST}(?:--force|-f)\b|reset\s+--hard|clean\s+-\w*f)", "discards work in git"),
]
_BUILTIN = list(DANGEROUS_PATTERNS)
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9]+")


def findings_of_added(command: str) -> tuple[Finding, ...]:
    """What the entries that a program has added find in a command; costs next to nothing when there are none."""
    if DANGEROUS_PATTERNS == _BUILTIN:
        return ()
    found = []
    for pattern, description in DANGEROUS_PATTERNS:
        if (pattern, description) in _BUILTIN:
            continue
        match = _compiled(pattern).search(command)
        if match is not None:
            rule = f"pattern.{_NOT_IN_AN_ID.sub('-', description.lower()).strip('-') or 'added'}"
            found.append(Finding(rule, Severity.ASK, description, match.span()))
    return tuple(found)


@functools.lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def detect_dangerous_command(command: str) -> tuple[bool, str | None, str | None]:
    """`(dangerous, the rule's id, why)`: what the judge finds, else what an added pattern finds."""
    from ..judge.assessor import detect_dangerous_command as judged  # the judge loads with the first command

    verdict = judged(command)
    if not verdict[0]:
        for finding in findings_of_added(command)[:1]:
            return True, finding.rule, finding.why
    return verdict
