"""Findings and pages of graphs that no project has: large ones, and those of strangers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npumake.custom.operators import NO_OPERATORS
from npumake.data.samples import Samples
from npumake.debug.compare import compare
from npumake.debug.diagnosis.local_error import local_losses
from npumake.graph import Graph, parse_text
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.qdq.integers import with_integer_weights
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.quant.search.recipe import RecipeTrial
from npumake.report.findings import Findings, TargetFindings, findings
from npumake.report.page import Page, page
from npumake.report.sample_views import ModelPair, sample_views
from npumake.report.tensors import activation_channels, distributions, weight_channels
from trained import PER_CHANNEL


def chain(count: int, prefix: str = "node") -> Graph:
    """`count` nodes: residual blocks of a convolution, a clamp and a sum."""
    graph = parse_text(
        '<ir_version: 8, opset_import: ["" : 13]>'
        "net (float[1, 8, 6, 6] x) => (float[1, 8, 6, 6] y) { y = Relu(x) }"
    )
    rng, value = np.random.default_rng(0), graph.inputs[0]
    (last,) = graph.nodes()
    for block in range((count - 1) // 3):
        weight = graph.constant(f"w{block}", rng.normal(0, 0.2, (8, 8, 1, 1)).astype(np.float32))
        made = graph.insert("Conv", [value, weight], f"{prefix} conv {block}", before=last)
        clamped = graph.insert("Relu", [made], f"{prefix} clamp {block}", before=last)
        value = graph.insert("Add", [value, clamped], f"{prefix} sum {block}", before=last)
    graph.set_inputs(last, {0: value})
    return graph.with_shapes()


def samples(graph: Graph, count: int = 2) -> Samples:
    rng = np.random.default_rng(1)
    feeds = [
        {str(v.name): rng.normal(size=tuple(v.shape or ())).astype(np.float32)}
        for v in graph.inputs
        for _ in range(count)
    ]
    return Samples(tuple(f"sample {n}" for n in range(count)), feeds.__getitem__)


def findings_of(graph: Graph, trials: tuple[RecipeTrial, ...] = ()) -> Findings:
    """As the stage finds them, with max, after these trials."""
    fed = samples(graph)
    measured = observe(graph, fed)
    recipe = replace(ranges_by_method(graph, measured, Calibration("max"), True), trials=trials)
    calibrated = calibrated_with(graph, recipe, PER_CHANNEL, DEFAULT)
    quantized = with_integer_weights(calibrated)
    compared = compare(graph, calibrated, quantized, fed, PER_CHANNEL)
    losses = local_losses(graph, calibrated, quantized, fed, PER_CHANNEL)
    pictures = sample_views(ModelPair(graph, quantized), fed, 2, PER_CHANNEL, NO_OPERATORS, None)
    return findings(
        graph,
        TargetFindings(
            compared,
            recipe,
            losses,
            distributions(measured, recipe),
            activation_channels(measured),
            weight_channels(graph),
            pictures,
            None,
            None,
        ),
    )


def page_of(graph: Graph, name: str = "net:chip") -> Page:
    return page({name: findings_of(graph)}, {})
