"""Stand-ins for the roles around a runtime, for tests and demonstrations, and the conformance kit for environments.

    model = ScriptedModel([ModelReply("I look.", [call("read_file", path="a.py")]), ModelReply("Done.")])
    person = ScriptedPerson(["blue"])
    runtime = Runtime(registry, person=person, results=MemoryResultStore())

    report = check_environment(lambda: MyEnvironment("box"))

Each stand-in records what it was asked. Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import by_name, lazy_module

if TYPE_CHECKING:
    from ..protocols import ModelReply
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
    from .fakes import (
        FakeAgent,
        MemoryResultStore,
        OpenGate,
        RecordingApprover,
        Reply,
        ScriptedModel,
        ScriptedPerson,
        Sent,
        call,
    )
    from .model_server import Fault, ModelServer, Raw

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
_HOMES = by_name(
    {
        "handrail.protocols": "ModelReply",
        "handrail.testing.environment_conformance": "Check Conformance ConformanceFailure NotApplicable Outcome Report Verdict "
        "check_environment environment_checks",
        "handrail.testing.fakes": "FakeAgent MemoryResultStore OpenGate RecordingApprover Reply ScriptedModel ScriptedPerson "
        "Sent call",
        "handrail.testing.model_server": "Fault ModelServer Raw",
    }
)
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
