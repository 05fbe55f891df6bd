"""compiled_score: the compiled file at its task: the figures of the chip.

.hybrid   in exact integers        .tflite   in the reference kernels of LiteRT
.onnx     in onnxruntime
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.bundle.archive import Bundle
from pipeline.compilers.handover import Handover
from pipeline.custom.operators import Operators
from pipeline.detection.notes import metadata_of
from pipeline.engine.exact import ExactSession
from pipeline.engine.lower import lowered
from pipeline.engine.ort import OrtSession
from pipeline.errors import ProjectError, Route
from pipeline.evaluate.figures import Figures
from pipeline.evaluate.scored import Session, ground
from pipeline.graph import Graph, shape
from pipeline.project.files import SourceFiles
from pipeline.project.sections import CodeFiles, Evaluation, Files, Input
from pipeline.runtime.litert import LiteRtSession
from pipeline.runtime.planar import Planar
from pipeline.runtime.stripping import restored
from pipeline.stages.compiled import Compiled
from pipeline.targets.target import Target


def compiled_score(
    original_float: Graph,
    compiled: Compiled,
    quantized: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    evaluation: Evaluation,
    target: Target,
    sources: SourceFiles,
    custom_operators: Sequence[CodeFiles] = (),
    handover: Handover | None = None,
) -> Figures:
    if handover is not None:
        what = f"a file that the vendor's tool made for {target.name} is not run here"
        hint = "leave `compiled` out of the artifacts: `quantized` is what npumake makes of it"
        raise ProjectError(what, Route("evaluation.artifacts"), hint)
    where = ground(original_float, inputs, data, evaluation, sources, custom_operators)
    session = _session(compiled, quantized, target, where.operators)
    return where.figures("compiled", session, metadata_of(quantized))


def _session(compiled: Compiled, graph: Graph, target: Target, operators: Operators) -> Session:
    """Raises ProjectError for a file that runs on its chip alone."""
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
    what = f"a file for {target.name} is not run here"
    hint = "leave `compiled` out of the artifacts: `quantized` has the same integers"
    raise ProjectError(what, Route("evaluation.artifacts"), hint)
