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

Measured on two cores with AVX-512 and nothing else to do, 100 samples: one run of five, and on the
clock and with set-up how far the five go:

                    side by side     with set-up             in a row, with set-up
                   cpu x  wall x   cpu x  wall x             cpu x  wall x
    mobilenet       2.15    2.28    1.72    1.84  1.84-1.90    1.72    1.77  1.14-1.93
    squeezenet      1.36    1.38    1.29    1.32  1.25-1.32    1.24    1.30   .95-1.30
    resnet8         2.21    1.94    1.75    1.69  1.49-1.86    2.86    2.81  1.96-2.91
    vww             3.55    3.84    2.20    2.09  2.09-2.76    2.69    2.64  1.62-2.69
    yolox           2.53    3.24    1.71    2.29  2.25-2.43    1.52    2.01  1.24-2.01
    ultraface       2.04    2.13    1.77    1.82  1.69-1.86    1.69    1.72  1.07-1.75
    fastestdet      2.14    2.32    1.86    2.03  1.78-2.16    1.53    1.75   .93-1.78
    yunet           2.21    2.19    1.94    1.98  1.86-2.05    1.79    1.97  1.24-1.97
    yolov5face      2.81    3.49    1.62    2.07  1.98-2.11    1.34    1.70  1.10-1.70

A script's two threads, which wait for one another at every node, now and then take turns of their
own there: its column says least. To have every tensor handed out as an array, and do nothing with
it, takes 5.4 of side by side for yolox on these cores, with its least and largest value 8.2, and
with NumPy's histogram 56; for vww 1.4, 1.7 and 18.

On two cores with AVX2 alone, where a float pass takes two to four times as long, four runs, wall
with set-up: one of them and how far the four go.

                 side by side          in a row
    mobilenet   1.91  1.74-2.01    1.74  1.65-1.81
    squeezenet  1.37  1.25-1.38    1.23  1.06-1.26
    resnet8     1.93  1.93-2.38    1.98  1.98-2.42
    vww         2.08  2.08-2.23    1.98  1.88-1.98
    yolox       2.56  2.14-2.56    1.80  1.31-1.80
    ultraface   1.75  1.73-1.88    1.60  1.40-1.64
    fastestdet  1.88  1.69-2.00    1.50  1.31-1.50
    yunet       1.97  1.90-2.09    1.73  1.48-1.86
    yolov5face  1.89  1.88-2.12    1.55  1.52-1.79

What is left of small models is set-up and counting: of the 25 ms of vww 5 open the session, which
takes 4 of a float pass, and 6 count what waits at the end, under Python's lock, while its 100 float
passes take 6 on two threads. Of the 240 ms of yolox 35 open sessions, 25 count at the end and 23
find what follows from its tensors, all on one thread. Where the set-up of the floor is left out,
small models show their own: yolov5face's session takes about as long to open as a float pass of
100 samples.

Tried, and slower or no faster: a thread of its own for NumPy behind two that run onnxruntime (1.2
times as long: answers change cores), samples of small models read four and eight at a time (1.1 to
1.25), a lock that keeps all but one thread from NumPy, two threads that count at the end, and
segments of 1 and 2 MB instead of 4 (each has its own costs; of 8 and more, two samples at once
leave the cache before they are read: yunet takes 1.2 times as long in one piece).

NumPy counts a value in 2.1 to 2.6 ns (4 to 5 with AVX2), a loop that numba compiled in 1. But to
import numba and to load that loop, compiled before, takes .24 s here (.6 on slower cores): as much
as 150 million values save, eight times those that are counted of 100 samples of yolox, and thirty
times those of vww.
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
