"""A signer whom the vendor revoked signs nothing, and no list that does not count lets him."""

from __future__ import annotations

import dataclasses
import random
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from certificates import (
    AUTHORITY,
    DAY,
    NOW,
    SIGNING,
    Identity,
    issued,
    keys,
    model,
    signer,
    usage,
    vendor,
)
from npumake.bundle.archive import Bundle
from npumake.bundle.program import Program
from npumake.bundle.revocation import revocation_list_from
from npumake.bundle.secure import Keys, opened, secured
from npumake.errors import GraphError, ProjectError

BUNDLE = Bundle("any", Program((), (), {}, ()), {}).to_bytes()
SECURE = secured(BUNDLE, "m", signer(model()), keys())
SERIAL = model().certificate.serial_number
KEY_LOST = x509.CRLReason(x509.ReasonFlags.key_compromise)


def revoking(
    *serials: int,
    by: Identity | None = None,
    days: tuple[int, int] = (-1, 7),
    reason: x509.ExtensionType | None = None,
    critical: x509.ExtensionType | None = None,
) -> x509.CertificateRevocationList:
    """The vendor's list of these numbers, valid from one day to another."""
    by = by or vendor()
    made = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(by.certificate.subject)
        .last_update(NOW + days[0] * DAY)
        .next_update(NOW + days[1] * DAY)
    )
    for serial in serials:
        one = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(NOW - DAY)
        made = made.add_revoked_certificate(
            (one.add_extension(reason, False) if reason else one).build()
        )
    if critical:
        made = made.add_extension(critical, True)
    hashed = None if isinstance(by.key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return made.sign(by.key, hashed)


def refusal(revoked: x509.CertificateRevocationList, **more: object) -> str:
    with pytest.raises(GraphError) as caught:
        opened(SECURE, dataclasses.replace(keys(), revoked=revoked, **more), "m")
    return caught.value.what


def test_a_revoked_signer_is_refused_with_the_day_and_the_reason():
    assert f"was revoked on {NOW - DAY:%Y-%m-%d}" in refusal(revoking(SERIAL))
    assert "(key compromise)" in refusal(revoking(3, SERIAL, reason=KEY_LOST))


@pytest.mark.parametrize("serials", [(), (SERIAL + 1,), tuple(range(100, 600))])
def test_whom_the_list_does_not_name_signs(serials):
    found = opened(SECURE, dataclasses.replace(keys(), revoked=revoking(*serials)), "m")
    assert found.to_bytes() == BUNDLE


STRANGER = issued("Stranger", kind="stranger", more=AUTHORITY)
TWIN = issued("Vendor", kind="twin", more=AUTHORITY)
DELTA = x509.DeltaCRLIndicator(1)


@pytest.mark.parametrize(
    ("revoked", "what"),
    [
        (lambda: revoking(by=STRANGER), "is not of `CN=Vendor`"),
        (lambda: revoking(by=TWIN), "is not of `CN=Vendor`"),
        (lambda: revoking(days=(1, 7)), "is not valid before"),
        (lambda: revoking(days=(-7, -1)), "is out of date since"),
        (lambda: revoking(critical=DELTA), "has a critical extension, 2.5.29.27"),
    ],
    ids=["another vendor", "one of the same name", "of the future", "out of date", "changes only"],
)
def test_a_list_that_does_not_count_refuses_the_model(revoked, what):
    assert what in refusal(revoked())


def test_the_day_that_is_asked_about_decides():
    old = revoking(days=(-7, -1))
    at = NOW - timedelta(hours=30)
    assert "out of date" in refusal(old)
    vendor_then = issued("Vendor", kind="authority", days=(-9, 9), more=AUTHORITY)
    signer_then = issued("Model signer", vendor_then, days=(-9, 9), more=SIGNING)
    given = Keys(vendor_then.certificate, at=at)
    data = secured(BUNDLE, "m", signer(signer_then), given)
    assert opened(data, dataclasses.replace(given, revoked=old), "m").to_bytes() == BUNDLE


def test_a_vendor_who_may_not_revoke_does_not():
    limited = issued("Vendor", kind="l", more=(*AUTHORITY, (usage(key_cert_sign=True), True)))
    signing = issued("Model signer", limited, more=SIGNING)
    given = Keys(limited.certificate)
    data = secured(BUNDLE, "m", signer(signing), given)
    with pytest.raises(GraphError, match="may not revoke certificates"):
        opened(data, dataclasses.replace(given, revoked=revoking(by=limited)), "m")


def test_every_changed_byte_of_a_list_is_noticed():
    data = revoking(SERIAL, reason=KEY_LOST).public_bytes(serialization.Encoding.DER)
    rng = random.Random(0)
    for at in rng.sample(range(len(data)), 100):
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        try:
            revoked = revocation_list_from(bytes(changed), "crl")
        except ProjectError:
            continue
        assert refusal(revoked)


@pytest.mark.parametrize("data", [b"", b"hello", b"-----BEGIN X509 CRL-----", bytes(2 << 20)])
def test_what_is_no_list_is_refused(data):
    with pytest.raises(ProjectError, match="not a list of revoked certificates"):
        revocation_list_from(data, "crl")


def test_a_list_is_read_from_pem_and_der(tmp_path):
    for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER):
        (tmp_path / "crl").write_bytes(revoking(SERIAL).public_bytes(encoding))
        certificate = vendor().certificate.public_bytes(encoding)
        (tmp_path / "vendor").write_bytes(certificate)
        given = Keys.read(tmp_path / "vendor", None, tmp_path / "crl")
        with pytest.raises(GraphError, match="was revoked"):
            opened(SECURE, given, "m")
