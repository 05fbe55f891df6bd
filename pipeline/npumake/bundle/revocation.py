"""Certificate revocation lists, which the user keeps beside the vendor certificate.

A list is validated by RFC 5280, 5 and 6.3: the vendor signed it and may do so, its dates include
the current time, and it has no unknown critical extension. Delta lists and indirect lists are
refused. An invalid list refuses the model too, so that an old list cannot switch revocation off.
"""

from __future__ import annotations

from datetime import datetime

from cryptography import x509

from npumake.bundle.certificates import (
    HASHES,
    MALFORMED,
    PublicKey,
    called,
    extension_of,
)
from npumake.errors import GraphError, ProjectError

MAX_BYTES = 1 << 20  # bytes of a list

RevocationList = x509.CertificateRevocationList


def revocation_list_from(data: bytes, where: str) -> RevocationList:
    """A revocation list, PEM or DER. Raises ProjectError for other data."""
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        pem = b"-----BEGIN" in data
        return (x509.load_pem_x509_crl if pem else x509.load_der_x509_crl)(data)
    except MALFORMED as error:
        raise ProjectError(f"not a list of revoked certificates: {error}", where) from None


def refuse_revoked(
    model: x509.Certificate,
    vendor: x509.Certificate,
    revoked: RevocationList,
    at: datetime,
    where: str,
) -> None:
    """Raises GraphError, with the reason, if the vendor revoked `model` or the list is invalid."""
    try:
        reason = _objection(vendor, revoked, at) or _revocation(model, revoked)
    except MALFORMED as error:
        reason = f"the list of revoked certificates is malformed: {error}"
    if reason:
        raise GraphError(f"not a model of this vendor's: {reason}", where)


def _objection(vendor: x509.Certificate, revoked: RevocationList, at: datetime) -> str:
    """Why the list is invalid; empty if it is valid."""
    begins, ends = revoked.last_update_utc, revoked.next_update_utc
    if not _signed(vendor, revoked):
        return f"the list of revoked certificates is not of `{called(vendor.subject)}`"
    usage = extension_of(vendor, x509.KeyUsage)
    if usage is not None and not usage.crl_sign:
        return f"`{called(vendor.subject)}` may not revoke certificates"
    if at < begins:
        return f"the list of revoked certificates is not valid before {begins:%Y-%m-%d}"
    if ends is None or at > ends:
        when = "and has no date" if ends is None else f"since {ends:%Y-%m-%d}"
        return f"the list of revoked certificates is out of date {when}"
    unknown = [
        extension.oid.dotted_string for extension in revoked.extensions if extension.critical
    ]
    if unknown:
        return f"the list of revoked certificates has a critical extension, {unknown[0]}"
    return ""


def _signed(vendor: x509.Certificate, revoked: RevocationList) -> bool:
    hashed, key = revoked.signature_hash_algorithm, vendor.public_key()
    if revoked.issuer != vendor.subject or not isinstance(key, PublicKey):
        return False
    return (hashed is None or hashed.name in HASHES) and revoked.is_signature_valid(key)


def _revocation(model: x509.Certificate, revoked: RevocationList) -> str:
    entry = revoked.get_revoked_certificate_by_serial_number(model.serial_number)
    if entry is None:
        return ""
    reasons = [
        extension.value
        for extension in entry.extensions
        if isinstance(extension.value, x509.CRLReason)
    ]
    why = f" ({reasons[0].reason.name.replace('_', ' ')})" if reasons else ""
    return f"the certificate of its signer was revoked on {entry.revocation_date_utc:%Y-%m-%d}{why}"
