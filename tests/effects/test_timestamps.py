"""Timestamps of seals, by a real authority: OpenSSL's."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from handrail.effects.audit import verify
from handrail.effects.receipts import Receipts
from handrail.store.call_records import CallRecord, CallRecords

from ..services.components import absent

_SETTINGS = """
[ req ]
distinguished_name = name
[ name ]
[ authority ]
extendedKeyUsage = critical,timeStamping
[ tsa ]
default_tsa = settings
[ settings ]
serial = serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
accuracy = secs:1
ordering = yes
tsa_name = yes
ess_cert_id_chain = no
"""


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


class Authority:
    """A timestamp authority on loopback. `certificates` is what its users trust."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            absent("openssl", "apt-get install openssl")
        folder.mkdir()
        self.folder, self.refuses = folder, False
        (folder / "openssl.cnf").write_text(_SETTINGS)
        (folder / "serial").write_text("01\n")
        new = ("-newkey", "rsa:2048", "-nodes", "-config", "openssl.cnf")
        openssl(folder, "req", "-x509", *new, "-subj", "/CN=root", "-keyout", "ca.key", "-out", "ca.pem")
        openssl(folder, "req", *new, "-subj", "/CN=clock", "-keyout", "tsa.key", "-out", "tsa.csr")
        signs = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "openssl.cnf")
        openssl(folder, "x509", "-req", "-in", "tsa.csr", *signs, "-extensions", "authority", "-out", "tsa.pem")
        self.certificates = (folder / "ca.pem").read_bytes()

    def answer(self, query: bytes) -> bytes:
        (self.folder / "query").write_bytes(query if not self.refuses else b"0\x00")
        keys = ("-signer", "tsa.pem", "-inkey", "tsa.key")
        openssl(self.folder, "ts", "-reply", "-queryfile", "query", *keys, "-config", "openssl.cnf", "-out", "reply")
        return (self.folder / "reply").read_bytes()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tsa") / "one")


@pytest.fixture
def address(authority: Authority) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Content-Type"] == "application/timestamp-query"
            reply = authority.answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"tsa+http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def stamped(tmp_path: Path, witness: str, *, calls: int = 2) -> Receipts:
    receipts = Receipts(CallRecords(None).database, tmp_path / "audit", witness)
    for number in range(calls):
        receipts.add(CallRecord(number, "s", None, "terminal", "x", "/", time.time()), "policy")
        receipts.seal()
    return receipts


def problems(receipts: Receipts, authority: Authority, lines: list[str] | None = None) -> list[str]:
    lines = list(receipts.export()) if lines is None else lines
    return verify(lines, receipts.public_key(), authority=authority.certificates).problems


def test_an_authority_stamps_each_seal_and_an_export_proves_it(
    tmp_path: Path, authority: Authority, address: str
) -> None:
    receipts = stamped(tmp_path, address)
    lines = list(receipts.export())
    assert sum('"timestamp"' in line for line in lines) == 2
    assert problems(receipts, authority, lines) == []


def test_timestamps_of_another_authority_are_not_believed(tmp_path: Path, address: str) -> None:
    receipts = stamped(tmp_path, address, calls=1)
    found = problems(receipts, Authority(tmp_path / "other"))
    assert "the timestamp of seal 1 does not hold" in found[0]
    assert "no timestamp covers the seals after 0" in found[1]


@pytest.mark.parametrize("change", ["moved", "removed", "broken"])
def test_a_changed_timestamp_is_found(tmp_path: Path, authority: Authority, address: str, change: str) -> None:
    receipts = stamped(tmp_path, address)
    path = tmp_path / "audit" / "timestamps.jsonl"
    first, second = map(json.loads, path.read_text().splitlines())
    if change == "moved":
        second["response"] = first["response"]
    if change == "broken":
        second["response"] = second["response"][:-40] + "A" * 40
    kept = [first] if change == "removed" else [first, second]
    path.write_text("".join(json.dumps(one) + "\n" for one in kept))
    assert any("seal 2" in each or "after 1" in each for each in problems(receipts, authority))


def test_a_history_that_was_signed_later_does_not_fit_its_timestamps(
    tmp_path: Path, authority: Authority, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 30 * 86_400)
    receipts = stamped(tmp_path, address, calls=1)
    assert problems(receipts, authority) == ["the time in seal 1 is 720.0 hours from its timestamp"]


def test_an_authority_that_cannot_be_reached_is_made_up_for_by_the_next_seal(
    tmp_path: Path, authority: Authority, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        stamped(tmp_path, "tsa+http://127.0.0.1:1/", calls=1)
        authority.refuses = True
        stamped(tmp_path, address, calls=1)
        authority.refuses = False
    assert "did not get a seal" in caplog.messages[0]
    assert "the timestamp authority refused" in caplog.messages[1]
    assert not (tmp_path / "audit" / "timestamps.jsonl").exists()
