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

Measured on two cores with nothing else to do, 100 samples:

                    side by side     with set-up   in a row, with set-up
                   cpu x  wall x   cpu x  wall x           cpu x  wall x
    mobilenet       2.46    2.54    2.14    2.23            1.89    1.99
    squeezenet      1.38    1.42    1.33    1.37            1.03    1.07
    resnet8         2.64    2.58    2.19    2.06            1.83    1.92
    vww             3.47    3.55    2.38    2.39            1.64    1.79
    yolox           2.60    3.00    2.17    2.42            1.55    1.88
    ultraface       2.10    2.17    1.88    1.97            1.75    1.88
    fastestdet      2.39    2.58    2.12    2.31            1.63    1.78
    yunet           2.14    2.24    1.91    2.03            1.65    1.76
    yolov5face      3.17    3.63    1.99    2.20            1.34    1.47

That is one run; others, some of code before, had on the clock and with set-up vww at 2.01 to 2.61,
yolox at 2.37 to 3.09 and yunet at 2.03 to 2.57. On cores with AMX, whose floor is lower, resnet8 in
a row took 2.53 to 3.13 (2.58 to 3.45), all of it 34 to 50 ms; of 400 samples 1.90 (2.14). Where the
set-up of the floor is left out, small models show their own: yolov5face's session takes half as
long to open as a float pass of 100 samples. vww's float passes take 30 ms of CPU; a fifth of what
statistics take is the same for one sample and for a thousand. What yolox waits for beyond its CPU
is what one thread does alone: the session that hands out blocks of channels is rewritten and read,
.1 of .9 s.

NumPy counts a value in 4 ns, a loop that numba compiled in 1. But to import numba and to load that
loop, compiled before, takes .6 s of CPU: as much as 200 million values save, ten times those that
100 samples of yolox have, and forty times those of vww.
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
