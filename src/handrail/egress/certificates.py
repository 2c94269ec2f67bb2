"""A certificate authority that exists in memory only, and is good for a task's hosts with keys and for nothing else."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ..net.url_guard import literal_address
from .hosts import HostPattern

_DAYS = 365
_EARLIER = datetime.timedelta(days=1)  # clocks differ
_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
)
_NAMED = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


class Authority:
    """Signs certificates of `hosts`. Its key is never written anywhere."""

    def __init__(self, hosts: Sequence[HostPattern]) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Handrail, for one task")])
        allowed: list[x509.GeneralName] = [
            x509.DNSName(each.name.removeprefix("*.")) if each.network is None else x509.IPAddress(each.network)
            for each in hosts
        ]
        self._certificate = (
            _builder(name, name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.NameConstraints(allowed, None), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._contexts: dict[str, ssl.SSLContext] = {}

    @cached_property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def bundle(self) -> bytes:
        """Its certificate, and those of the authorities that programs trust here anyway."""
        places = [os.environ.get(name, "") for name in _NAMED]
        places.append(next((place for place in _SYSTEM if os.path.isfile(place)), ""))
        found = [Path(place).read_bytes() for place in dict.fromkeys(places) if place and os.access(place, os.R_OK)]
        return b"\n".join([self.pem, *found])

    def context(self, host: str) -> ssl.SSLContext:
        """To be the host for the task's programs."""
        found = self._contexts.get(host)
        if found is None:
            found = self._contexts[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            found.set_alpn_protocols(["http/1.1"])
            _load(found, self._signed(host))
        return found

    def _signed(self, host: str) -> bytes:
        key = ec.generate_private_key(ec.SECP256R1())
        address = literal_address(host)
        name = x509.DNSName(host) if address is None else x509.IPAddress(ipaddress.ip_address(address))
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host[:64])])
        certificate = (
            _builder(subject, self._certificate.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        own = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return certificate.public_bytes(serialization.Encoding.PEM) + own


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - _EARLIER)
    return builder.not_valid_after(now + datetime.timedelta(days=_DAYS))


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    others = (
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        **dict.fromkeys(others, False),
    )


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Through a file without a name: the ssl module takes nothing but files, and the key must not lie in one."""
    fd = os.memfd_create("handrail-tls", os.MFD_CLOEXEC)
    try:
        os.write(fd, pem)
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
