"""compiled_score: the compiled file at its task, in exact integers: the figures of the chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pipeline.bundle.archive import Bundle
from pipeline.custom.operators import declared
from pipeline.detection.carriers import metadata_of_bundle
from pipeline.engine.mixed import float_session
from pipeline.engine.reference import ReferenceSession
from pipeline.evaluate.figures import Figures
from pipeline.evaluate.scored import ground
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.project.sections import Evaluation, Files, Input


def compiled_score(
    original_float: Graph,
    compiled: Bundle,
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    evaluation: Evaluation,
    sources: SourceFiles,
    custom_operators: Sequence[str] = (),
) -> Figures:
    operators = declared(custom_operators, sources)
    real = partial(float_session, original_float, operators)
    dataset = ground(original_float, inputs, data, evaluation, sources, real)
    session = ReferenceSession(compiled.program, operators)
    return dataset.figures("compiled", session, metadata_of_bundle(compiled))
