"""Timestamps (RFC 3161): an authority signs the hash of a text and the time, and learns nothing else of it."""

import base64
import json
import urllib.request
from collections.abc import Iterable, Iterator, Mapping

from ..core.availability import missing

# How the address of an authority begins in `effects.witness`; an http address follows.
PREFIX = "tsa+"
_QUERY = {"Content-Type": "application/timestamp-query"}
_MAX_BYTES = 1 << 20
# Clocks differ. A seal that was made much earlier than its timestamp says may belong to another history.
_MAX_DELAY_SECONDS = 3600.0


def timestamp(address: str, text: str, *, timeout: float) -> str:
    """What the authority answers about a text, in base64. Raises OSError if it does not answer, or not as asked."""
    if (lack := missing("tsa", "rfc3161_client")) is not None:
        raise OSError(f"{lack.reason}; {lack.fix}")
    from rfc3161_client import TimestampRequestBuilder, decode_timestamp_response  # an extra

    asked = TimestampRequestBuilder().data(text.encode()).build()
    request = urllib.request.Request(address.removeprefix(PREFIX), asked.as_bytes(), _QUERY)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        data = answer.read(_MAX_BYTES)
    try:
        got = decode_timestamp_response(data)
        if got.status != 0:
            raise OSError(f"the timestamp authority refused: {', '.join(got.status_string) or got.status}")
        found = got.tst_info
    except ValueError as error:
        raise OSError(f"the timestamp authority's answer cannot be read: {error}") from None
    if (found.nonce, found.message_imprint.message) != (asked.nonce, asked.message_imprint.message):
        raise OSError("the timestamp authority answered about something else")
    return base64.b64encode(data).decode()


def check(seals: Mapping[str, str], timestamps: Iterable[tuple[str, str]], authority: bytes) -> Iterator[str]:
    """What is wrong with the timestamps of seals. `seals` are their texts by hash, in order; a timestamp is the hash of a seal
    and what the authority answered about it; `authority` are the certificates to trust, in PEM form."""
    if (lack := missing("tsa", "rfc3161_client")) is not None:
        raise ValueError(f"{lack.reason}; {lack.fix}")
    from cryptography.x509 import load_pem_x509_certificates
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    try:
        verifier = VerifierBuilder(roots=load_pem_x509_certificates(authority)).build()
    except ValueError:
        raise ValueError("the file for --tsa holds no certificates in PEM form") from None
    numbers = {hashed: number for number, hashed in enumerate(seals, 1)}
    last = 0
    for hashed, answer in timestamps:
        if hashed not in seals:
            yield "a seal that has a timestamp is missing"
            continue
        try:
            got = decode_timestamp_response(base64.b64decode(answer, validate=True))
            verifier.verify_message(got, seals[hashed].encode())
        except (VerificationError, ValueError) as error:
            yield f"the timestamp of seal {numbers[hashed]} does not hold: {error}"
            continue
        delay = got.tst_info.gen_time.timestamp() - float(json.loads(seals[hashed])["at"])
        if abs(delay) > _MAX_DELAY_SECONDS:
            yield f"the time in seal {numbers[hashed]} is {abs(delay) / 3600:,.1f} hours from its timestamp"
        last = max(last, numbers[hashed])
    if last < len(seals):  # one for which the authority was not reached is bound by the next
        yield f"no timestamp covers the seals after {last}: the authority was not reached, or was named later"
