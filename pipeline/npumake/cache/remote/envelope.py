"""Envelopes: a record in transit, signed, in the form of an ActionResult of bazel's remote cache.

A stock bazel-remote stores under /ac/ only a valid ActionResult, and serves it only while it has
the blobs that are named in it. So the artifact is its one output file, and the record its output:

    ActionResult { output_files { path "artifact"  digest { hash size_bytes } }  stdout_raw JSON }

    JSON = {"document", "digest", "size", "seconds", "signer", "signature"}

The signature is Ed25519 over PURPOSE and canonical {"key", "digest", "size", "seconds"}. The key is
the SHA-256 of the document, so it binds the document too: a record for one key cannot be replayed
for another. `signer` is the public key.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from pathlib import Path

from npumake.cache.store import Record, checked, is_sound
from npumake.digest import Json, canonical, of_document

PURPOSE = b"npumake record 1\n"
MAX_ENVELOPE_BYTES = 4 << 20
PREFIX = "ed25519:"
OUTPUT_FILES, STDOUT_RAW = 2, 5  # fields of ActionResult
PATH, DIGEST = 1, 2  # of OutputFile
HASH, SIZE_BYTES = 1, 2  # of Digest
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types


@dataclass(frozen=True)
class Envelope:
    """A record with the raw public key of its signer and the signature; None if unsigned."""

    key: str
    record: Record
    signer: bytes | None
    signature: bytes | None


def payload(key: str, record: Record) -> bytes:
    """The signed bytes."""
    named = {"key": key, "digest": record.digest, "size": record.size, "seconds": record.seconds}
    return PURPOSE + canonical(named)


def packed(envelope: Envelope) -> bytes:
    record = envelope.record
    body: dict[str, Json] = {
        "document": record.document,
        "digest": record.digest,
        "size": record.size,
        "seconds": record.seconds,
    }
    if envelope.signer is not None and envelope.signature is not None:
        body["signer"] = key_text(envelope.signer)
        body["signature"] = base64.b64encode(envelope.signature).decode()
    named = _text(HASH, record.digest.encode()) + _number(SIZE_BYTES, record.size)
    file = _text(PATH, b"artifact") + _text(DIGEST, named)
    return _text(OUTPUT_FILES, file) + _text(STDOUT_RAW, canonical(body))


def unpacked(data: bytes) -> Envelope | None:
    """The envelope; None for anything else. Its key is that of the document inside."""
    try:
        entry = json.loads(_stdout(data))
        document, digest, size = entry["document"], entry["digest"], entry["size"]
        record = Record(document, digest, size, entry["seconds"])
        signer, signature = entry.get("signer"), entry.get("signature")
        envelope = Envelope(
            of_document(document),
            record,
            None if signer is None else key_bytes(signer),
            None if signature is None else base64.b64decode(signature, validate=True),
        )
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        return None
    return envelope if is_sound(record) else None


def envelope_file(root: Path, key: str) -> Path:
    """The path of a key's trusted envelope in the store at `root`."""
    return root / "signed" / checked(key)[:2] / key[2:]


def key_text(raw: bytes) -> str:
    """A public key in the form of trust.yaml and envelopes."""
    return PREFIX + base64.b64encode(raw).decode()


def key_bytes(text: str) -> bytes:
    """The 32 bytes of a public key. Raises ValueError."""
    try:
        raw = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if not text.startswith(PREFIX) or len(raw) != 32:
        raise ValueError("not an Ed25519 public key")
    return raw


# -- protobuf, as much of it as is needed ------------------------------------------------------


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(value)


def _text(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | BYTES) + _varint(len(data)) + data


def _stdout(data: bytes) -> bytes:
    """The field `stdout_raw`. Raises ValueError or IndexError for any other message."""
    at, content = 0, None
    while at < len(data):
        tag, at = _read(data, at)
        kind = tag & 7
        if kind == VARINT:
            _, at = _read(data, at)
            continue
        if kind == BYTES:
            length, at = _read(data, at)
        else:
            length = {FIXED64: 8, FIXED32: 4}.get(kind, -1)
        if length < 0 or at + length > len(data):
            raise ValueError("not a protobuf message")
        if tag >> 3 == STDOUT_RAW and kind == BYTES:
            content = data[at : at + length]
        at += length
    if content is None:
        raise ValueError("no record inside")
    return content


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number of too many bytes")
