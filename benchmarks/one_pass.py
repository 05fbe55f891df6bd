"""The cost of the statistics pass: seconds of `observe` over those of a plain float pass.

    NPUMAKE_SHARED=../shared python benchmarks/one_pass.py [--models yolox] [--samples 100]

It runs every float classifier and detector of the shared data on noise. All passes use the same
samples, in turns. There are two float passes:

    side by side    a sample on each of two threads: the minimum for two cores
    in a row        like a plain script: sample after sample, each on two threads of onnxruntime

The set-up of `observe` always counts. That of the float pass, its session, counts in the columns
`with set-up`. CPU seconds are independent of other work on the machine; wall is the waiting time.

Measured on two busy cores (a load of 10 to 20), 100 samples, one run of five, before and after the
observer was simplified. CPU seconds hardly depend on the load. The clock does, so its columns are
left out:

                   side by side, cpu x     with set-up, cpu x
                    before     after       before     after
    mobilenet          2.57      2.76         2.17      2.24
    squeezenet         1.47      1.79         1.39      1.72
    resnet8            3.35      3.79         2.55      2.75
    vww                4.77      5.89         2.50      3.48
    yolox              3.14      3.40         2.41      2.63
    ultraface          2.20      3.45         1.90      2.93
    fastestdet         1.98      2.69         1.67      2.35
    yunet              2.28      3.34         2.11      3.05
    yolov5face         2.68      4.06         1.73      2.20

The cost of simplicity. Each optimization was switched off alone, in turns with the full pass, on
100 samples. The figures are CPU seconds over those of the full pass, with the median of the clock
in brackets (its quartiles were .2 apart on the busy machine). A build of ultraface with 100 samples
takes 22 s, of yolox 56 s, with 1.4 s and 1.7 s for the pass. So no optimization saves 15 % of the
waiting time.

                                       mobilenet    vww          yolox        ultraface
    segments of 4 MB                   0.93 (0.96)  1.02 (1.05)  1.11 (1.13)  1.02 (1.05)  dropped
    channels in onnxruntime's blocks   0.91 (0.91)  0.95 (0.98)  0.98 (1.09)  1.00 (0.80)  dropped
    side branches first                1.04 (1.11)  0.99 (1.07)  1.02 (1.10)  1.20 (1.18)  dropped
    all three: its rewritten model     1.09 (1.13)  1.04 (1.02)  1.06 (1.00)  1.24 (1.18)  dropped
    large clamps pooled in the graph   1.13 (1.28)  0.93 (0.96)  1.00 (1.01)  1.03 (0.97)  dropped
    the same, without the former       1.00 (0.97)  1.00 (1.20)  1.07 (1.18)  1.29 (1.37)  dropped
    clamps read on one side            1.11 (1.06)  1.03 (1.02)  1.00 (1.07)  1.08 (1.07)  dropped
    small channels read whole          1.04 (1.03)  1.09 (0.99)  1.00 (1.04)  0.98 (1.05)  dropped
    buffer begins with a cache line    0.97 (0.87)  1.00 (0.92)  1.00 (0.91)  1.00 (0.99)  dropped
    half of the bins for clamps        1.00 (1.12)  1.02 (0.95)  1.00 (1.07)  0.90 (0.83)  dropped
    bins by the bits of a float        1.09 (1.16)  0.94 (0.84)  0.98 (0.98)  0.93 (0.89)  dropped
    samples counted together           1.39 (1.30)  1.75 (1.85)  1.70 (1.61)  1.30 (1.32)  kept
    later samples counted thinner      1.24 (1.24)  1.47 (1.48)  1.27 (1.26)  1.06 (0.93)  kept
    derived tensors not observed       1.07 (1.08)  1.05 (0.98)  1.98 (1.86)  0.96 (0.97)  kept

The last two also affect the bytes of the statistics, which had to stay. Without the dropped ones,
880 of 1,700 lines, the pass takes 1.1 to 1.6 times the CPU seconds.

These were slower or no faster: a thread for NumPy behind two for onnxruntime (1.2 times as long,
because outputs change cores), reading four or eight samples of small models at a time (1.1 to
1.25), a lock that admits one thread to NumPy, and two threads that count at the end.

NumPy counts a value in 2 to 3 ns, a loop compiled by numba in 1. But importing numba and loading
the compiled loop takes .24 s here. That is the gain on 150 million values, eight times those that
are counted for 100 samples of yolox.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from npumake.engine.ort import Feeds, OrtSession
from npumake.engine.parallel import side_by_side
from npumake.frontends import read_model
from npumake.graph import Graph, dtype, shape, upgraded
from npumake.passes import optimized
from npumake.quant.calibration.observe import observe

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
FILES = {
    "mobilenet": "classification/mobilenet_v1_0.25_224_float.tflite",
    "squeezenet": "classification/squeezenet1.1_winml_fp32_DERIVED.onnx",
    "resnet8": "classification/cifar10_resnet8_float.tflite",
    "vww": "classification/vww_96_float.tflite",
    "yolox": "detection/yolox_person_192.onnx",
    "ultraface": "detection/ultraface_slim320_rawhead.onnx",
    "fastestdet": "detection/fastestdet_352.onnx",
    "yunet": "detection/yunet_n_320_320.onnx",
    "yolov5face": "detection/sscma_yolov5tiny_face_96.onnx",
}
ROUNDS = 5
WIDTHS = (8, 8, 8, 8, 16, 8)


def spent(what: Callable[[], object]) -> np.ndarray:
    """CPU seconds, wall seconds."""
    before = time.process_time(), time.perf_counter()
    what()
    return np.subtract((time.process_time(), time.perf_counter()), before)


def noise(name: str, samples: int) -> tuple[Graph, list[Feeds]]:
    """The model, and what it is fed."""
    path = SHARED / "models" / FILES[name]
    graph = optimized(upgraded(read_model(path.read_bytes(), path.name)).with_shapes())
    rng = np.random.default_rng(0)
    return graph, [
        {str(v.name): rng.normal(size=shape(v)).astype(dtype(v)) for v in graph.inputs}
        for _ in range(samples)
    ]


def plain_passes(graph: Graph, feeds: list[Feeds]) -> list[Callable[[], object]]:
    """Side by side, and in a row."""
    session = OrtSession(graph.to_bytes())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    script = onnxruntime.InferenceSession(
        graph.to_bytes(), options, providers=["CPUExecutionProvider"]
    )
    return [
        lambda: [*side_by_side(lambda feed: len(session.run(None, feed)), feeds, 2)],
        lambda: [len(script.run(None, feed)) for feed in feeds],
    ]


def ratios(graph: Graph, feeds: list[Feeds]) -> np.ndarray:
    """CPU and wall seconds of statistics over those of the float passes before and behind it: side
    by side, the same with the pass's set-up, and in a row with its set-up; the medians of ROUNDS.
    """
    plain = plain_passes(graph, feeds)

    def passes() -> np.ndarray:
        return np.array([spent(run) for run in plain])

    passes()  # onnxruntime's first run asks for its memory
    floors = [passes()]
    found = []
    for _ in range(ROUNDS):
        statistics = spent(lambda: observe(graph, feeds))
        floors.append(passes())
        beside, row = (floors[-2] + floors[-1]) / 2
        set_up = spent(lambda: OrtSession(graph.to_bytes()))
        over = [beside, beside + set_up, row + set_up]
        found.append(np.concatenate([statistics / floor for floor in over]))
    return np.median(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(FILES), choices=FILES)
    parser.add_argument("--samples", type=int, default=100)
    given = parser.parse_args()
    print(f"{'':<12}{'side by side':>16}{'with set-up':>16}{'in a row, with set-up':>24}")
    print(f"{'':<12}" + f"{'cpu x':>8}{'wall x':>8}" * 2 + f"{'cpu x':>16}{'wall x':>8}")
    for name in given.models:
        graph, feeds = noise(name, given.samples)
        row = zip(ratios(graph, feeds), WIDTHS, strict=True)
        cells = "".join(f"{ratio:{width}.2f}" for ratio, width in row)
        print(f"{name:<12}{cells}", flush=True)


if __name__ == "__main__":
    main()
