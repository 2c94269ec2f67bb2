"""What the conformance suite starts as the client: it has the test's own process do it. `suite_client.py SOCKET URL`."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as link:
    link.connect(sys.argv[1])
    names = ("MCP_CONFORMANCE_SCENARIO", "MCP_CONFORMANCE_CONTEXT")
    link.sendall(json.dumps([sys.argv[2], *(os.environ.get(name, "") for name in names)]).encode() + b"\n")
    answer = link.makefile().read()
print(answer, file=sys.stderr)
sys.exit(0 if answer.startswith("done") else 1)
