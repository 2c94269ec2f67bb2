"""How calls fare while many watch them by HTTP: at a steady pace, with nobody and with many there in turn.

A process of its own, as the server's loop and the calls share it. Prints JSON.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time

_PACE, _WATCHERS, _ROUNDS, _SECONDS = 500, 20, 7, 1.0
_TOKEN = "a-token-for-the-bench-only"
_PORT = 18767
# Reads as fast as it can, one connection not at all, and looks at what it has read when all is over.
_READER = """
import json, re, selectors, socket, sys

port, many, request = int(sys.argv[1]), int(sys.argv[2]), sys.stdin.buffer.readline()
request = json.loads(request).encode()
lines = [socket.socket() for _ in range(many)]
lines[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
for line in lines:
    line.connect(("127.0.0.1", port))
read = {line: bytearray() for line in lines[1:]}
ready = selectors.DefaultSelector()
for line in lines:
    line.sendall(request)
for line in read:
    ready.register(line, selectors.EVENT_READ)
    while b"event: hello" not in read[line]:
        read[line] += line.recv(65536)
print("ready", flush=True)
ready.register(0, selectors.EVENT_READ)
last = None
while last is None or not all(last in each[-100_000:] for each in read.values()):
    for key, _ in ready.select():
        if key.fileobj == 0:
            last = b"id: " + sys.stdin.buffer.readline().strip()
            ready.unregister(0)
        else:
            read[key.fileobj] += key.fileobj.recv(1 << 20)
for each in read.values():
    numbers = [int(number) for number in re.findall(rb"\\nid: (\\d+)\\n", each)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "an event was lost, or out of order"
    assert b"event: missed" not in each
print("whole", flush=True)
"""


def main() -> None:
    from handrail.model_tools import default
    from handrail.serve import server as running
    from handrail.serve.server import Address
    from handrail.serve.shared_state import Served

    here = default()
    served = Served(here, token=_TOKEN)
    server = running.server(served, Address("127.0.0.1", _PORT))
    serving = threading.Thread(target=server.run)
    serving.start()
    while not server.started:
        time.sleep(0.01)
    _calls()
    alone, watched = [], []
    for _ in range(_ROUNDS):
        alone.append(_calls())
        with _Watchers() as watchers:
            watched.append(_calls())
            watchers.see(served.bus.last_id)
    server.should_exit = True
    serving.join()
    ratio = statistics.median(one / other for one, other in zip(watched, alone, strict=True))
    found = {"alone": min(alone), "watched": min(watched), "ratio": ratio, "watchers": _WATCHERS, "pace": _PACE}
    print(json.dumps(found))


def _calls() -> float:
    """Seconds of a call, of those that run for a while at the pace."""
    from handrail import model_tools

    taken, begin = [], time.perf_counter()
    for number in range(int(_PACE * _SECONDS)):
        time.sleep(max(0.0, begin + number / _PACE - time.perf_counter()))
        start = time.perf_counter()
        model_tools.handle_function_call("read_file", {"path": "/etc/hostname"})
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


class _Watchers:
    """All of them in one other process."""

    def __enter__(self) -> _Watchers:
        command = [sys.executable, "-c", _READER, str(_PORT), str(_WATCHERS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        head = f"GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1:{_PORT}\r\nauthorization: Bearer {_TOKEN}\r\n\r\n"
        self._tell(json.dumps(head))
        assert self._hear() == "ready"
        return self

    def see(self, last: int) -> None:
        self._tell(str(last))
        assert self._hear() == "whole"

    def _tell(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with self._process:
            pass


if __name__ == "__main__":
    main()
