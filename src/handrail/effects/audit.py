"""Check an export of receipts with nothing but the public key: any change, removal, reorder or truncation is found."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from . import timestamps
from .receipts import FORMAT, MerkleTree, Seal, digest, grow

_ORDER = ("format", "receipt", "seal", "timestamp", "end")  # of the lines, by their first key


class Verified(NamedTuple):
    """`problems` is empty if everything is as it was signed."""

    receipts: int
    seals: int
    problems: list[str]


class BadExport(ValueError):
    """It is no export, or no key."""


def verify(
    lines: Iterable[str], public_key: str, *, witnessed: Iterable[Seal] = (), authority: bytes = b""
) -> Verified:
    """`witnessed` are seals that somebody else has kept: each must be there. `authority` are the certificates of the timestamp
    authority, which must have stamped the last seal. Raises BadExport."""
    audit = _Audit(public_key)
    problems = audit.problems
    for number, line in enumerate(lines, 1):
        try:
            audit.take(line)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            if number == 1:
                raise BadExport("this is no export of receipts; `handrail audit export` makes one") from None
            problems.append(f"line {number} cannot be read: {error}")
    try:
        audit.check()
    except (ValueError, TypeError, KeyError) as error:
        problems.append(f"something signed is not in the right form: {error}")
    known = {seal["body"] for seal in audit.seals}
    for seal in witnessed:
        if not audit.is_signed(seal):
            problems.append("a witnessed seal is not signed with this key")
        elif seal["body"] not in known:
            problems.append(f"a seal that was witnessed is missing: {seal['body'][:200]}")
    if authority:
        seals = {digest(seal["body"]): seal["body"] for seal in audit.seals}
        problems += timestamps.check(seals, audit.timestamps, authority)
    return Verified(len(audit.receipts), len(audit.seals), problems)


class _Audit:
    def __init__(self, public_key: str) -> None:
        try:
            key = load_pem_public_key(public_key.encode())
        except ValueError:
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise BadExport("this is no Ed25519 public key in PEM form")
        self._key, self._place = key, -1  # the place of the last line
        self._text = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
        self.receipts: list[str] = []
        self.seals: list[Seal] = []
        self.ends: list[Seal] = []
        self.timestamps: list[tuple[str, str]] = []
        self.problems: list[str] = []

    def take(self, text: str) -> None:
        line = json.loads(text)
        (kind,) = list(line)[:1]
        before, self._place = self._place, _ORDER.index(kind)
        if self._place < before or (before < 0) != (kind == "format"):
            self.problems.append(f"a line ({kind}) is not where it was exported")
        whole: dict[str, Any] = {"format": FORMAT, "public_key": self._text}
        if kind == "receipt":
            whole = {kind: str(line[kind])}
            self.receipts.append(whole[kind])
        elif kind == "timestamp":
            whole = {kind: {name: str(line[kind][name]) for name in ("seal", "response")}}
            self.timestamps.append((whole[kind]["seal"], whole[kind]["response"]))
        elif kind != "format":
            signature = bytes.fromhex(line[kind]["signature"]).hex()
            whole = {kind: {"body": str(line[kind]["body"]), "signature": signature}}
            (self.seals if kind == "seal" else self.ends).append(whole[kind])
        if json.dumps(whole) != text.rstrip("\r\n"):
            self.problems.append(f"a line ({kind}) was changed, or the export was made with another key")

    def check(self) -> None:
        hashes, previous = [], ""
        for number, text in enumerate(self.receipts, 1):
            if json.loads(text)["previous"] != previous:
                why = "one was changed, removed or moved"
                self.problems.append(f"receipt {number} does not follow the one before: {why}")
            previous = digest(text)
            hashes.append(previous)
        self._check_seals(hashes)
        if len(self.ends) != 1 or not self.is_signed(self.ends[0]):
            self.problems.append("the signed end is missing: the export was cut off")
            return
        end = json.loads(self.ends[0]["body"])
        if (end["receipts"], end["seals"], end["head"]) != (len(hashes), len(self.seals), previous):
            there = f"{end['receipts']} receipts and {end['seals']} seals"
            self.problems.append(f"there were {there} when this was exported")

    def _check_seals(self, hashes: list[str]) -> None:
        times = [float(json.loads(text)["at"]) for text in self.receipts]
        previous, sealed, taken = "", 0, 0
        trees: dict[str, MerkleTree] = {}
        for number, seal in enumerate(self.seals, 1):
            if not self.is_signed(seal):
                self.problems.append(f"seal {number} is not signed with this key")
            body = json.loads(seal["body"])
            if body["previous"] != previous or body["from"] != sealed + 1:
                self.problems.append(f"seal {number} does not follow the one before it")
            previous, sealed = digest(seal["body"]), int(body["to"])
            if sealed > len(hashes) or hashes[sealed - 1] != body["head"]:
                self.problems.append(f"seal {number}: receipt {sealed} is missing, or is not the one that was signed")
                continue
            grow(trees, zip(times[taken:sealed], hashes[taken:sealed], strict=True))
            taken = max(taken, sealed)
            if any(day not in trees or trees[day].root() != root for day, root in body["days"].items()):
                self.problems.append(f"seal {number}: the receipts of its days are not those that were signed")
        if sealed < len(hashes):
            self.problems.append(f"receipts {sealed + 1} to {len(hashes)} are not signed")

    def is_signed(self, seal: Seal) -> bool:
        try:
            self._key.verify(bytes.fromhex(seal["signature"]), seal["body"].encode())
        except (InvalidSignature, ValueError, KeyError, TypeError):
            return False
        return True
