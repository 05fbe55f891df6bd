"""compiled: one file per target that runs in exact integers.

Q/DQ graph → integer program (pipeline.engine.lower) → bundle with its provenance
"""

from __future__ import annotations

from pipeline import digest
from pipeline.bundle.archive import Bundle
from pipeline.engine.lower import lowered
from pipeline.graph import Graph
from pipeline.quant.images import batch
from pipeline.targets.target import Target


def compiled(quantized: Graph, target: Target) -> Bundle:
    provenance = {
        "quantized": digest.of_bytes(quantized.to_bytes()),
        "target": digest.of_document(target),
    }
    program = lowered(quantized, target.rounding, target.runnable)
    return Bundle(target.name, program, provenance, batch(quantized))
