"""The cost of comparing every node, relative to a float pass over the same samples.

    NPUMAKE_SHARED=../shared python benchmarks/comparison.py [--models yolox] [--samples 30]

Three models are compared: float, Q/DQ in float, and exact integers. Every tensor of each is written
and read, and two pairs have seven sums each. `fits` checks how every tensor fits its grid, which a
broken build adds. The float pass runs one sample on each of two cores. Wall seconds, the best of
ROUNDS.

Measured on two cores, 30 samples. Before, the integers ran in NumPy, and two threads summed:

                                                        before:
               float        compared            fits   compared  fits
    mobilenet       0.03    0.59 (21.5x)    0.27 ( 9.9x)       1.51  0.46
    squeezenet      0.09    1.59 (18.4x)    0.57 ( 6.6x)       3.66  0.99
    resnet8         0.01    0.13 (18.5x)    0.07 ( 9.4x)       0.26  0.07
    vww             0.01    0.37 (28.7x)    0.13 (10.2x)       0.70  0.18
    yolox           0.05    2.89 (62.6x)    1.74 (37.6x)       6.23  2.75
    ultraface       0.03    1.18 (34.8x)    0.65 (19.2x)       3.17  1.00
    fastestdet      0.07    2.51 (35.4x)    1.03 (14.6x)       6.36  1.53
    yunet           0.05    1.99 (37.2x)    1.08 (20.2x)       4.68  1.34
    yolov5face      0.02    0.81 (43.6x)    0.34 (18.2x)       1.26  0.42

Of yunet's 1.99 s, the sums of 5.6 million elements per sample take 1.2 s, in one thread at a time.
Setting up the three engines takes .20 s for vww, .78 s for yolox and .10 s for mobilenet,
independent of the number of samples.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from one_pass import FILES, noise, plain_passes

from npumake.data.samples import Samples
from npumake.debug.compare import compare
from npumake.debug.diagnosis.range_fit import fits
from npumake.debug.sensitivity import ModelUnderTest
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

ROUNDS = 3


def seconds(what: Callable[[], object]) -> float:
    def once() -> float:
        started = time.perf_counter()
        what()
        return time.perf_counter() - started

    return min(once() for _ in range(ROUNDS))


def measure(name: str, count: int) -> None:
    graph, feeds = noise(name, count)
    samples = Samples(tuple(map(str, range(count))), feeds.__getitem__)
    target = read_target("ara240")
    found = recipe(graph, observe(graph, samples), samples, Calibration("kl"), target)
    fake = calibrated(graph, found, samples, target)
    exact = quantized(fake, target)
    beside, _ = plain_passes(graph, feeds)
    floor = seconds(beside)
    compared = seconds(lambda: compare(graph, fake, exact, samples, target))
    looked = seconds(lambda: fits(ModelUnderTest(fake, samples)))
    cells = "".join(f"{took:8.2f} ({took / floor:4.1f}x)" for took in (compared, looked))
    print(f"{name:<12}{floor:8.2f}{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(FILES), choices=FILES)
    parser.add_argument("--samples", type=int, default=30)
    given = parser.parse_args()
    print(f"{'':<12}{'float':>8}{'compared':>16}{'fits':>16}")
    for name in given.models:
        measure(name, given.samples)


if __name__ == "__main__":
    main()
