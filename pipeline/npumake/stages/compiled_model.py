"""The compiled file as a model to score.

.hybrid   in exact integers        .tflite   in the reference kernels of LiteRT
.onnx     in onnxruntime
"""

from __future__ import annotations

from npumake.bundle.archive import Bundle
from npumake.compilers.handover import Handover
from npumake.custom.operators import Operators
from npumake.detection.notes import metadata_of
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.errors import ProjectError, Route
from npumake.evaluate.artifact_scores import ScoredModel, ScoredSession
from npumake.graph import Graph, shape
from npumake.runtime.litert import LiteRtSession
from npumake.runtime.planar import Planar
from npumake.runtime.stripping import restored
from npumake.stages.compiled import Compiled
from npumake.targets.target import Target


def compiled_model(
    compiled: Compiled,
    quantized: Graph,
    target: Target,
    operators: Operators,
    handover: Handover | None = None,
) -> ScoredModel:
    """Raises ProjectError for a file that only its chip runs."""
    if handover is not None:
        message = f"a file from the vendor's tool for {target.name} does not run here"
        hint = "leave `compiled` out of the artifacts: `quantized` is npumake's own result"
        raise ProjectError(message, Route("evaluation.artifacts"), hint)
    session = _session(compiled, quantized, target, operators)
    return ScoredModel(session, metadata_of(quantized))


def _session(
    compiled: Compiled, graph: Graph, target: Target, operators: Operators
) -> ScoredSession:
    if target.backend == "hybrid":
        program = lowered(graph, target.rounding, target.runnable)
        whole = restored(Bundle.from_bytes(compiled.data), program)
        return ExactSession(whole.program, operators)
    if target.backend == "onnx":
        return OrtSession(compiled.data)
    if target.backend == "tflite":
        file = LiteRtSession(compiled.data, f"compiled.{target.name}{target.suffix}")
        inputs, outputs = (
            {str(v.name): shape(v) for v in vs} for vs in (graph.inputs, graph.outputs)
        )
        return Planar(file, inputs, outputs)
    message = f"a file for {target.name} does not run here"
    hint = "leave `compiled` out of the artifacts: `quantized` has the same integers"
    raise ProjectError(message, Route("evaluation.artifacts"), hint)
