"""What the one statistics pass costs: the seconds of `observe` over those of a plain float pass.

    NPUMAKE_SHARED=../shared python benchmarks/one_pass.py [--models yolox] [--samples 100]

Every float classifier and detector of the shared data, fed noise of its own shape. All passes go
through the same samples, and take turns. There are two float passes:

    side by side    a sample on each of two threads: the least that two cores can take
    in a row        what a plain script does: sample after sample, each on two threads of
                    onnxruntime's own

Setting up `observe` always counts; that of the float pass, its session, does in the columns
`with set-up`. CPU seconds say what is computed, whatever else the machine does; wall what is waited
for.

Measured on two cores with AVX-512 and nothing else to do, 100 samples: one run of three, and on the
clock and with set-up how far the three go:

                    side by side     with set-up             in a row, with set-up
                   cpu x  wall x   cpu x  wall x             cpu x  wall x
    mobilenet       2.19    2.27    1.82    1.93  1.89-2.07    1.82    1.91  1.18-2.01
    squeezenet      1.34    1.33    1.28    1.27  1.27-1.33    1.06    1.07  1.07-1.33
    resnet8         2.20    2.07    1.76    1.76  1.76-2.23    2.22    2.49  2.25-2.94
    vww             4.03    4.01    2.37    2.55  2.34-2.55    1.72    1.74  1.74-2.86
    yolox           3.28    3.78    2.24    2.83  2.83-3.16    1.63    2.15  1.55-2.59
    ultraface       1.98    2.08    1.66    1.62  1.62-1.88    1.03    1.07  1.07-1.83
    fastestdet      2.43    2.59    2.16    2.30  2.30-2.47    1.01    1.14  1.14-2.00
    yunet           2.24    2.34    1.98    2.09  2.00-2.40    1.21    1.31  1.25-2.25
    yolov5face      2.99    3.34    1.75    2.01  1.96-2.01    1.04    1.21  1.16-1.66

A script's two threads, which wait for one another at every node, now and then take turns of their
own there: its column says least. On two cores with AVX2 alone, where a float pass takes twice as
long, code before (a fifth more for what ends in ReLUs) took 2.42 or less of side by side with
set-up for all nine. To have every tensor handed out as an array, and do nothing with it, takes 5.4
of side by side for yolox on these cores, with its least and largest value 8.2, and with NumPy's
histogram 56; for vww 1.4, 1.7 and 18.

What is left of yolox is memory: a sample is 9 MB of signed answers of convolutions, written once
and read for the least and the largest of each channel, in .54 ms where they lie in the cache, .9
behind the convolutions, and 1.2 with another sample beside it; a float pass, whose answers never
leave the cache, takes 1.5, on each of two threads as on one. Where the set-up of the floor is left
out, small models show their own: yolov5face's session takes about as long to open as a float pass
of 100 samples, and vww's float passes take 12 ms of CPU.

Tried, and slower: a thread of its own for NumPy behind two that run onnxruntime (1.2 times as long:
answers change cores), samples of small models read four and eight at a time (1.1 to 1.25), and a
lock that keeps all but one thread from NumPy (as long).

NumPy counts a value in 2.6 ns, a loop that numba compiled in 1. But to import numba and to load
that loop, compiled before, takes .24 s here (.6 on slower cores): as much as 150 million values
save, eight times those that are counted of 100 samples of yolox, and thirty times those of vww.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from pipeline.engine.ort import Feeds, OrtSession
from pipeline.engine.parallel import side_by_side
from pipeline.frontends import read_model
from pipeline.graph import Graph, dtype, shape, upgraded
from pipeline.passes import optimized
from pipeline.quant.calibration.observe import observe

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
