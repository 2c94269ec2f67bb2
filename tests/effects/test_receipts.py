"""Receipts: whatever is done to an export or to the store is found with the public key alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from handrail.effects.audit import BadExport, verify
from handrail.effects.receipts import MerkleTree, Receipts
from handrail.store.call_records import CallRecord, CallRecords


@pytest.fixture
def receipts(tmp_path: Path) -> Receipts:
    made = Receipts(CallRecords(tmp_path / "calls.db").database, tmp_path / "audit", str(tmp_path / "witness"))
    for number in range(1, 7):
        made.add(CallRecord(number, "s", None, "terminal", f"command {number}", "/srv", time.time()), "policy")
        if number % 2 == 0:
            made.seal()
    return made


def found(receipts: Receipts, lines: list[str]) -> list[str]:
    return verify(lines, receipts.public_key()).problems


def test_an_untouched_export_is_as_signed(receipts: Receipts) -> None:
    checked = verify(receipts.export(), receipts.public_key())
    assert (checked.receipts, checked.seals, checked.problems) == (6, 3, [])


TAMPERINGS: dict[str, Callable[[list[str]], list[str]]] = {
    "a receipt is changed": lambda lines: [line.replace("command 3", "command x") for line in lines],
    "a receipt is removed": lambda lines: lines[:2] + lines[3:],
    "the first receipt is removed": lambda lines: lines[:1] + lines[2:],
    "the last receipt is removed": lambda lines: lines[:6] + lines[7:],
    "two receipts change places": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "a receipt is doubled": lambda lines: [*lines[:3], lines[2], *lines[3:]],
    "a seal is removed": lambda lines: lines[:7] + lines[8:],
    "the last seal is removed": lambda lines: lines[:9] + lines[10:],
    "the seals change places": lambda lines: [*lines[:7], lines[8], lines[7], *lines[9:]],
    "the end is cut off": lambda lines: lines[:-1],
    "the last receipts and their seal are cut off": lambda lines: lines[:5] + lines[7:9] + lines[10:],
    "everything but the beginning is cut off": lambda lines: lines[:1],
    "a line is not JSON": lambda lines: [*lines[:3], "{", *lines[3:]],
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_every_tampering_is_found(receipts: Receipts, name: str) -> None:
    lines = list(receipts.export())
    tampered = TAMPERINGS[name](lines)
    assert tampered != lines
    assert found(receipts, tampered)


def test_no_line_can_be_removed_doubled_moved_or_changed(receipts: Receipts) -> None:
    lines = list(receipts.export())
    for at, line in enumerate(lines):
        before, after, middle = lines[:at], lines[at + 1 :], len(line) // 2
        changed = line[:middle] + ("x" if line[middle] != "x" else "y") + line[middle + 1 :]
        tamperings = [[*before, *after], [*before, line, line, *after], [*before, changed, *after]]
        if after:
            tamperings.append([*before, after[0], line, *after[1:]])
        tamperings += [[*before, added, *after] for added in _with_more(line)]
        for tampered in tamperings:
            assert found(receipts, tampered), (at, line)


def _with_more(line: str) -> Iterator[str]:
    """Something that nobody signed, or the same written otherwise."""
    about = json.loads(line)
    yield json.dumps({**about, "note": "approved"})
    yield json.dumps(about, separators=(",", ":"))
    for kind, signed in about.items():
        if isinstance(signed, dict):
            yield json.dumps({kind: {**signed, "note": "approved"}})
            yield json.dumps({kind: {**signed, "signature": signed["signature"].upper()}})


def test_another_key_signs_nothing_here(receipts: Receipts, tmp_path: Path) -> None:
    other = Receipts(CallRecords(None).database, tmp_path / "other")
    assert verify(receipts.export(), other.public_key()).problems


def test_a_whole_batch_that_is_gone_is_known_to_the_witness(receipts: Receipts, tmp_path: Path) -> None:
    witnessed = [json.loads(line) for line in (tmp_path / "witness").read_text().splitlines()]
    assert verify(receipts.export(), receipts.public_key(), witnessed=witnessed).problems == []
    with receipts._database.transaction() as connection:
        connection.execute("DELETE FROM receipts WHERE id > 4")
        connection.execute("DELETE FROM seals WHERE id > 2")
    lines = list(receipts.export())
    assert verify(lines, receipts.public_key()).problems == [], "the key's holder can forget"
    assert verify(lines, receipts.public_key(), witnessed=witnessed).problems
    assert verify(lines, receipts.public_key(), witnessed=receipts.known_head()).problems


def test_an_http_witness_is_sent_each_seal(tmp_path: Path) -> None:
    got: list[bytes] = []

    class Witness(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Witness) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        made = Receipts(CallRecords(None).database, tmp_path / "audit", f"http://127.0.0.1:{server.server_port}/")
        made.add(CallRecord(1, "s", None, "terminal", "x", "/", time.time()), "policy")
        made.close()
        server.shutdown()
        thread.join()
    assert json.loads(got[0]) == made.known_head()[0]


def test_the_key_is_the_users_alone(receipts: Receipts, tmp_path: Path) -> None:
    assert receipts.public_key().startswith("-----BEGIN PUBLIC KEY-----")
    assert (tmp_path / "audit" / "key.pem").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("lines", [["no"], ["[]"]])
def test_what_is_no_export_is_said_to_be_none(receipts: Receipts, lines: list[str]) -> None:
    with pytest.raises(BadExport):
        verify(lines, receipts.public_key())
    with pytest.raises(BadExport):
        verify(receipts.export(), "no key")


def test_a_merkle_root_depends_on_every_leaf_and_their_order() -> None:
    leaves = [f"{number:064x}" for number in range(5)]
    roots = {_root(some) for some in (leaves, leaves[::-1], leaves[:4], [*leaves, leaves[4]])}
    assert len(roots) == 4


def test_a_tree_that_grows_has_the_root_of_its_leaves_joined_in_pairs() -> None:
    for count in range(1, 20):
        leaves = [f"{number:064x}" for number in range(count)]
        level = [sha256(b"\0" + bytes.fromhex(one)).digest() for one in leaves]
        while len(level) > 1:
            pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
            level = [sha256(b"\1" + b"".join(pair)).digest() if len(pair) == 2 else pair[0] for pair in pairs]
        assert _root(leaves) == level[0].hex()


def _root(leaves: list[str]) -> str:
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()
