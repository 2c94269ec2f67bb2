"""A certificate authority that exists in memory only, and is good for a task's hosts with keys and for nothing else."""

import base64
import datetime
import hashlib
import os
import re
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..net.url_guard import HostPattern, literal_address

_DAY = datetime.timedelta(days=1)
_SYSTEM = (
    *("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"),
    *("/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem"),
)
_NAMED = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_PEM = serialization.Encoding.PEM
_USES = "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign"


class Authority:
    """Signs certificates of `hosts`. Its key is never written anywhere."""

    def __init__(self, hosts: Sequence[HostPattern]) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        allowed: list[x509.GeneralName] = [
            x509.DNSName(each.name.removeprefix("*.")) if each.network is None else x509.IPAddress(each.network)
            for each in hosts
        ]
        self._name = "Handrail, for one task"
        only = x509.NameConstraints(allowed, None)
        own = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self.pem = self._signed(self._name, self._key, only, own, is_authority=True)
        self._contexts: dict[str, ssl.SSLContext] = {}

    def bundle(self) -> bytes:
        """Its certificate, and those of the authorities that programs trust here anyway."""
        places = [os.environ.get(name, "") for name in _NAMED]
        places.append(next((place for place in _SYSTEM if os.path.isfile(place)), ""))
        found = [Path(place).read_bytes() for place in dict.fromkeys(places) if place and os.access(place, os.R_OK)]
        return b"\n".join([self.pem, *found])

    def context(self, host: str) -> ssl.SSLContext:
        """To be the host for the task's programs."""
        if host not in self._contexts:
            key, address = ec.generate_private_key(ec.SECP256R1()), literal_address(host)
            names = x509.SubjectAlternativeName([x509.DNSName(host) if address is None else x509.IPAddress(address)])
            uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
            signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            pem = self._signed(host[:64], key, names, uses, signer)
            own = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            context = self._contexts[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.set_alpn_protocols(["http/1.1"])
            # Through a file without a name: the ssl module takes nothing but files, and the key must not lie in one.
            with open(os.memfd_create("handrail-tls", os.MFD_CLOEXEC), "wb", 0) as file:
                file.write(pem + own)
                context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        return self._contexts[host]

    def _signed(
        self, name: str, key: ec.EllipticCurvePrivateKey, *more: x509.ExtensionType, is_authority: bool = False
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        named, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, self._name))
        builder = x509.CertificateBuilder(issuer, named, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - _DAY).not_valid_after(now + 365 * _DAY)
        uses = {use: is_authority is (use in ("key_cert_sign", "crl_sign")) for use in _USES.split()}
        uses |= dict.fromkeys(_USES.split()[1:5], False)
        usage = x509.KeyUsage(**uses, encipher_only=False, decipher_only=False)
        basic = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
        for extension in (basic, usage, *more):
            is_critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage | x509.NameConstraints)
            builder = builder.add_extension(extension, critical=is_critical)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM)


def java_store(bundle: bytes) -> bytes:
    """The certificates of a bundle in a file of the type JKS, which every Java reads without a password."""
    texts = re.findall(rb"-----BEGIN CERTIFICATE-----(.+?)-----END", bundle, re.DOTALL)
    content = struct.pack(">III", 0xFEEDFEED, 2, len(texts))
    for number, text in enumerate(texts):
        der, alias = base64.b64decode(text), b"%05d" % number
        content += struct.pack(">IH5sQH5sI", 2, 5, alias, 0, 5, b"X.509", len(der)) + der
    begin = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"  # the usual password, for programs that give one
    return content + hashlib.sha1(begin + content, usedforsecurity=False).digest()
