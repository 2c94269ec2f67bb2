"""Stand-ins for the roles around a runtime, for tests and demonstrations, and the conformance kit for environments.

    model = ScriptedModel([ModelReply("I look.", [call("read_file", path="a.py")]), ModelReply("Done.")])
    person = ScriptedPerson(["blue"])
    runtime = Runtime(registry, person=person, results=MemoryResultStore())

    report = check_environment(lambda: MyEnvironment("box"))

Each stand-in records what it was asked. Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_module

if TYPE_CHECKING:
    from ..protocols import ModelReply as ModelReply
    from .environment_conformance import Check as Check
    from .environment_conformance import Conformance as Conformance
    from .environment_conformance import ConformanceFailure as ConformanceFailure
    from .environment_conformance import NotApplicable as NotApplicable
    from .environment_conformance import Outcome as Outcome
    from .environment_conformance import Report as Report
    from .environment_conformance import Verdict as Verdict
    from .environment_conformance import check_environment as check_environment
    from .environment_conformance import environment_checks as environment_checks
    from .fakes import FakeAgent as FakeAgent
    from .fakes import MemoryResultStore as MemoryResultStore
    from .fakes import OpenGate as OpenGate
    from .fakes import RecordingApprover as RecordingApprover
    from .fakes import Reply as Reply
    from .fakes import ScriptedModel as ScriptedModel
    from .fakes import ScriptedPerson as ScriptedPerson
    from .fakes import Sent as Sent
    from .fakes import call as call
    from .model_server import Fault as Fault
    from .model_server import ModelServer as ModelServer
    from .model_server import Raw as Raw
else:
    __getattr__, __dir__, __all__ = lazy_module(
        __name__,
        {
            "handrail.protocols": "ModelReply",
            ".environment_conformance": "Check Conformance ConformanceFailure NotApplicable Outcome Report Verdict "
            "check_environment environment_checks",
            ".fakes": "FakeAgent MemoryResultStore OpenGate RecordingApprover Reply ScriptedModel "
            "ScriptedPerson Sent call",
            ".model_server": "Fault ModelServer Raw",
        },
    )
