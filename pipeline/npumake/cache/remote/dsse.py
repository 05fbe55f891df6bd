"""DSSE envelopes: a document with Ed25519 signatures (Dead Simple Signing Envelope, version 1).

    {"payload": base64, "payloadType": type, "signatures": [{"keyid": public key, "sig": base64}]}

Signed is PAE = "DSSEv1" SP len(type) SP type SP len(payload) SP payload; lengths are in bytes, as
decimal ASCII. `keyid` is the public key in the form of trust.yaml. It is a hint: a policy decides.
"""

from __future__ import annotations

import base64
import json
from typing import NamedTuple

from npumake.cache.remote.envelope import key_bytes, key_text
from npumake.cache.remote.keys import SigningKey
from npumake.cache.remote.trust import Policy, Standing, TrustVerdict, is_signed
from npumake.digest import Json, canonical

STATEMENT = "application/vnd.in-toto+json"
BOM = "application/vnd.cyclonedx+json"
MAX_SIGNATURES = 64
# From best to worst, of several signatures.
STANDINGS: tuple[Standing, ...] = ("trusted", "forged", "revoked", "foreign")


class SignedDocument(NamedTuple):
    """The payload of an envelope, and the verdict on its signatures."""

    payload: bytes
    type: str
    verdict: TrustVerdict


def signed(payload: bytes, type: str, key: SigningKey) -> bytes:
    """The envelope, in canonical JSON. Raises ProjectError if the key cannot be read."""
    signature = {
        "keyid": key_text(key.public),
        "sig": base64.b64encode(key.signature(pae(type, payload))).decode(),
    }
    return canonical(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": type,
            "signatures": [signature],
        }
    )


def pae(type: str, payload: bytes) -> bytes:
    """The signed bytes."""
    kind = type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def opened(data: bytes, policy: Policy) -> SignedDocument | None:
    """The document with the best verdict on its signatures; None for other bytes than an envelope.

    Do not trust a payload whose verdict is not `trusted`.
    """
    try:
        envelope = json.loads(data)
        payload = base64.b64decode(envelope["payload"], validate=True)
        type = str(envelope["payloadType"])
        signatures = [*map(_parsed, envelope["signatures"][:MAX_SIGNATURES])]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    content = pae(type, payload)
    verdicts = [
        _judged(content, *signature, policy) for signature in signatures if signature is not None
    ]
    verdicts.sort(key=lambda verdict: STANDINGS.index(verdict.standing))
    return SignedDocument(payload, type, verdicts[0] if verdicts else TrustVerdict("unsigned"))


def _parsed(signature: Json) -> tuple[bytes, bytes] | None:
    """The signer and the signature; None for another tool's, of another kind of key."""
    try:
        return key_bytes(signature["keyid"]), base64.b64decode(signature["sig"], validate=True)
    except (ValueError, KeyError, AttributeError):
        return None


def _judged(content: bytes, signer: bytes, signature: bytes, policy: Policy) -> TrustVerdict:
    readers = policy.named()
    signer_name = readers.get(signer, key_text(signer))
    if signer in policy.revoked:
        return TrustVerdict("revoked", signer_name)
    if signer not in readers:
        return TrustVerdict("foreign", signer_name)
    if not is_signed(content, signer, signature):
        return TrustVerdict("forged", signer_name)
    return TrustVerdict("trusted", signer_name)
