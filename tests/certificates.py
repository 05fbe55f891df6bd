"""Real certificates and keys, made where a test runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from npumake.bundle.certificates import PrivateKey
from npumake.bundle.secure import Keys, Signer

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
ENCRYPTION = bytes(range(32))


@dataclass(frozen=True)
class Identity:
    certificate: x509.Certificate
    key: PrivateKey


@cache
def key(kind: str) -> PrivateKey:
    """One per kind: `rsa2048`, `rsa1024`, `p256`, `ed25519`, or any other word for another p256."""
    if kind.startswith("rsa"):
        return rsa.generate_private_key(public_exponent=65537, key_size=int(kind[3:]))
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1())


def name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def issued(
    common: str,
    by: Identity | None = None,
    kind: str = "p256",
    days: tuple[int, int] = (-1, 30),
    more: tuple[tuple[x509.ExtensionType, bool], ...] = (),
) -> Identity:
    """A certificate for the key `kind`, by itself or by another; valid from one day to another."""
    own = key(kind)
    made = (
        x509.CertificateBuilder(extensions=[x509.Extension(e.oid, c, e) for e, c in more])
        .subject_name(name(common))
        .issuer_name(by.certificate.subject if by else name(common))
        .public_key(own.public_key())
        .serial_number(7)
        .not_valid_before(NOW + days[0] * DAY)
        .not_valid_after(NOW + days[1] * DAY)
    )
    signing = by.key if by else own
    hashed = None if isinstance(signing, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return Identity(made.sign(signing, hashed), own)


def usage(**said: bool) -> x509.KeyUsage:
    every = (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
        *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    )
    return x509.KeyUsage(**{one: said.get(one, False) for one in every})


AUTHORITY = ((x509.BasicConstraints(ca=True, path_length=0), True),)
SIGNING = (
    (x509.BasicConstraints(ca=False, path_length=None), True),
    (usage(digital_signature=True), True),
    (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False),
)


@cache
def vendor(common: str = "Vendor", kind: str = "authority") -> Identity:
    return issued(common, kind=kind, more=AUTHORITY)


@cache
def model(kind: str = "p256") -> Identity:
    return issued("Model signer", vendor(), kind, more=SIGNING)


def signer(of: Identity) -> Signer:
    return Signer(of.certificate, of.key)


def keys(encrypted: bool = True) -> Keys:
    return Keys(vendor().certificate, ENCRYPTION if encrypted else None)


def pem(given: x509.Certificate | PrivateKey) -> bytes:
    encoding = serialization.Encoding.PEM
    if isinstance(given, x509.Certificate):
        return given.public_bytes(encoding)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return given.private_bytes(encoding, form, plain)


def written(folder: Path) -> Path:
    """The four files and SyNAP's security file that names them."""
    files = {
        "encryption_key": ENCRYPTION.hex().encode() + b"\n",
        "signature_key": pem(model().key),
        "model_certificate": pem(model().certificate),
        "vendor_certificate": pem(vendor().certificate),
    }
    for file, data in files.items():
        (folder / f"{file}.pem").write_bytes(data)
    security = folder / "security.yaml"
    security.write_text("".join(f"{file}: {file}.pem\n" for file in files))
    return security
