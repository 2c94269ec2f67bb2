"""Stand-ins for the roles around a runtime, for tests and demonstrations, and the conformance kit for environments.

    model = ScriptedModel([ModelReply("I look.", [call("read_file", path="a.py")]), ModelReply("Done.")])
    person = ScriptedPerson(["blue"])
    runtime = Runtime(registry, person=person, results=MemoryResultStore())

    report = check_environment(lambda: MyEnvironment("box"))

Each stand-in records what it was asked. Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..protocols import ModelReply
    from .agent import FakeAgent
    from .environment_conformance import (
        Check,
        Conformance,
        ConformanceFailure,
        NotApplicable,
        Outcome,
        Report,
        Verdict,
        check_environment,
        environment_checks,
    )
    from .model import Reply, ScriptedModel, Sent, call
    from .model_server import Fault, ModelServer, Raw
    from .people import OpenGate, RecordingApprover, ScriptedPerson
    from .results import MemoryResultStore

_HOMES = {
    "..protocols": "ModelReply",
    ".agent": "FakeAgent",
    ".environment_conformance": "Check Conformance ConformanceFailure NotApplicable "
    "Outcome Report Verdict check_environment environment_checks",
    ".model": "Reply ScriptedModel Sent call",
    ".model_server": "Fault ModelServer Raw",
    ".people": "OpenGate RecordingApprover ScriptedPerson",
    ".results": "MemoryResultStore",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Check",
    "Conformance",
    "ConformanceFailure",
    "FakeAgent",
    "Fault",
    "MemoryResultStore",
    "ModelReply",
    "ModelServer",
    "NotApplicable",
    "OpenGate",
    "Outcome",
    "Raw",
    "RecordingApprover",
    "Reply",
    "Report",
    "ScriptedModel",
    "ScriptedPerson",
    "Sent",
    "Verdict",
    "call",
    "check_environment",
    "environment_checks",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name], __name__), name)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
