"""Samples that several processes compare give the sums of one process, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.debug.compare import compared
from npumake.debug.compared_batches import MIN_BATCH, compared_models, sums_of_batches
from npumake.distribution import Part, distributing
from npumake.graph import parse_text
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.search.model_graphs import model_graphs
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

NPU = read_target("ara240")
WEIGHTS = ", ".join(f"{n / 7:.3f}" for n in range(-16, 16))
GRAPH = parse_text(f"""agraph (float[1,8] x) => (float[1,4] y)
    <float[8,4] w = {{{WEIGHTS}}}> {{ m = MatMul(x, w)  y = Relu(m) }}""")


class Counted:
    """A distribution that counts the calls; each runs when its result is asked for."""

    def __init__(self, width: int) -> None:
        self.width, self.calls = width, 0

    def map(
        self, function: Part, items: Sequence[bytes], shared: Mapping[str, Any]
    ) -> Iterator[bytes]:
        for item in items:
            self.calls += 1
            yield function(item=item, **shared)


@pytest.mark.parametrize("count", [1, 2 * MIN_BATCH - 1, 2 * MIN_BATCH, 3 * MIN_BATCH + 5])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_batches_give_the_comparison_of_one_process(count: int, width: int) -> None:
    total = 4 * MIN_BATCH
    samples = Samples(
        tuple(map(str, range(total))),
        lambda n: {"x": np.random.default_rng(n).normal(size=(1, 8)).astype(np.float32)},
    )
    chosen = recipe(GRAPH, observe(GRAPH, samples), samples, Calibration("max"), NPU)
    fake = calibrated(GRAPH, chosen, samples, NPU)
    graphs = model_graphs(GRAPH, chosen, fake, quantized(fake, NPU), NPU)
    models, numbers = compared_models(graphs, NPU), [*range(total - count, total)]
    single = [*map(tuple, models.sums(samples.subset(numbers)))]
    place = Counted(width)
    with distributing(place):
        several = [*map(tuple, sums_of_batches(models, samples, numbers))]
    assert place.calls in (0, min(width, count // MIN_BATCH))
    assert (place.calls > 1) == (width > 1 and count >= 2 * MIN_BATCH)
    assert several == single
    assert compared(models, several) == compared(models, single)
