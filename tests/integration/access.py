"""Owners, keys and certificates for tests of whole servers."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import pathlib
from typing import Any, NamedTuple

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

OWNERS: dict[str, dict[str, Any]] = {
    "alice": {"roles": ["predict", "sessions"]},
    "bob": {"roles": ["sessions"]},
    "reader": {"roles": []},
    "root": {"roles": ["admin"]},
}


def key_of(owner: str) -> str:
    """The key of an owner."""
    return f"{owner}-key-for-tests"


def bearer(owner: str) -> dict[str, str]:
    """The header with the key of an owner."""
    return {"authorization": f"Bearer {key_of(owner)}"}


def write_keys(path: pathlib.Path, owners: dict[str, dict[str, Any]] | None = None) -> str:
    """Write the file of these owners, each with its key; return the path."""
    entries = {
        name: {"keys": [hashlib.sha256(key_of(name).encode()).hexdigest()], **entry}
        for name, entry in (OWNERS if owners is None else owners).items()
    }
    path.write_text(yaml.safe_dump({"owners": entries}))
    return str(path)


_SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


class Certificate(NamedTuple):
    """Paths of a certificate and its key, in PEM."""

    certificate: str
    key: str


class Authority:
    """An authority that issues certificates for tests into a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"CA of {folder.name}")])
        ca = self._signed(self._name, self._key.public_key(), is_ca=True, names=[])
        self.path = folder / "ca.pem"
        self.path.write_bytes(ca.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, common_name: str = "", ip: str = "") -> Certificate:
        """Issue a certificate with a DNS name, a common name and an address."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name or name)])
        names: list[x509.GeneralName] = [x509.DNSName(name)]
        if ip:
            names.append(x509.IPAddress(ipaddress.ip_address(ip)))
        signed = self._signed(subject, key.public_key(), is_ca=False, names=names)
        made = Certificate(str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key"))
        pathlib.Path(made.certificate).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        pathlib.Path(made.key).write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return made

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        is_ca: bool,
        names: list[x509.GeneralName],
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
        )
        # Python 3.13 requires what follows.
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        own = x509.SubjectKeyIdentifier.from_public_key(key)
        builder = builder.add_extension(own, critical=False)
        if is_ca:
            builder = builder.add_extension(_SIGNS, critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())
