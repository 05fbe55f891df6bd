"""Blame: a fault that was put in is named first, whichever node it was put in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from workspaces import Workspace

from pipeline.cli.projects import selected
from pipeline.data.samples import Samples
from pipeline.debug.blame import Loss, local_losses
from pipeline.engine.fusion import result
from pipeline.graph import Graph, parse_text
from pipeline.project.reader import built as built_from
from pipeline.project.sections import Calibration
from pipeline.quant.calibration.observe import observe
from pipeline.quant.calibration.ranges import Range
from pipeline.quant.qdq.insert import DEFAULT
from pipeline.quant.qdq.integers import with_integer_weights
from pipeline.quant.search.methods import calibrated_with, plain
from pipeline.quant.search.recipe import Recipe
from pipeline.targets.reader import read_target
from pipeline.targets.target import Target

FAULTY = (
    "stem_conv",
    "block1_depthwise",
    "block1_pointwise",
    "block1_add",
    "down_conv",
    "block2_depthwise",
    "block2_pointwise",
    "block2_add",
    "pool",
    "logits",
)


@pytest.mark.parametrize("name", FAULTY)
@pytest.mark.parametrize("chip", ["rdk-x5", "ara240"])
def test_a_range_four_times_too_large_is_blamed_first(
    built_once: Workspace, chip: str, name: str
) -> None:
    (build,) = selected(built_once.root, ["digits"], paranoid=False)
    out = built_once.project / "out"
    graph = Graph.load(out / "optimized_float.onnx")
    recipe = Recipe.load(out / f"recipe.{chip}.json")
    target = built_from(Target, build.plan.node(f"digits:{chip}/recipe").target_document)
    (node,) = graph.find(name)
    tensor = str(result(node).name)
    low, high = recipe.ranges[tensor]
    faulty = replace(recipe, ranges={**recipe.ranges, tensor: Range(4 * low, 4 * high)})
    made = calibrated_with(graph, faulty, target, DEFAULT)
    samples = Samples.load(out / "samples.npz")
    found = local_losses(graph, made, with_integer_weights(made), samples, target)
    assert found[0].node == name
    assert found[0].lost > 2 * found[1].lost


SILU = """
network (float[1,2,8,8] x) => (float[1,1,8,8] y)
<float[2,2,1,1] w = {1, 0.5, 0.25, 1}, float[2] b = {-30, -40}, float[1,2,1,1] v = {1, -1}>
{
   [before] c = Conv (x, w, b)
   [gate] s = Sigmoid (c)
   [silu] m = Mul (c, s)
   [behind] y = Conv (m, v)
}
"""


@pytest.fixture(scope="module")
def silu() -> tuple[Graph, Recipe, list[dict[str, np.ndarray]]]:
    graph, rng = parse_text(SILU), np.random.default_rng(0)
    feeds = [{"x": rng.normal(0, 20, (1, 2, 8, 8)).astype(np.float32)} for _ in range(8)]
    return graph, plain(graph, observe(graph, feeds), Calibration("max"), False), feeds


def losses(graph: Graph, recipe: Recipe, feeds: list[dict[str, np.ndarray]]) -> tuple[Loss, ...]:
    target = read_target("ara240")
    made = calibrated_with(graph, recipe, target, DEFAULT)
    samples = Samples(tuple(map(str, range(len(feeds)))), feeds.__getitem__)
    return local_losses(graph, made, with_integer_weights(made), samples, target)


def test_what_becomes_zero_anyway_may_be_cut_off_without_blame(silu):
    graph, recipe, feeds = silu
    assert recipe.ranges["c"].low > -12  # where -100 and less occurs
    assert max(loss.lost for loss in losses(graph, recipe, feeds)) < 1e-3


def test_what_would_have_mattered_may_not(silu):
    graph, recipe, feeds = silu
    low, high = recipe.ranges["c"]
    faulty = replace(recipe, ranges={**recipe.ranges, "c": Range(low, high / 4)})
    first, second, *_ = losses(graph, faulty, feeds)
    assert first.node == "before"
    assert first.lost > 0.01 > 10 * second.lost
