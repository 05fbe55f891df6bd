"""calibrated_score: the calibrated graph at its task, in onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluate.figures import Figures
from pipeline.evaluate.scored import ground
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.project.sections import CodeFiles, Evaluation, Files, Input


def calibrated_score(
    original_float: Graph,
    calibrated: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    evaluation: Evaluation,
    sources: SourceFiles,
    custom_operators: Sequence[CodeFiles] = (),
) -> Figures:
    where = ground(original_float, inputs, data, evaluation, sources, custom_operators)
    return where.of_graph("calibrated", calibrated)
