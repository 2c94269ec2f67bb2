"""Receipts: what each call did, who allowed it and under which policy, so that no later change of it goes unnoticed. Each
receipt holds the hash of the one before. A batch of them is sealed: an Ed25519 signature over the last hash, the hash of the
seal before, and the Merkle root of each day that the batch is about. An export ends with a signed statement of how much there
is. All of it is checked with the public key alone: see `audit`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
import urllib.request
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..config.paths import make_private
from . import timestamps

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from ..store.call_records import CallRecord
    from ..store.database import Database

log = logging.getLogger(__name__)
FORMAT = "handrail-audit-1"
BATCH = 256
_KEY, _HEAD, _TIMESTAMPS = "key.pem", "head.json", "timestamps.jsonl"
_NOT_BOUND = ("settings", "undone_by", "is_told")
_WITNESS_SECONDS = 10.0
Seal = dict[str, Any]


class Receipts:
    """The chain in `database`. The key is in `folder`, which no agent's process can read. `witness` is given each new seal: a
    file, to which a line is appended, or an http address, to which it is posted. After `tsa+`, the address is that of a
    timestamp authority, whose answers are kept in `folder`."""

    def __init__(self, database: Database, folder: Path, witness: str = "") -> None:
        self._database, self._folder, self._witness = database, folder, witness
        self._unsealed = 0

    def add(self, record: CallRecord, policy: str) -> None:
        """Append the receipt of a call. It can have several: one that goes on in the background is written again at its end."""
        body = {name: value for name, value in record._asdict().items() if name not in _NOT_BOUND}
        with self._database.transaction() as connection:
            last = connection.execute("SELECT hash FROM receipts ORDER BY id DESC LIMIT 1").fetchone()
            now = time.time()
            text = canonical({**body, "at": now, "policy": policy, "previous": last["hash"] if last else ""})
            connection.execute("INSERT INTO receipts (at, body, hash) VALUES (?, ?, ?)", (now, text, digest(text)))
        self._unsealed += 1
        if self._unsealed >= BATCH:
            self.seal()

    def close(self) -> None:
        if self._unsealed:
            self.seal()

    def seal(self) -> None:
        """Sign what no seal is about yet."""
        self._unsealed = 0
        with self._database.transaction() as connection:
            last = connection.execute("SELECT body FROM seals ORDER BY id DESC LIMIT 1").fetchone()
            sealed = json.loads(last["body"])["to"] if last else 0
            query = "SELECT id, at, hash FROM receipts WHERE {} >= ? ORDER BY id"
            rows = connection.execute(query.format("id"), (sealed + 1,)).fetchall()
            if not rows:
                return
            of_days = connection.execute(query.format("at"), (rows[0]["at"] // 86_400 * 86_400,)).fetchall()
            trees = grow({}, ((row["at"], row["hash"]) for row in of_days))
            days = {day: tree.root() for day, tree in trees.items()}
            head = {"from": sealed + 1, "to": rows[-1]["id"], "head": rows[-1]["hash"], "days": days, "at": time.time()}
            seal = self._signed({**head, "previous": digest(last["body"]) if last else ""})
            connection.execute("INSERT INTO seals (body, signature) VALUES (?, ?)", (seal["body"], seal["signature"]))
        _write(self._folder / _HEAD, json.dumps(seal).encode(), os.replace)
        self._notify_witness(seal)

    def export(self) -> Iterator[str]:
        """The lines of an export, which `audit.verify` checks."""
        self.seal()
        receipts = [row["body"] for row in self._database.rows("SELECT body FROM receipts ORDER BY id")]
        seals = self._database.rows("SELECT body, signature FROM seals ORDER BY id")
        yield json.dumps({"format": FORMAT, "public_key": self.public_key()})
        yield from (json.dumps({"receipt": body}) for body in receipts)
        yield from (json.dumps({"seal": dict(row)}) for row in seals)
        path = self._folder / _TIMESTAMPS
        stamps = path.read_text("utf-8").splitlines() if path.exists() else []
        yield from (json.dumps({"timestamp": json.loads(line)}) for line in stamps)
        head = digest(receipts[-1]) if receipts else ""
        yield json.dumps({"end": self._signed({"receipts": len(receipts), "seals": len(seals), "head": head})})

    def known_head(self) -> list[Seal]:
        """The last seal, if there is one, as it was written beside the store when it was made."""
        path = self._folder / _HEAD
        return [json.loads(path.read_text())] if path.exists() else []

    def public_key(self) -> str:
        from cryptography.hazmat.primitives import serialization as form  # heavy: only where something is signed

        raw = self._key().public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        return raw.decode()

    def _signed(self, body: dict[str, Any]) -> Seal:
        text = canonical(body)
        return {"body": text, "signature": self._key().sign(text.encode()).hex()}

    def _key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives import serialization as form  # heavy: only where something is signed
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = self._folder / _KEY
        if not path.exists():
            make_private(self._folder)
            plain = (form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
            _write(path, Ed25519PrivateKey.generate().private_bytes(*plain), _keep_first)
        return cast("Ed25519PrivateKey", form.load_pem_private_key(path.read_bytes(), None))

    def _notify_witness(self, seal: Seal) -> None:
        try:
            if self._witness.startswith(timestamps.PREFIX):
                answer = timestamps.timestamp(self._witness, seal["body"], timeout=_WITNESS_SECONDS)
                line = json.dumps({"seal": digest(seal["body"]), "response": answer})
                _append(self._folder / _TIMESTAMPS, line)
            elif self._witness.startswith(("http://", "https://")):
                body, kind = json.dumps(seal).encode(), {"Content-Type": "application/json"}
                request = urllib.request.Request(self._witness, body, kind)
                urllib.request.urlopen(request, timeout=_WITNESS_SECONDS).close()
            elif self._witness:
                _append(Path(self._witness).expanduser(), json.dumps(seal))
        except OSError as error:  # the next seal is bound to this one
            log.warning("the witness %s did not get a seal: %s", self._witness, error)


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class MerkleTree:
    """Leaves and inner nodes are hashed with different beginnings, so that none passes for the other."""

    def __init__(self) -> None:
        self._whole: list[tuple[int, bytes]] = []  # whole trees with their sizes, the largest first

    def add(self, one: str) -> None:
        size, node = 1, hashlib.sha256(b"\0" + bytes.fromhex(one)).digest()
        while self._whole and self._whole[-1][0] == size:
            size, node = 2 * size, hashlib.sha256(b"\1" + self._whole.pop()[1] + node).digest()
        self._whole.append((size, node))

    def root(self) -> str:
        nodes = [node for _, node in self._whole]
        return reduce(lambda right, left: hashlib.sha256(b"\1" + left + right).digest(), reversed(nodes)).hex()


def grow(trees: dict[str, MerkleTree], receipts: Iterable[tuple[float, str]]) -> dict[str, MerkleTree]:
    """Add hashes, in the order of the chain, to the tree of their day. Days are those of UTC."""
    for at, one in receipts:
        trees.setdefault(time.strftime("%Y-%m-%d", time.gmtime(at)), MerkleTree()).add(one)
    return trees


def _write(path: Path, content: bytes, put: Any) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    put(temporary, path)


def _keep_first(temporary: Path, path: Path) -> None:
    """Another process may be faster: the first key holds."""
    try:
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)
