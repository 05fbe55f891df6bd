"""Trust: a policy, and its verdict on an envelope.

Every verdict but `trusted` is a miss. `npumake why --remote` shows its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from npumake.cache.remote.envelope import Envelope, key_text, payload, unpacked
from npumake.cache.store import Record

Standing = Literal["trusted", "absent", "damaged", "unsigned", "replayed", "foreign", "revoked",
                   "forged"]  # fmt: skip

SENTENCES: Mapping[Standing, str] = {
    "trusted": "signed by {who}",
    "absent": "it has no record of this key",
    "damaged": "its record is damaged",
    "unsigned": "its record is not signed",
    "replayed": "its record was signed for another key",
    "foreign": "its record is signed by {who}, a key that trust.yaml lacks",
    "revoked": "its record is signed by {who}, whose key is revoked",
    "forged": "its record does not carry the signature of {who}",
}


@dataclass(frozen=True)
class TrustVerdict:
    """The verdict on an envelope; `record` only if it is trusted."""

    standing: Standing
    signer_name: str = ""
    record: Record | None = None

    def __str__(self) -> str:
        return SENTENCES[self.standing].format(who=self.signer_name)


@dataclass(frozen=True)
class Policy:
    """`named` returns names by raw public key, and is called for each verdict. A revoked key is
    refused, even if another file names it."""

    named: Callable[[], Mapping[bytes, str]] = dict
    revoked: frozenset[bytes] = frozenset()

    def judge(self, key: str, data: bytes | None) -> TrustVerdict:
        """The verdict on the bytes stored under `key`."""
        if data is None:
            return TrustVerdict("absent")
        envelope = unpacked(data)
        if envelope is None:
            return TrustVerdict("damaged")
        if envelope.key != key:
            return TrustVerdict("replayed")
        if envelope.signer is None or envelope.signature is None:
            return TrustVerdict("unsigned")
        return self._judge_signer(envelope, envelope.signer, envelope.signature)

    def _judge_signer(self, envelope: Envelope, signer: bytes, signature: bytes) -> TrustVerdict:
        readers = self.named()
        signer_name = readers.get(signer, key_text(signer))
        if signer in self.revoked:
            return TrustVerdict("revoked", signer_name)
        if signer not in readers:
            return TrustVerdict("foreign", signer_name)
        if not is_signed(payload(envelope.key, envelope.record), signer, signature):
            return TrustVerdict("forged", signer_name)
        return TrustVerdict("trusted", signer_name, envelope.record)


def is_signed(data: bytes, signer: bytes, signature: bytes) -> bool:
    """Whether `signature` is the Ed25519 signature of `data` by the raw public key `signer`."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  # slow to load
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
        Ed25519PublicKey,
    )

    try:
        Ed25519PublicKey.from_public_bytes(signer).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
