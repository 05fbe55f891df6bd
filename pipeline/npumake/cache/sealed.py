"""Sealed memos: a digest over content and identity, checked when a memo is read.

    {"seal":"<sha256 of FORMAT, identity and content>","content":<canonical JSON>}

The identity names the owner of a memo and its inputs, so that a copied, renamed or edited memo is
refused. A seal is not a signature: it detects damage and mistakes, not a forger.
"""

from __future__ import annotations

import json

from npumake.digest import Json, canonical, of_bytes

FORMAT = b"npumake memo 1\n"
HEAD, MIDDLE, TAIL = b'{"seal":"', b'","content":', b"}"
HEX_DIGITS = 64


def sealed(identity: str, content: Json) -> bytes:
    body = canonical(content)
    return HEAD + _seal(identity, body) + MIDDLE + body + TAIL


def unsealed(identity: str, data: bytes) -> Json | None:
    """The content; None if the seal does not match content and identity."""
    start = len(HEAD) + HEX_DIGITS
    seal, body = data[len(HEAD) : start], data[start + len(MIDDLE) : -len(TAIL)]
    if data != HEAD + seal + MIDDLE + body + TAIL or seal != _seal(identity, body):
        return None
    return json.loads(body)


def _seal(identity: str, body: bytes) -> bytes:
    return of_bytes(FORMAT + identity.encode() + b"\n" + body).encode()
