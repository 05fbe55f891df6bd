"""The speed of the integer program on MobileNetV1-0.25-224, beside onnxruntime's own int8.

    python benchmarks/runtime.py [--targets rdk-x5 ara240 sl1640] [--runs 100] [--threads 2]

For each chip one `quantized` graph runs in onnxruntime with that many threads, and as a program;
then as a program of int16, all tensors. A row has the milliseconds of the program and of
onnxruntime's int8, measured in turns, the best of all, and their ratio, so that other work on the
machine matters little. The model is beside the repository, or in the folder NPUMAKE_SHARED.

In CPU time, one thread, ara240: int8 1.9 to 2.2; int16 8.0 in NumPy, 5.9 in two float32 digits
(npumake.engine.products). SqueezeNet: int8 1.3, int16 3.1.
On another machine (AMD EPYC, AVX512-VNNI), by the clock: int8 3.0, int16 8.1 with one thread, 4.5
and 11.2 with two.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `npumake` and Session set it

import onnxruntime
from recovery import MODELS, images, quantized
from workspace import paired

from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.graph import Graph
from npumake.project.sections import Quantization
from npumake.quant.qdq.insert import DEFAULT
from npumake.targets.reader import read_target

INT16 = Quantization(types=({"*": "int16"},))


def in_onnxruntime(graph: Graph, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Spinning threads of theirs would run on while ours are timed.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(graph.to_bytes(), options, ["CPUExecutionProvider"])


def best(runs: int, commands: Sequence[Callable[[], object]]) -> list[float]:
    """The least seconds of each command, run in turn."""
    seconds = [paired(1, commands) for _ in range(runs)]
    return [min(taken) for taken in zip(*seconds, strict=True)]


def measure(name: str, graph: Graph, feeds: Sequence[Feeds], given: argparse.Namespace) -> None:
    target = read_target(name)
    programs = [DEFAULT, *([INT16] if target.takes_int16("Conv") else [])]
    graphs = [quantized(graph, feeds[:10], target, "max", (), types) for types in programs]
    theirs = in_onnxruntime(graphs[0], given.threads)
    fed = dict(feeds[0])
    lowest = [lowered(made, target.rounding, target.runnable) for made in graphs]
    sessions = [theirs, *(ExactSession(program, at_once=given.threads) for program in lowest)]
    fast, *slow = best(given.runs, [partial(session.run, None, fed) for session in sessions])
    for label, taken in zip((name, f"{name} int16"), slow, strict=False):
        print(f"{label:<14} {1000 * taken:8.2f} ms {1000 * fast:8.2f} ms {taken / fast:6.2f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="+", default=["rdk-x5", "ara240", "sl1640"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    model = MODELS["mobilenet"]
    graph = model.read()
    feeds, _ = images(model, graph)
    print(f"{'target':<14} {'program':>11} {'onnxruntime':>11} {'ratio':>7}")
    for name in given.targets:
        measure(name, graph, feeds, given)


if __name__ == "__main__":
    main()
