"""compiled: one file per target that runs in exact integers.

Q/DQ graph → integer program (pipeline.engine.lower) → bundle with its provenance, and with
the Python of the custom operators and the metadata of a detector in it
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline import digest
from pipeline.bundle.archive import Bundle
from pipeline.custom.operators import declared
from pipeline.engine.lower import lowered
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.quant.converted import members_beside
from pipeline.quant.images import batch
from pipeline.targets.target import Target


def compiled(
    quantized: Graph, target: Target, sources: SourceFiles, custom_operators: Sequence[str] = ()
) -> Bundle:
    provenance = {
        "quantized": digest.of_bytes(quantized.to_bytes()),
        "target": digest.of_document(target),
    }
    program = lowered(quantized, target.rounding, target.runnable)
    code = declared(custom_operators, sources).used_by(quantized).sources
    beside = members_beside(quantized, target)
    return Bundle(target.name, program, provenance, batch(quantized), code, beside)
