"""Cost and accuracy of calibration, against onnxruntime.quantization.quantize_static.

    NPUMAKE_SHARED=../shared python benchmarks/calibration.py [--models squeezenet] [--samples 100]

Every method quantizes the same optimized float model on the same images, in a process of its own.
The floor is a float pass over the samples, read from the same file. It runs on two threads, or one
sample on each, whichever is faster, without the time of its session. The statistics pass is given
in floors, of wall and of CPU seconds. onnxruntime measures the cosine of the worst output and the
top-1 agreement with the float model, on as many other images.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from onnxruntime import quantization
from PIL import Image
from seeded_networks import mobilenet_v2

from npumake.data.samples import Samples
from npumake.engine.ort import OrtSession
from npumake.engine.parallel import side_by_side
from npumake.frontends import read_model
from npumake.graph import Graph, upgraded
from npumake.kernels.measure import Agreement, agreement
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
TARGET = "ara240"
CAFFE_MEAN = np.array([103.939, 116.779, 123.68], np.float32)

Pixels = np.ndarray  # (height, width, 3), float32, RGB 0..255


class Model(NamedTuple):
    file: str
    size: tuple[int, int]  # width, height
    fed: Callable[[Pixels], np.ndarray]
    written: Callable[[bytes], bytes] = lambda file: file  # the model, from that of the file

    def read(self) -> tuple[str, bytes]:
        """The name of its file, and its bytes."""
        path = SHARED / "models" / self.file
        return path.name, self.written(path.read_bytes() if path.is_file() else b"")


def _of_side(side: int) -> Callable[[bytes], bytes]:
    """A model of pictures with the same weights, for pictures of `side` pixels."""

    def resized(file: bytes) -> bytes:
        graph = read_model(file, "model.onnx")
        (images,) = graph.inputs
        graph.set_input_shape(images, (1, 3, side, side))
        return graph.to_bytes()

    return resized


MODELS = {
    "mobilenet": Model(
        "classification/mobilenet_v1_0.25_224_float.tflite", (224, 224), lambda x: x / 127.5 - 1
    ),
    "squeezenet": Model(
        "classification/squeezenet1.1_winml_fp32_DERIVED.onnx",
        (224, 224),
        lambda x: (x[..., ::-1] - CAFFE_MEAN).transpose(2, 0, 1),
    ),
    "yolox": Model(
        "detection/yolox_person_192.onnx", (192, 192), lambda x: x[..., ::-1].transpose(2, 0, 1)
    ),
    "yolox-416": Model(
        "detection/yolox_person_192.onnx",
        (416, 416),
        lambda x: x[..., ::-1].transpose(2, 0, 1),
        _of_side(416),
    ),
    "mobilenet-v2": Model(
        "mobilenet_v2.onnx",  # of a seed
        (224, 224),
        lambda x: (x / 127.5 - 1).transpose(2, 0, 1),
        lambda _: mobilenet_v2(),
    ),
    "ultraface": Model(
        "detection/ultraface_slim320_rawhead.onnx",
        (320, 240),
        lambda x: ((x - 127) / 128).transpose(2, 0, 1),
    ),
    "fastestdet": Model(
        "detection/fastestdet_352.onnx",
        (352, 352),
        lambda x: (x[..., ::-1] / 255).transpose(2, 0, 1),
    ),
}


def prepared(name: str, folder: Path, count: int) -> None:
    """The float model, and two sets of samples: to calibrate with and to measure on."""
    model = MODELS[name]
    file, content = model.read()
    graph = optimized(upgraded(read_model(content, file)).with_shapes())
    graph.save(folder / "float.onnx")
    fed = str(graph.inputs[0].name)
    files = sorted((SHARED / "images" / "imagenet500").rglob("*.JPEG"))
    files += sorted((SHARED / "images" / "imagenet500").rglob("*.jpg"))

    def read(index: int) -> dict[str, np.ndarray]:
        # Every other image; more than there are come again, for the sake of memory.
        picture = Image.open(files[index % len(files)]).convert("RGB")
        pixels = np.asarray(picture.resize(model.size, Image.Resampling.BILINEAR), np.float32)
        return {fed: np.ascontiguousarray(model.fed(pixels)[None], np.float32)}

    for kind, first in (("calibrate", 0), ("measure", 1)):
        names = tuple(str(index) for index in range(count))
        Samples(names, lambda i, first=first: read(2 * i + first)).save(folder / f"{kind}.npz")  # type: ignore[misc]


def floor(folder: Path) -> dict[str, float]:
    graph, samples = Graph.load(folder / "float.onnx"), Samples.load(folder / "calibrate.npz")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    both = onnxruntime.InferenceSession(
        graph.to_bytes(), options, providers=["CPUExecutionProvider"]
    )
    one = OrtSession(graph.to_bytes())
    ways = (
        lambda: [len(both.run(None, dict(feed))) for feed in samples],
        lambda: [*side_by_side(lambda feed: len(one.run(None, feed)), samples)],
    )
    spent = [_spent(way) for way in ways for _ in range(3)]
    return dict(zip(("floor", "floor cpu"), map(min, zip(*spent, strict=True)), strict=True))


def ours(folder: Path, method: str) -> dict[str, float]:
    graph, samples = Graph.load(folder / "float.onnx"), Samples.load(folder / "calibrate.npz")
    target = read_target(TARGET)
    start, busy = time.perf_counter(), time.process_time()
    statistics = observe(graph, samples)
    measured, worked = time.perf_counter(), time.process_time() - busy
    asked = Calibration(recipe="best") if method == "best" else Calibration(method)  # type: ignore[arg-type]
    found = recipe(graph, statistics, samples, asked, target)
    quantized(calibrated(graph, found, samples, target), target).save(folder / "quantized.onnx")
    end = time.perf_counter()
    return {
        "seconds": end - start,
        "statistics": measured - start,
        "statistics cpu": worked,
        "swap": end - measured,
    }


def theirs(folder: Path, method: str) -> dict[str, float]:
    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._feeds: Iterator[object] = iter(Samples.load(folder / "calibrate.npz"))

        def get_next(self) -> object:
            return next(self._feeds, None)

    start = time.perf_counter()
    quantization.quantize_static(
        str(folder / "float.onnx"),
        str(folder / "quantized.onnx"),
        Reader(),
        per_channel=True,
        calibrate_method=quantization.CalibrationMethod[method],
    )
    return {"seconds": time.perf_counter() - start}


def closeness(folder: Path) -> dict[str, float]:
    samples = Samples.load(folder / "measure.npz")
    real, made = (OrtSession((folder / f).read_bytes()) for f in ("float.onnx", "quantized.onnx"))
    pairs = [(real.run(None, feed), made.run(None, feed)) for feed in samples]
    cosines = [
        sum((agreement(a[index], b[index]) for a, b in pairs), Agreement()).cosine
        for index in range(len(real.output_names))
    ]
    same = [a[0].argmax() == b[0].argmax() for a, b in pairs]
    return {"cosine": min(cosines), "top1": float(np.mean(same))}


METHODS = ("max", "max_percentile", "kl", "mse", "mix", "default", "best")
CONTENDERS: dict[str, tuple[Callable[[Path, str], dict[str, float]], str]] = {
    **{f"npumake {m}": (ours, m) for m in METHODS},
    **{f"onnxruntime {m}": (theirs, m) for m in ("MinMax", "Percentile", "Entropy")},
}


def _spent(what: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    start, busy = time.perf_counter(), time.process_time()
    what()
    return time.perf_counter() - start, time.process_time() - busy


def contest(folder: Path, contender: str) -> dict[str, float]:
    """What one contender comes to, in a process of its own."""
    command = [sys.executable, __file__, "--one", contender, str(folder)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def run_one(contender: str, folder: Path) -> dict[str, float]:
    if contender == "floor":
        return floor(folder)
    contend, method = CONTENDERS[contender]
    found = contend(folder, method)
    return {**found, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run_one(given.one[0], Path(given.one[1]))))
        return
    print(
        f"{'':<26}{'s':>8}{'x floor':>9}{'stat x':>8}{'cpu x':>8}{'swap s':>8}"
        f"{'MB':>7}{'cosine':>9}{'top1':>7}"
    )
    for name in given.models:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            prepared(name, folder, given.samples)
            fastest = contest(folder, "floor")
            print(f"{name}: {given.samples} samples, floor {fastest['floor']:.3f} s")
            for contender in given.contenders:
                found = contest(folder, contender) | closeness(folder)
                print(row(contender, found, fastest), flush=True)


def row(contender: str, found: dict[str, float], floor: dict[str, float]) -> str:
    seconds, swap = found["seconds"], found.get("swap")
    passes = [
        found[key] / least if key in found else None
        for key, least in (("statistics", floor["floor"]), ("statistics cpu", floor["floor cpu"]))
    ]
    return (
        f"  {contender:<24}{seconds:8.2f}{seconds / floor['floor']:9.1f}"
        + "".join(f"{'' if value is None else f'{value:.2f}':>8}" for value in (*passes, swap))
        + f"{found['rss']:7.0f}{found['cosine']:9.5f}{found['top1']:7.2f}"
    )


if __name__ == "__main__":
    main()
