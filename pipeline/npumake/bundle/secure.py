"""A secure model: one bundle, signed and optionally encrypted.

    seal.json    format, version, cipher (null: not encrypted), the security policy of every input
                 and output, SHA-256 of the two members below
    signer.der   the model certificate
    model        the bundle's bytes, plain or encrypted
    signature    of seal.json, by the key of the model certificate

Opening checks the model certificate against the user's vendor certificate and, if there is one,
the revocation list. Then it checks the signature and the digests. Only then does it decrypt and
read the model.

The cipher is AES-256-GCM-SIV (RFC 8452). Plain GCM is broken by a repeated nonce; its random nonce
would change the file each time. GCM-SIV allows a constant nonce: the same model and keys give the
same file, and without the key only the equality of two files shows. The seal's fields are the
associated data, so that a ciphertext cannot move under another seal.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.serialization import Encoding

from npumake import digest
from npumake.bundle.archive import DAMAGE, SEAL, Bundle, is_secure, whole, zipped
from npumake.bundle.certificates import (
    PrivateKey,
    certificate_from,
    is_signed,
    private_key_from,
    refuse_unissued,
    signature,
)
from npumake.bundle.revocation import MAX_BYTES as MAX_LIST_BYTES
from npumake.bundle.revocation import RevocationList, refuse_revoked, revocation_list_from
from npumake.digest import Json
from npumake.errors import GraphError, ProjectError

FORMAT = "npumake-secure"
VERSION = 1
CIPHER = "AES-256-GCM-SIV"
SIGNER, MODEL, SIGNATURE = "signer.der", "model", "signature"
NONCE = bytes(12)
KEY_BYTES = 32
MAX_EXTRA_BYTES = 1 << 20  # of a secure file beside its model
MAX_MODEL_BYTES = (1 << 31) - 1 - 16  # bytes of a model, the limit of the cipher


@dataclass(frozen=True)
class Keys:
    """The keys for secure models: the vendor certificate and, for encrypted ones, the AES key.

    Certificates must be valid `at` this time (None: now) and not listed in `revoked`, the vendor's
    revocation list.
    """

    vendor: x509.Certificate
    encryption: bytes | None = field(default=None, repr=False)
    at: datetime | None = None
    revoked: RevocationList | None = field(default=None, repr=False)

    @classmethod
    def read(
        cls,
        vendor_certificate: str | Path,
        encryption_key: str | Path | None = None,
        revocation_list: str | Path | None = None,
    ) -> Keys:
        """Reads the files. Certificate and list are PEM or DER; the key has 32 bytes or 64
        hexadecimal digits. Raises ProjectError."""
        key = None if encryption_key is None else _encryption_key(encryption_key)
        file = revocation_list
        data = b"" if file is None else _bytes(file, MAX_LIST_BYTES + 1)
        revoked = None if file is None else revocation_list_from(data, str(file))
        return cls(_certificate(vendor_certificate), key, revoked=revoked)


@dataclass(frozen=True)
class Signer:
    """The model certificate and its private key."""

    certificate: x509.Certificate
    key: PrivateKey = field(repr=False)

    @classmethod
    def read(cls, model_certificate: str | Path, signature_key: str | Path) -> Signer:
        """Raises ProjectError, also if the key does not belong to the certificate."""
        certificate = _certificate(model_certificate)
        key = private_key_from(_bytes(signature_key), str(signature_key))
        if key.public_key() != certificate.public_key():
            message = "the signature key is not that of the model certificate"
            raise ProjectError(message, str(signature_key))
        return cls(certificate, key)


@dataclass(frozen=True)
class Seal:
    """The seal of a secure file, untrusted until `verified`."""

    signer: x509.Certificate
    document: Mapping[str, Json]
    members: Mapping[str, bytes] = field(repr=False)

    @property
    def cipher(self) -> str | None:
        return self.document["cipher"]


def secured(bundle: bytes, name: str, signer: Signer, keys: Keys) -> bytes:
    """The secure file of a bundle, encrypted if `keys` has a key. The bytes are deterministic.

    Raises GraphError for data other than a bundle, and if `keys` could not open the result.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "cipher": None if keys.encryption is None else CIPHER,
        "security": Bundle.from_bytes(bundle, name).policies,
    }
    if len(bundle) > MAX_MODEL_BYTES:
        raise GraphError("the model is too large to be secured", name)
    certificate, model = signer.certificate.public_bytes(Encoding.DER), bundle
    about = {**document, "sha256": {SIGNER: digest.of_bytes(certificate)}}
    if keys.encryption is not None:
        model = AESGCMSIV(keys.encryption).encrypt(NONCE, bundle, digest.canonical(about))
    seal = digest.canonical(_with_model(about, model))
    members = {SEAL: seal, SIGNER: certificate, MODEL: model}
    data = zipped({**members, SIGNATURE: signature(signer.key, _message(seal))})
    opened(data, keys, name)
    return data


