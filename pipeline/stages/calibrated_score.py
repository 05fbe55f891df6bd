"""calibrated_score: the calibrated graph at its task, in onnxruntime."""

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


def calibrated_score(
    original_float: Graph,
    calibrated: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    evaluation: Evaluation,
    sources: SourceFiles,
    custom_operators: Sequence[str] = (),
) -> Figures:
    operators = declared(custom_operators, sources)
    real = partial(float_session, original_float, operators)
    dataset = ground(original_float, inputs, data, evaluation, sources, real)
    session = float_session(calibrated, operators)
    return dataset.figures("calibrated", session, metadata_of(calibrated))
