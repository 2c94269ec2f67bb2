"""Check an export of receipts with nothing but the public key: any change, removal, reorder or truncation is found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from .receipts import FORMAT, Seal, day_roots, digest


class Verified(NamedTuple):
    """`problems` is empty if everything is as it was signed."""

    receipts: int
    seals: int
    problems: list[str]


class BadExport(ValueError):
    """It is no export, or no key."""


def verify(lines: Iterable[str], public_key: str, *, witnessed: Iterable[Seal] = ()) -> Verified:
    """`witnessed` are seals that somebody else has kept: each must be there. Raises BadExport."""
    key = _read_key(public_key)
    receipts: list[str] = []
    seals: list[Seal] = []
    ends: list[Seal] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            kind, value = next(iter(json.loads(line).items()))
            _take(kind, value, (receipts, seals, ends))
        except (ValueError, TypeError, StopIteration, AttributeError, KeyError) as error:
            if number == 1:
                raise BadExport("this is no export of receipts; `handrail audit export` makes one") from None
            problems.append(f"line {number} cannot be read: {error}")
    try:
        hashes = _check_chain(receipts, problems)
        _check_seals(seals, receipts, hashes, key, problems)
        _check_end(ends, hashes, seals, key, problems)
    except (ValueError, TypeError, KeyError) as error:
        problems.append(f"something signed is not in the right form: {error}")
    known = {seal["body"] for seal in seals}
    for seal in witnessed:
        if not _is_signed(seal, key):
            problems.append("a witnessed seal is not signed with this key")
        elif seal["body"] not in known:
            problems.append(f"a seal that was witnessed is missing: {seal['body'][:200]}")
    return Verified(len(receipts), len(seals), problems)


def _take(kind: str, value: Any, parts: tuple[list[str], list[Seal], list[Seal]]) -> None:
    receipts, seals, ends = parts
    if kind == "format":
        if value != FORMAT:
            raise ValueError(f"unknown format {value!r}")
    elif kind == "receipt":
        receipts.append(str(value))
    elif kind in ("seal", "end"):
        (seals if kind == "seal" else ends).append({"body": str(value["body"]), "signature": str(value["signature"])})
    else:
        raise ValueError(f"unknown kind {kind!r}")


def _check_chain(receipts: list[str], problems: list[str]) -> list[str]:
    previous, hashes = "", []
    for number, text in enumerate(receipts, 1):
        if json.loads(text)["previous"] != previous:
            problems.append(
                f"receipt {number} does not follow the one before it: something was changed, removed or moved"
            )
        previous = digest(text)
        hashes.append(previous)
    return hashes


def _check_seals(
    seals: list[Seal], receipts: list[str], hashes: list[str], key: Ed25519PublicKey, problems: list[str]
) -> None:
    times = [float(json.loads(text)["at"]) for text in receipts]
    previous, sealed = "", 0
    for number, seal in enumerate(seals, 1):
        if not _is_signed(seal, key):
            problems.append(f"seal {number} is not signed with this key")
        body = json.loads(seal["body"])
        if body["previous"] != previous or body["from"] != sealed + 1:
            problems.append(f"seal {number} does not follow the one before it")
        previous, sealed = digest(seal["body"]), int(body["to"])
        if sealed > len(hashes) or hashes[sealed - 1] != body["head"]:
            problems.append(f"seal {number}: receipt {sealed} is missing, or is not the one that was signed")
            continue
        roots = day_roots(zip(times[:sealed], hashes[:sealed], strict=True))
        for day, root in body["days"].items():
            if roots.get(day) != root:
                problems.append(f"seal {number}: the receipts of {day} are not those that were signed")
    if sealed < len(hashes):
        problems.append(f"receipts {sealed + 1} to {len(hashes)} are not signed")


def _check_end(
    ends: list[Seal], hashes: list[str], seals: list[Seal], key: Ed25519PublicKey, problems: list[str]
) -> None:
    if len(ends) != 1 or not _is_signed(ends[0], key):
        problems.append("the signed end is missing: the export was cut off")
        return
    body = json.loads(ends[0]["body"])
    if (body["receipts"], body["seals"], body["head"]) != (len(hashes), len(seals), hashes[-1] if hashes else ""):
        problems.append(f"there were {body['receipts']} receipts and {body['seals']} seals when this was exported")


def _is_signed(seal: Seal, key: Ed25519PublicKey) -> bool:
    try:
        key.verify(bytes.fromhex(seal["signature"]), seal["body"].encode())
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return False
    return True


def _read_key(text: str) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(text.encode())
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise BadExport("this is no Ed25519 public key in PEM form")
    return key
