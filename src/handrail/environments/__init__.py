"""Where commands run: one environment per task, on this machine, in a container, on another host or in a cloud.

    task -> environment -> link -> shell host -> bash

    task          has one environment, opened at its first use (`TaskEnvironments`, tasks.py) from its settings (backend_table.py)
    backend       a file in backends/, whose class makes environments of one sort; backend_table.py finds it by name
    environment   the protocol `Environment` (base.py). Nearly all are a `LiveEnvironment`, which keeps one shell alive
    link          how an environment reaches its shell (transport/): direct on this machine, otherwise frames over a channel
    shell host    the processes beside the shell (shell_host/): they start bash, save its state, and end what runs in it

Around them: output.py and command_request.py (what is kept of an output and shown, without secrets), command_input.py (which
variables commands get), handles.py (files and background processes through a link), sandbox.py.

To write a backend, subclass `LiveEnvironment`, implement `connect`, and check it with `handrail.testing.check_environment`.
Names are loaded when they are first used.
"""

from ..base.lazy_module import lazy_face

__getattr__, __dir__ = lazy_face(__name__, __file__)
