"""Which inputs are 8-bit images, noted in the graph for all later stages.

Their grid needs no calibration: a pixel fed as value - 128 is a code already, so scale is 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pipeline.graph import Graph

NOTE = "npumake.images"


def mark_images(graph: Graph, names: Iterable[str]) -> None:
    graph.set_metadata({NOTE: json.dumps(sorted(names))})


def images(graph: Graph) -> frozenset[str]:
    return frozenset(json.loads(graph.metadata.get(NOTE, "[]")))
