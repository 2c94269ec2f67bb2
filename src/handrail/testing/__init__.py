"""Stand-ins for the roles around a runtime, for tests and demonstrations, and the conformance kit for environments.

    model = ScriptedModel([ModelReply("I look.", [call("read_file", path="a.py")]), ModelReply("Done.")])
    person = ScriptedPerson(["blue"])
    runtime = Runtime(registry, person=person, results=MemoryResultStore())

    report = check_environment(lambda: MyEnvironment("box"))

Each stand-in records what it was asked. Names are loaded when they are first used.
"""

from ..base.lazy_module import stubbed_module

__getattr__, __dir__, __all__ = stubbed_module(__name__, __file__)
