"""A secure model opens for whom it is meant, and for nobody else, who is told why."""

from __future__ import annotations

import dataclasses
import io
import random
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

import certificates as made
from certificates import (
    AUTHORITY,
    ENCRYPTION,
    NOW,
    SIGNING,
    issued,
    keys,
    model,
    pem,
    signer,
    usage,
    vendor,
)
from npumake import digest
from npumake.bundle.archive import Bundle, zipped
from npumake.bundle.certificates import certificate_from, private_key_from, signature
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.bundle.secure import MODEL, SIGNATURE, SIGNER, Keys, Signer, opened, secured
from npumake.errors import GraphError, ProjectError
from npumake.runtime import Session

GRID = Tensor((2,), "int8", 1.0)
STEP = Instruction("constant", "secret_layer", (), ("y",), {"values": np.array([3, -5], np.int8)})
PLAIN = Bundle(
    "any", Program((), ("y",), {"y": GRID}, (STEP,)), {}, security={"outputs": {"y": "any"}}
)
BUNDLE = PLAIN.to_bytes()
SECURE = secured(BUNDLE, "m", signer(model()), keys())
DER = serialization.Encoding.DER


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def refusal(data: bytes, given: Keys | None = None) -> str:
    with pytest.raises(GraphError) as caught:
        opened(data, given or keys(), "m")
    return caught.value.what


@pytest.mark.parametrize("kind", ["p256", "rsa2048", "ed25519"])
@pytest.mark.parametrize("encrypted", [True, False])
def test_what_is_secured_opens_as_it_was_and_is_the_same_file_each_time(kind: str, encrypted: bool):
    first, second = (secured(BUNDLE, "m", signer(model(kind)), keys(encrypted)) for _ in range(2))
    assert first == second
    assert opened(first, keys(encrypted), "m").to_bytes() == BUNDLE


def test_an_encrypted_model_shows_no_layer_and_no_key_and_another_key_is_other_bytes():
    other = secured(BUNDLE, "m", signer(model()), dataclasses.replace(keys(), encryption=bytes(32)))
    assert b"secret_layer" not in SECURE
    assert ENCRYPTION not in SECURE
    assert parts(other)[MODEL] != parts(SECURE)[MODEL]
    assert ENCRYPTION.hex() not in repr(keys()) + repr(signer(model()))
    assert str(ENCRYPTION) not in repr(keys())


def test_the_policy_of_every_tensor_is_carried_and_signed():
    assert opened(SECURE, keys(), "m").policies == {"inputs": {}, "outputs": {"y": "any"}}
    assert b'"security":{"inputs":{},"outputs":{"y":"any"}}' in parts(SECURE)["seal.json"]


def test_wrong_keys_are_told_apart():
    without, wrong = keys(False), dataclasses.replace(keys(), encryption=bytes(32))
    assert refusal(SECURE, without) == "the model is encrypted, and no encryption key is given"
    assert refusal(SECURE, wrong) == "the encryption key is not the one of this model"


def at(days: int) -> Keys:
    return dataclasses.replace(keys(), at=NOW + timedelta(days=days))


def test_a_certificate_holds_from_its_first_day_to_its_last():
    assert opened(SECURE, at(29), "m").to_bytes() == BUNDLE
    past = f"{NOW + timedelta(days=30):%Y-%m-%d}"
    assert refusal(SECURE, at(31)).endswith(f"the vendor certificate expired on {past}")
    assert "the vendor certificate is not valid before" in refusal(SECURE, at(-2))


def sealed_by(identity: made.Identity) -> bytes:
    """A model that `identity` signs, by the rules or not; unsecured, so that nothing checks it."""
    own = dataclasses.replace(keys(False), vendor=vendor().certificate)
    members = parts(secured(BUNDLE, "m", signer(model()), own))
    certificate = identity.certificate.public_bytes(DER)
    seal = members["seal.json"].replace(
        digest.of_bytes(members[SIGNER]).encode(), digest.of_bytes(certificate).encode()
    )
    signed = made_signature(identity, seal)
    return zipped({**members, "seal.json": seal, SIGNER: certificate, SIGNATURE: signed})


