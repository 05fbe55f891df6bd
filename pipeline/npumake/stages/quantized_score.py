"""quantized_score: the task score of the quantized graph, in onnxruntime: within a step of the
chip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npumake.evaluate.artifact_scores import dataset_for
from npumake.evaluate.figures import Figures
from npumake.graph import Graph
from npumake.project.files import SourceFiles
from npumake.project.sections import CodeFiles, Evaluation, Files, Input


def quantized_score(
    original_float: Graph,
    quantized: Graph,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    evaluation: Evaluation,
    sources: SourceFiles,
    custom_operators: Sequence[CodeFiles] = (),
) -> Figures:
    where = dataset_for(original_float, inputs, data, evaluation, sources, custom_operators)
    return where.of_graph("quantized", quantized)
