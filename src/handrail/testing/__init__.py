"""Stand-ins for the roles around a runtime, for tests and demonstrations: a model, a server of models, a person, an approver.

    model = ScriptedModel([ModelReply("I look.", [call("read_file", path="a.py")]), ModelReply("Done.")])
    person = ScriptedPerson(["blue"])
    runtime = Runtime(registry, person=person, results=MemoryResultStore())

Each one records what it was asked.
"""

from __future__ import annotations

from ..protocols import ModelReply
from .agent import FakeAgent
from .model import Reply, ScriptedModel, Sent, call
from .model_server import Fault, ModelServer, Raw
from .people import OpenGate, RecordingApprover, ScriptedPerson
from .results import MemoryResultStore

__all__ = [
    "FakeAgent",
    "Fault",
    "MemoryResultStore",
    "ModelReply",
    "ModelServer",
    "OpenGate",
    "Raw",
    "RecordingApprover",
    "Reply",
    "ScriptedModel",
    "ScriptedPerson",
    "Sent",
    "call",
]
