"""Stamp: the key document of an artifact, written beside it and sealed."""

from __future__ import annotations

from typing import NamedTuple

from npumake.cache.sealed import sealed, unsealed
from npumake.make.node import Node, NodeKey


class Stamp(NamedTuple):
    """The key document of an artifact, and its digest."""

    document: NodeKey
    digest: str


def stamp_bytes(node: Node, stamp: Stamp) -> bytes:
    """The stamp of `node` as a file; its seal names the node."""
    return sealed(_identity(node), {"document": stamp.document, "digest": stamp.digest})


def read_stamp(path: str, node: Node) -> Stamp | None:
    """The stamp; None if there is none, or its seal is wrong."""
    try:
        with open(path, "rb") as file:
            content = unsealed(_identity(node), file.read())
    except OSError:
        return None
    return None if content is None else Stamp(content["document"], content["digest"])


def _identity(node: Node) -> str:
    return f"stamp of {node.short} @{node.variant}"
