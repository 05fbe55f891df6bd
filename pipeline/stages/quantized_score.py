"""quantized_score: the quantized graph at its task, in onnxruntime: within a step of the chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pipeline.custom.operators import declared
from pipeline.detection.notes import metadata_of
from pipeline.engine.mixed import float_session
from pipeline.evaluate.figures import Figures
from pipeline.evaluate.scored import ground
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.project.sections import Evaluation, Files, Input


def quantized_score(
    original_float: Graph,
    quantized: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    evaluation: Evaluation,
    sources: SourceFiles,
    custom_operators: Sequence[str] = (),
) -> Figures:
    operators = declared(custom_operators, sources)
    real = partial(float_session, original_float, operators)
    dataset = ground(original_float, inputs, data, evaluation, sources, real)
    session = float_session(quantized, operators)
    return dataset.figures("quantized", session, metadata_of(quantized))
