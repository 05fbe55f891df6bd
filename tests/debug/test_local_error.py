"""Blame: a fault that was put in is named first, whichever node it was put in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npumake.cli.projects import selected
from npumake.data.samples import Samples
from npumake.debug.diagnosis.local_error import local_losses
from npumake.engine.fusion import result
from npumake.graph import Graph
from npumake.project.reader import built as built_from
from npumake.quant.calibration.ranges import Range
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.qdq.integers import with_integer_weights
from npumake.quant.search.methods import calibrated_with
from npumake.quant.search.recipe import Recipe
from npumake.targets.target import Target
from workspaces import Workspace

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


# The logits of rdk-x5 are sums, which have no range.
PLACES = [(chip, name) for chip in ("rdk-x5", "ara240") for name in FAULTY]
PLACES.remove(("rdk-x5", "logits"))


@pytest.mark.parametrize(("chip", "name"), PLACES)
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
