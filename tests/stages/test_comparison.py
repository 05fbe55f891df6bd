"""A table says from how many samples it comes, and reads no others."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from npumake.cli.tables import comparison_table
from npumake.data.samples import Samples
from npumake.debug.compared import Comparison
from npumake.graph import parse_text
from npumake.project.document import parse_document
from npumake.project.reader import sections_of
from npumake.project.sections import Calibration, ComparisonSettings
from npumake.quant.calibration.observe import observe
from npumake.quant.search.model_graphs import model_graphs
from npumake.stages.calibrated import calibrated
from npumake.stages.comparison import COMPARED_SAMPLES, comparison
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

NPU = read_target("ara240")
WEIGHTS = ", ".join(f"{w:.3f}" for w in np.random.default_rng(1).normal(size=8 * 3 * 9))
GRAPH = parse_text(f"""agraph (float[1,3,64,64] x) => (float[1,8,64,64] y)
    <float[8,3,3,3] w = {{{WEIGHTS}}}> {{
    c = Conv<pads=[1,1,1,1]>(x, w)  y = Relu(c) }}""")
SAMPLE_COUNT = 40


def samples_of(count: int, read: list[int]) -> Samples:
    def sample(index: int) -> dict[str, np.ndarray]:
        read.append(index)
        values = np.random.default_rng(index).normal(size=(1, 3, 64, 64))
        return {"x": values.astype(np.float32)}

    return Samples(tuple(map(str, range(count))), sample)


def stage(samples: Samples, settings: ComparisonSettings) -> Callable[[], Comparison]:
    """The stage on its finished inputs."""
    calibration, statistics = Calibration("max"), observe(GRAPH, samples)
    chosen = recipe(GRAPH, statistics, samples, calibration, NPU)
    fake = calibrated(GRAPH, chosen, samples, NPU)
    graphs = model_graphs(GRAPH, chosen, fake, quantized(fake, NPU), NPU)
    inputs = (graphs, statistics, chosen, samples, calibration, NPU, None)
    return lambda: comparison(*inputs, comparison=settings)


@pytest.mark.parametrize(
    ("requested", "count"),
    [(None, COMPARED_SAMPLES), (1, 1), (7, 7), (400, SAMPLE_COUNT), ("all", SAMPLE_COUNT)],
)
def test_so_many_samples_are_read_evenly_spaced_and_named_in_the_title(requested, count) -> None:
    read: list[int] = []
    compare = stage(samples_of(SAMPLE_COUNT, read), ComparisonSettings(samples=requested))
    read.clear()
    result = compare()
    assert sorted(set(read)) == [at * SAMPLE_COUNT // count for at in range(count)]
    assert (result.samples, result.available) == (count, SAMPLE_COUNT)
    share = f"{SAMPLE_COUNT}" if count == SAMPLE_COUNT else f"{count} of {SAMPLE_COUNT}"
    assert f"{share} samples" in str(comparison_table("digits", result).title)


def test_few_samples_are_all_compared() -> None:
    result = stage(samples_of(1, []), ComparisonSettings())()
    assert (result.samples, result.coverage) == (1, "1 sample")


@pytest.mark.parametrize(
    ("section", "samples"),
    [
        ("", None),
        ("report: {}", "all"),
        ("gates: [{max_cpu_nodes: 0}]", "all"),
        ("report: {}\ncomparison: {samples: 5}", 5),
        ("comparison: {samples: all}", "all"),
    ],
)
def test_reports_and_gates_read_all_samples_unless_the_project_says_less(section, samples) -> None:
    text = f"model: {{path: a.onnx}}\ntargets: [ara240]\n{section}\n"
    sections = sections_of(parse_document(text.encode(), "project.yaml"))
    assert sections.comparison.samples == samples


def test_memory_does_not_grow_with_the_samples() -> None:
    few, many = (peak(stage(samples_of(n, []), ComparisonSettings(samples="all"))) for n in (8, 32))
    sample_bytes = 4 * 3 * 64 * 64
    assert many - few < 4 * sample_bytes  # of 24 more


def peak(what: Callable[[], object]) -> int:
    what()  # caches, and what is imported late
    tracemalloc.start()
    try:
        what()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