def made_signature(identity: made.Identity, seal: bytes) -> bytes:
    return signature(identity.key, b"npumake-secure 1\n" + seal)


SERVER = ((x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),)
UNKNOWN = ((x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00"), True),)
FOREIGN: dict[str, tuple[Callable[[], made.Identity], str]] = {
    "another vendor's": (
        lambda: issued("Model signer", vendor("Other", "other authority"), more=SIGNING),
        "it is signed by `CN=Model signer`, whose certificate `CN=Vendor` did not issue",
    ),
    "another vendor's of the same name": (
        lambda: issued("Model signer", vendor("Vendor", "other authority"), more=SIGNING),
        "did not issue",
    ),
    "its own": (lambda: issued("Model signer", more=SIGNING), "did not issue"),
    "expired": (
        lambda: issued("Model signer", vendor(), days=(-9, -1), more=SIGNING),
        "the model certificate expired on",
    ),
    "of tomorrow": (
        lambda: issued("Model signer", vendor(), days=(1, 9), more=SIGNING),
        "the model certificate is not valid before",
    ),
    "the vendor's web server's": (
        lambda: issued("Web", vendor(), more=SERVER),
        "`CN=Web` may not sign models",
    ),
    "for encryption only": (
        lambda: issued("Box", vendor(), more=((usage(key_encipherment=True), True),)),
        "`CN=Box` may not sign models",
    ),
    "an authority's": (
        lambda: issued("Branch", vendor(), more=AUTHORITY),
        "`CN=Branch` may not sign models",
    ),
    "with a condition nobody here knows": (
        lambda: issued("Model signer", vendor(), more=UNKNOWN),
        "the model certificate has a critical extension not known here, 1.2.3.4",
    ),
    "of a weak key": (
        lambda: issued("Model signer", vendor(), "rsa1024", more=SIGNING),
        "an RSA key of 1024 bits",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_or_expired_certificate_is_refused_with_the_reason(name: str):
    identity, reason = FOREIGN[name]
    assert reason in refusal(sealed_by(identity()), keys(False))


def test_a_vendor_who_is_no_authority_vouches_for_nobody():
    plain = issued("Vendor", kind="authority")
    assert "`CN=Vendor` may not issue" in refusal(SECURE, Keys(plain.certificate, ENCRYPTION))


def test_a_right_chain_with_another_s_signature_is_a_change():
    members = parts(SECURE)
    forged = made_signature(issued("x", kind="forger"), members["seal.json"])
    assert refusal(zipped({**members, SIGNATURE: forged})) == "it was changed since it was signed"


def test_another_seal_around_the_same_cipher_text_does_not_open():
    members = parts(SECURE)
    other = members["seal.json"].replace(b'"y":"any"', b'"y":"secure-if-input-secure"')
    resealed = {**members, "seal.json": other, SIGNATURE: made_signature(model(), other)}
    assert refusal(zipped(resealed)) == "the encryption key is not the one of this model"


@pytest.mark.parametrize("seed", range(100))
def test_a_mutated_model_or_certificate_is_refused_or_exact(seed: int):
    """A quarter each: bytes of the file, its length, a certificate, the seal with its signature."""
    rng = random.Random(seed)
    data = MUTATIONS[seed % 4](rng)
    tracemalloc.start()
    with suppress(GraphError):
        assert opened(data, keys(), "m").to_bytes() == BUNDLE
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2 << 20  # the file has 3 KB


def flipped(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(rng: random.Random) -> bytes:
    start, end = sorted(rng.sample(range(len(SECURE)), 2))
    return rng.choice([SECURE[:end], SECURE[start:], SECURE[:start] + SECURE[end:], SECURE * 2])


def with_certificate(rng: random.Random) -> bytes:
    """One that its seal speaks of, and that signs it: only the certificate itself is wrong."""
    changed = flipped(rng, model().certificate.public_bytes(DER))
    members = parts(SECURE)
    seal = members["seal.json"].replace(
        digest.of_bytes(members[SIGNER]).encode(), digest.of_bytes(changed).encode()
    )
    signed = made_signature(model(), seal)
    return zipped({**members, "seal.json": seal, SIGNER: changed, SIGNATURE: signed})


def with_seal(rng: random.Random) -> bytes:
    members = parts(SECURE)
    seal = flipped(rng, members["seal.json"])
    return zipped({**members, "seal.json": seal, SIGNATURE: made_signature(model(), seal)})


MUTATIONS = (lambda rng: flipped(rng, SECURE), cut, with_certificate, with_seal)


def test_a_signed_model_that_is_no_bundle_is_no_bundle():
    with pytest.raises(GraphError, match="not a bundle"):
        secured(b"hello", "m", signer(model()), keys())


def test_whoever_would_not_be_believed_signs_nothing():
    with pytest.raises(GraphError, match="expired"):
        secured(BUNDLE, "m", signer(model()), at(31))


# -- files -----------------------------------------------------------------------------------


def test_a_session_with_keys_runs_a_secure_model_and_no_other(tmp_path):
    made.written(tmp_path)
    files = (tmp_path / "vendor_certificate.pem", tmp_path / "encryption_key.pem")
    path, plain = tmp_path / "m.hybrid", tmp_path / "plain.hybrid"
    path.write_bytes(SECURE)
    plain.write_bytes(BUNDLE)
    (y,) = Session(path, keys=Keys.read(*files)).run(None, {})
    assert y.tolist() == [3, -5]
    with pytest.raises(GraphError, match="the model is not signed"):
        Session(plain, keys=Keys.read(*files))
    with pytest.raises(GraphError, match="a secure model: it opens with its keys"):
        Session(path)
    with pytest.raises(GraphError, match=r"no `\.onnx` file is signed"):
        Session(tmp_path / "m.onnx", keys=keys())


@pytest.mark.parametrize("text", [b"", b"00" * 31, b"zz" * 32, b"0" * 65, b"\xff" * 64])
def test_what_is_no_encryption_key_is_an_error_that_does_not_tell_it(text: bytes, tmp_path):
    made.written(tmp_path)
    (file := tmp_path / "bad.key").write_bytes(text)
    with pytest.raises(ProjectError, match="not an encryption key: 32 bytes") as caught:
        Keys.read(tmp_path / "vendor_certificate.pem", file)
    assert text == b"" or text.decode("latin-1") not in str(caught.value)


def test_a_key_of_32_bytes_may_be_bare(tmp_path):
    made.written(tmp_path)
    (file := tmp_path / "bare.key").write_bytes(ENCRYPTION)
    assert Keys.read(tmp_path / "vendor_certificate.pem", file) == keys()


def test_a_key_must_be_the_certificate_s(tmp_path):
    made.written(tmp_path)
    (other := tmp_path / "other.pem").write_bytes(pem(made.key("other")))
    with pytest.raises(ProjectError, match="not that of the model certificate"):
        Signer.read(tmp_path / "model_certificate.pem", other)


@pytest.mark.parametrize(
    "data", [b"", b"-----BEGIN CERTIFICATE-----\n", b"\x30\x80", bytes(99_999)]
)
def test_what_is_no_certificate_or_key_is_a_project_error(data: bytes):
    with pytest.raises(ProjectError, match="not a certificate that can be used"):
        certificate_from(data, "x")
    with pytest.raises(ProjectError, match="not a private key in PEM"):
        private_key_from(data, "x")


def test_a_key_behind_a_password_is_an_error():
    form, locked = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    data = made.key("p256").private_bytes(serialization.Encoding.PEM, form, locked)
    with pytest.raises(ProjectError, match="behind a password"):
        private_key_from(data, "x")
