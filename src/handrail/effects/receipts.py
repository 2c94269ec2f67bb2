"""Receipts: what each call did, who allowed it and under which policy, so that no later change of it goes unnoticed.

Each receipt holds the hash of the one before. A batch of them is sealed: an Ed25519 signature over the last hash, the hash of the
seal before, and the Merkle root of each day that the batch is about. An export ends with a signed statement of how much there is.
All of it is checked with the public key alone: see `audit`.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.files import make_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from ..store.call_records import CallRecord
    from ..store.database import Database

FORMAT = "handrail-audit-1"
BATCH = 256
_KEY, PUBLIC_KEY, _HEAD = "key.pem", "public.pem", "head.json"
_NOT_BOUND = ("settings", "undone_by", "is_told")
Seal = dict[str, Any]


class Receipts:
    """The chain in `database`. The key is in `folder`, which no agent's process can read. `witness` is given each new seal."""

    def __init__(self, database: Database, folder: Path, witness: Callable[[Seal], None] | None = None) -> None:
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
            rows = connection.execute(
                "SELECT id, at, hash FROM receipts WHERE id > ? ORDER BY id", (sealed,)
            ).fetchall()
            if not rows:
                return
            first_day = rows[0]["at"] // 86_400 * 86_400
            of_days = connection.execute(
                "SELECT at, hash FROM receipts WHERE at >= ? ORDER BY id", (first_day,)
            ).fetchall()
            body = canonical(
                {
                    "from": sealed + 1,
                    "to": rows[-1]["id"],
                    "head": rows[-1]["hash"],
                    "days": day_roots((row["at"], row["hash"]) for row in of_days),
                    "at": time.time(),
                    "previous": digest(last["body"]) if last else "",
                }
            )
            seal = {"body": body, "signature": self._sign(body)}
            connection.execute("INSERT INTO seals (body, signature) VALUES (?, ?)", (body, seal["signature"]))
        _replace(self._folder / _HEAD, json.dumps(seal))
        if self._witness is not None:
            self._witness(seal)

    def export(self) -> Iterator[str]:
        """The lines of an export, which `audit.verify` checks."""
        self.seal()
        receipts = self._database.rows("SELECT body FROM receipts ORDER BY id")
        seals = self._database.rows("SELECT body, signature FROM seals ORDER BY id")
        yield json.dumps({"format": FORMAT, "public_key": self.public_key()})
        for row in receipts:
            yield json.dumps({"receipt": row["body"]})
        for row in seals:
            yield json.dumps({"seal": {"body": row["body"], "signature": row["signature"]}})
        head = digest(receipts[-1]["body"]) if receipts else ""
        end = canonical({"receipts": len(receipts), "seals": len(seals), "head": head, "at": time.time()})
        yield json.dumps({"end": {"body": end, "signature": self._sign(end)}})

    def known_head(self) -> Seal | None:
        """The last seal, as it was written beside the store when it was made."""
        try:
            found: Seal = json.loads((self._folder / _HEAD).read_text())
        except (OSError, ValueError):
            return None
        return found

    def public_key(self) -> str:
        from cryptography.hazmat.primitives import serialization as form  # heavy: only where something is signed

        raw = self._key().public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        return raw.decode()

    def _sign(self, text: str) -> str:
        return self._key().sign(text.encode()).hex()

    def _key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives import serialization as form  # heavy: only where something is signed
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = self._folder / _KEY
        if not path.exists():
            make_private(self._folder)
            made = Ed25519PrivateKey.generate()
            plain = (form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
            _create(path, made.private_bytes(*plain))
            public = self._key().public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
            _replace(self._folder / PUBLIC_KEY, public.decode())
        key = form.load_pem_private_key(path.read_bytes(), None)
        assert isinstance(key, Ed25519PrivateKey)
        return key


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def day_roots(receipts: Iterable[tuple[float, str]]) -> dict[str, str]:
    """The Merkle root of each day's hashes, in the order of the chain. Days are those of UTC."""
    days: dict[str, list[str]] = {}
    for at, one in receipts:
        days.setdefault(time.strftime("%Y-%m-%d", time.gmtime(at)), []).append(one)
    return {day: merkle_root(hashes) for day, hashes in days.items()}


def merkle_root(hashes: Sequence[str]) -> str:
    """Leaves and inner nodes are hashed with different beginnings, so that none passes for the other."""
    level = [hashlib.sha256(b"\0" + bytes.fromhex(one)).digest() for one in hashes]
    while len(level) > 1:
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        level = [hashlib.sha256(b"\1" + b"".join(pair)).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0].hex()


def _create(path: Path, content: bytes) -> None:
    """Another process may be faster: the first key holds."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        os.fsync(file.fileno())
    os.replace(temporary, path)
