"""The chain of a compiled file: SHA-256 of the models that it was built from.

    chain: {trained: {model.onnx: SHA-256}, original_float: SHA-256, ..., quantized: SHA-256}

It has only content: no version, no setting and no digest of code. Equal models give equal files.

    .hybrid                    member provenance.json, key `chain`
    .onnx                      metadata `npumake.provenance`
    .tflite, .vmfb, OpenVINO   member provenance.json of the appended ZIP, or of the file itself
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Protocol

from npumake import digest
from npumake.digest import Json

CHAIN, TRAINED = "chain", "trained"
MEMBER = "provenance.json"
NOTE = "npumake.provenance"
MODEL_ROUTES = ("model.path", "model.weights")
MAX_MEMBER_BYTES = 1 << 20


class NamedContent(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...


def chain_of(
    sources: Mapping[str, Sequence[NamedContent]], models: Mapping[str, str]
) -> dict[str, Json]:
    """The entry of a provenance; empty without both. `models` are digests by stage."""
    trained = {file.name: file.digest for route in MODEL_ROUTES for file in sources.get(route, ())}
    links = {**({TRAINED: trained} if trained else {}), **models}
    return {CHAIN: links} if links else {}


def provenance_member(provenance: Mapping[str, Json]) -> dict[str, bytes]:
    return {MEMBER: digest.canonical(provenance)} if provenance else {}


def links_of(chain: Json) -> dict[str, str]:
    """(model or stage, SHA-256) of each link; empty for anything but a chain."""
    if not isinstance(chain, dict):
        return {}
    trained = chain.get(TRAINED)
    links = {**(trained if isinstance(trained, dict) else {}), **chain}
    return {str(name): link for name, link in links.items() if isinstance(link, str)}


def chain_in(data: bytes, notes: Mapping[str, str]) -> Mapping[str, Json] | None:
    """The chain of a compiled file with these `notes` in its metadata; None if it has none."""
    try:
        if NOTE in notes:
            document = json.loads(notes[NOTE])
        else:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                if archive.getinfo(MEMBER).file_size > MAX_MEMBER_BYTES:
                    return None
                document = json.loads(archive.read(MEMBER))
        chain = document.get(CHAIN)
    except (zipfile.BadZipFile, KeyError, ValueError, AttributeError, RuntimeError, EOFError):
        return None
    return chain if isinstance(chain, dict) else None
