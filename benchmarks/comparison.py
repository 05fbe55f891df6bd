"""What the comparison of every node costs, over a float pass of the same samples.

    NPUMAKE_SHARED=../shared python benchmarks/comparison.py [--models yolox] [--samples 30]

Compared are three models, float, Q/DQ in float, and exact integers: every tensor of each is written
out and read, and seven sums taken of two pairs. `fits` looks how every tensor lies on its grid,
which a broken build adds. The float pass is the least that two cores can take, a sample on each.
Seconds of the clock, the best of ROUNDS.

Measured on two cores, 30 samples; before, the integers ran in NumPy, and two threads summed:

                                                        before:
               float        compared            fits   compared  fits
    mobilenet       0.03    0.66 (25.8x)    0.27 (10.6x)       1.51  0.46
    squeezenet      0.08    1.73 (20.8x)    0.59 ( 7.1x)       3.66  0.99
    resnet8         0.01    0.17 (28.0x)    0.07 (11.9x)       0.26  0.07
    vww             0.01    0.57 (63.6x)    0.15 (16.9x)       0.70  0.18
    yolox           0.05    3.60 (69.1x)    1.78 (34.1x)       6.23  2.75
    ultraface       0.03    1.29 (37.8x)    0.65 (19.0x)       3.17  1.00
    fastestdet      0.07    2.76 (38.1x)    0.97 (13.4x)       6.36  1.53
    yunet           0.05    2.03 (38.2x)    1.03 (19.3x)       4.68  1.34
    yolov5face      0.02    1.07 (55.5x)    0.33 (17.5x)       1.26  0.42

Of yunet's 2.03 s the sums of 5.6 million elements a sample take 1.2, in one thread at a time; the
three engines .7 on two. Setting up the engines takes .36 s of vww's, 1.4 of yolox's and .2 of
mobilenet's, whatever the number of samples, half of it to find out twice which instructions floats
compute exactly. It took .08, .6 and .1 before: of fewer than some 20, 8 and 3 samples comparison
takes longer than it did.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from one_pass import FILES, noise, plain_passes

from pipeline.data.samples import Samples
from pipeline.debug.compare import compare
from pipeline.debug.fit import fits
from pipeline.debug.sensitivity import Patient
from pipeline.project.sections import Calibration
from pipeline.quant.calibration.observe import observe
from pipeline.stages.calibrated import calibrated
from pipeline.stages.quantized import quantized
from pipeline.stages.recipe import recipe
from pipeline.targets.reader import read_target

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
    found = recipe(graph, observe(graph, samples), samples, Calibration("kl"), target, {})
    fake = calibrated(graph, found, samples, target, {})
    exact = quantized(fake, target)
    beside, _ = plain_passes(graph, feeds)
    floor = seconds(beside)
    compared = seconds(lambda: compare(graph, fake, exact, samples, target))
    looked = seconds(lambda: fits(Patient(fake, samples)))
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
