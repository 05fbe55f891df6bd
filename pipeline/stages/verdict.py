"""verdict: every gate against what was measured; where one is not met, the guilty and a remedy.

A blamed node is one of those that lose most themselves. What is advised has been tried: the model
was quantized that way and measured again, in float with Q/DQ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pipeline.custom.operators import declared
from pipeline.data.samples import Samples
from pipeline.debug.blame import local_losses
from pipeline.debug.compare import Comparison
from pipeline.engine.mixed import float_session
from pipeline.evaluate.figures import Figures
from pipeline.evaluate.gates import Measured, asked
from pipeline.evaluate.scored import ground
from pipeline.evaluate.trying import Trying, judged
from pipeline.evaluate.verdict import Blamed, Verdict
from pipeline.graph import Graph
from pipeline.project.files import SourceFiles
from pipeline.project.sections import Evaluation, Files, Gate, Input, Quantization
from pipeline.quant.qdq import DEFAULT
from pipeline.quant.recipe import Recipe
from pipeline.targets.target import Target


def verdict(
    original_float: Graph,
    optimized_float: Graph,
    samples: Samples,
    recipe: Recipe,
    comparison: Comparison,
    target: Target,
    gates: tuple[Gate, ...],
    inputs: Mapping[str, Input],
    data: Mapping[str, Files],
    sources: SourceFiles,
    custom_operators: Sequence[str] = (),
    quantization: Quantization = DEFAULT,
    evaluation: Evaluation | None = None,
    float_score: Figures | None = None,
    calibrated_score: Figures | None = None,
    quantized_score: Figures | None = None,
    compiled_score: Figures | None = None,
) -> Verdict:
    scores = (float_score, calibrated_score, quantized_score, compiled_score)
    worst = min((output.cosine for output in comparison.outputs), default=1.0)
    on_cpu = [row for row in comparison.rows if row.subgraph is None]
    found = Measured(
        [score for score in scores if score is not None],
        worst if comparison.samples else None,
        len(on_cpu),
    )
    wishes = [asked(gate, index, found) for index, gate in enumerate(gates)]
    operators = declared(custom_operators, sources)
    dataset = None
    if evaluation is not None:
        real = partial(float_session, original_float, operators)
        dataset = ground(original_float, inputs, data, evaluation, sources, real)
    losers = [Blamed(*loss) for loss in local_losses(optimized_float, comparison)]
    cpu = [Blamed(row.node, None, row.origin) for row in on_cpu]
    trying = Trying(optimized_float, recipe, samples, target, operators, quantization, dataset)
    names = [gate.metric for gate in gates]
    return Verdict(
        target.name,
        tuple(
            judged(wish, index, cpu if wish.kind == "cpu_nodes" else losers, trying, names[index])
            for index, wish in enumerate(wishes)
        ),
    )