def seal_of(data: bytes, name: str) -> Seal:
    """The unverified seal of a secure file. Raises GraphError for another file."""
    try:
        members = _members(data)
        document = json.loads(members[SEAL])
        if not isinstance(document, dict) or digest.canonical(document) != members[SEAL]:
            raise ValueError("the seal is not written as a seal is")
        if (document["format"], document["version"]) != (FORMAT, VERSION):
            raise GraphError(f"a secure model of another version: {document['version']}", name)
        _refuse_other_seal(document)
        return Seal(certificate_from(members[SIGNER], name), document, members)
    except ProjectError as error:
        raise GraphError(error.what, name) from None
    except DAMAGE as error:
        raise GraphError(f"not a secure model, or damaged: {error}", name) from error


def _refuse_other_seal(document: Mapping[str, Json]) -> None:
    if set(document) != {"format", "version", "cipher", "security", "sha256"}:
        raise ValueError("unexpected fields in the seal")
    if document["cipher"] not in (None, CIPHER):
        raise ValueError("an unknown cipher")
    roles = dict(document["security"])
    policies = [policy for names in roles.values() for policy in dict(names).values()]
    if set(roles) != {"inputs", "outputs"} or not all(isinstance(p, str) for p in policies):
        raise ValueError("no security policies")


def verified(seal: Seal, keys: Keys, name: str) -> None:
    """Raises GraphError, with the reason, unless an authorized signer signed this file."""
    at = keys.at or datetime.now(UTC)
    refuse_unissued(seal.signer, keys.vendor, at, name)
    if keys.revoked is not None:
        refuse_revoked(seal.signer, keys.vendor, keys.revoked, at, name)
    text, members = seal.members[SEAL], seal.members
    digests = {part: digest.of_bytes(members[part]) for part in (SIGNER, MODEL)}
    signed = is_signed(seal.signer, members[SIGNATURE], _message(text))
    if not signed or digests != seal.document["sha256"]:
        raise GraphError("it was changed since it was signed", name)


def opened(data: bytes, keys: Keys, name: str) -> Bundle:
    """The bundle in a secure file. Raises GraphError, with the reason, if it must not run."""
    seal = seal_of(data, name)
    verified(seal, keys, name)
    bundle = Bundle.from_bytes(_deciphered(seal, keys, name), name)
    if bundle.policies != seal.document["security"]:
        raise GraphError("the security policies of seal and model differ", name)
    return bundle


def load_secure(path: Path, keys: Keys) -> Bundle:
    """As `opened`. With keys, unsigned models are refused: raises GraphError for a plain bundle."""
    data = whole(path, MAX_MODEL_BYTES + MAX_EXTRA_BYTES)
    if not is_secure(io.BytesIO(data)):
        raise GraphError("the model is not signed; only signed models run", path.name)
    return opened(data, keys, path.name)


def _deciphered(seal: Seal, keys: Keys, name: str) -> bytes:
    model = seal.members[MODEL]
    if seal.cipher is None:
        return model
    if keys.encryption is None:
        raise GraphError("the model is encrypted, and no encryption key is given", name)
    if len(model) < 16 or len(model) > MAX_MODEL_BYTES + 16:
        raise GraphError("an encrypted model of no possible size", name)
    digests = {SIGNER: seal.document["sha256"][SIGNER]}
    about = digest.canonical({**seal.document, "sha256": digests})
    try:
        return AESGCMSIV(keys.encryption).decrypt(NONCE, model, about)
    except InvalidTag:
        # The signature is valid, so the data is unchanged.
        raise GraphError("the encryption key is not the one of this model", name) from None


def _with_model(about: Mapping[str, Json], model: bytes) -> Json:
    return {**about, "sha256": {**about["sha256"], MODEL: digest.of_bytes(model)}}


def _message(seal: bytes) -> bytes:
    """The signed bytes. The prefix keeps the signature from fitting another format."""
    return f"{FORMAT} {VERSION}\n".encode() + seal


def _members(data: bytes) -> dict[str, bytes]:
    """The members. Raises ValueError for others, for compressed ones and for wrong sizes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if sorted(entry.filename for entry in entries) != sorted((SEAL, SIGNER, MODEL, SIGNATURE)):
            raise ValueError("other members than a secure model has")
        _refuse_swollen(entries, len(data))
        return {entry.filename: archive.read(entry) for entry in entries}


def _refuse_swollen(entries: Iterable[zipfile.ZipInfo], max_bytes: int) -> None:
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("its members are compressed")
    if sum(entry.file_size for entry in entries) > max_bytes:
        raise ValueError("its members overlap")


def _certificate(file: str | Path) -> x509.Certificate:
    return certificate_from(_bytes(file), str(file))


def _encryption_key(file: str | Path) -> bytes:
    data = _bytes(file)
    try:
        key = data if len(data) == KEY_BYTES else bytes.fromhex(data.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        message = f"not an encryption key: {KEY_BYTES} bytes, or {2 * KEY_BYTES} hexadecimal digits"
        raise ProjectError(message, str(file), f"openssl rand -hex {KEY_BYTES} > FILE")
    return key


def _bytes(file: str | Path, max_bytes: int = 1 << 16) -> bytes:
    """The file's first `max_bytes` bytes; keys and certificates are small. Raises ProjectError."""
    try:
        with Path(file).open("rb") as stream:
            return stream.read(max_bytes)
    except OSError as error:
        raise ProjectError(f"cannot read it: {error.strerror}", str(file)) from None
