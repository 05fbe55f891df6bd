"""Model signatures: an X.509 chain of two certificates.

    vendor certificate   a CA, kept by the user who opens models: the trust anchor
    model certificate    issued by the vendor, stored in the file; its key signs models

The chain is validated by RFC 5280, 6.1: issuer, signature, dates, basic constraints and key usage.
Other critical extensions are refused. An extended key usage must include code signing, so that
the certificate of a web server cannot sign models. Signatures are deterministic: RSA PKCS #1 v1.5
or ECDSA of RFC 6979, both with SHA-256, or Ed25519.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from npumake.errors import GraphError, ProjectError

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

T = TypeVar("T", bound=x509.ExtensionType)

MAX_BYTES = 1 << 14  # bytes of a certificate or key
RSA_BITS = (2048, 8192)
CURVES = ("secp256r1", "secp384r1", "secp521r1")
HASHES = ("sha256", "sha384", "sha512")
READ = (x509.BasicConstraints.oid, x509.KeyUsage.oid, x509.ExtendedKeyUsage.oid)

# Exceptions of the parser for a malformed certificate, at once or when a field is read.
MALFORMED = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


def certificate_from(data: bytes, where: str) -> x509.Certificate:
    """A certificate, PEM or DER. Raises ProjectError for other data and for a weak key."""
    try:
        _refuse_large(data)
        pem = b"-----BEGIN" in data
        certificate = (x509.load_pem_x509_certificate if pem else x509.load_der_x509_certificate)(
            data
        )
        _refuse_weak(certificate.public_key())
        return certificate
    except MALFORMED as error:
        raise ProjectError(f"not a certificate that can be used: {error}", where) from None


def private_key_from(data: bytes, where: str) -> PrivateKey:
    """A private key, PEM without a password. Raises ProjectError; its text reveals no secret."""
    try:
        _refuse_large(data)
        key = serialization.load_pem_private_key(data, password=None)
    except TypeError:
        hint = "openssl pkey -in FILE -out WITHOUT_PASSWORD"
        raise ProjectError("the signature key is behind a password", where, hint) from None
    except (ValueError, UnsupportedAlgorithm):
        raise ProjectError("not a private key in PEM", where) from None
    if not isinstance(key, PrivateKey):
        raise ProjectError("the signature key is not of RSA, ECDSA or Ed25519", where)
    return key


def refuse_unissued(
    model: x509.Certificate, vendor: x509.Certificate, at: datetime, where: str
) -> None:
    """Raises GraphError, with the reason, unless `vendor` allows `model` to sign at this time."""
    try:
        reason = _objection(model, vendor, at)
    except MALFORMED as error:
        reason = f"a certificate is malformed: {error}"
    if reason:
        raise GraphError(f"not a model of this vendor's: {reason}", where)


def signature(key: PrivateKey, message: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(message, padding.PKCS1v15(), hashes.SHA256())
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(message, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
    return key.sign(message)


def is_signed(by: x509.Certificate, signed: bytes, message: bytes) -> bool:
    """Whether the key of the certificate made the signature `signed` of the message."""
    key = by.public_key()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signed, message, padding.PKCS1v15(), hashes.SHA256())
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signed, message, ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signed, message)
        else:
            return False
    except InvalidSignature:
        return False
    return True


def called(name: x509.Name) -> str:
    """CN=Model signer,O=Vendor."""
    return name.rfc4514_string()


def _objection(model: x509.Certificate, vendor: x509.Certificate, at: datetime) -> str:
    """Why the chain is invalid; empty if it is valid."""
    for role, certificate in (("vendor", vendor), ("model", model)):
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if at < begins:
            return f"the {role} certificate is not valid before {begins:%Y-%m-%d}"
        if at > ends:
            return f"the {role} certificate expired on {ends:%Y-%m-%d}"
        for extension in certificate.extensions:
            if extension.critical and extension.oid not in READ:
                name = extension.oid.dotted_string
                return f"the {role} certificate has a critical extension not known here, {name}"
    if not _issued(model, vendor):
        owner = f"`{called(model.subject)}`, whose certificate `{called(vendor.subject)}`"
        return f"it is signed by {owner} did not issue"
    if not _is_authority(vendor):
        return f"`{called(vendor.subject)}` may not issue certificates"
    return "" if _may_sign(model) else f"`{called(model.subject)}` may not sign models"


def _issued(model: x509.Certificate, vendor: x509.Certificate) -> bool:
    hashed = model.signature_hash_algorithm
    if hashed is not None and hashed.name not in HASHES:
        return False
    try:
        model.verify_directly_issued_by(vendor)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _is_authority(vendor: x509.Certificate) -> bool:
    constraints = extension_of(vendor, x509.BasicConstraints)
    usage = extension_of(vendor, x509.KeyUsage)
    return constraints is not None and constraints.ca and (usage is None or usage.key_cert_sign)


def _may_sign(model: x509.Certificate) -> bool:
    constraints = extension_of(model, x509.BasicConstraints)
    usage, purposes = extension_of(model, x509.KeyUsage), extension_of(model, x509.ExtendedKeyUsage)
    return (
        (constraints is None or not constraints.ca)
        and (usage is None or usage.digital_signature)
        and (purposes is None or ExtendedKeyUsageOID.CODE_SIGNING in purposes)
    )


def extension_of(certificate: x509.Certificate, kind: type[T]) -> T | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _refuse_large(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")


def _refuse_weak(key: object) -> None:
    if isinstance(key, rsa.RSAPublicKey):
        if not RSA_BITS[0] <= key.key_size <= RSA_BITS[1]:
            raise ValueError(f"an RSA key of {key.key_size} bits")
    elif isinstance(key, ec.EllipticCurvePublicKey):
        if key.curve.name not in CURVES:
            raise ValueError(f"a key on the curve {key.curve.name}")
    elif not isinstance(key, ed25519.Ed25519PublicKey):
        raise ValueError("its key is not of RSA, ECDSA or Ed25519")
