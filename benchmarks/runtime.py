"""The speed of the integer program on MobileNetV1-0.25-224, beside onnxruntime's own int8.

    python benchmarks/runtime.py [--targets rdk-x5 ara240 sl1640] [--runs 100] [--threads 2]

For each chip one `quantized` graph runs in onnxruntime with that many threads, and as a program.
One row per chip has the milliseconds of each, measured in turns, the best of all, and their ratio,
so that other work on the machine matters little. The model is beside the repository, or in the
folder NPUMAKE_SHARED.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `npumake` and Session set it

import onnxruntime
from recovery import MODELS, images, quantized
from workspace import paired

from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.graph import Graph
from npumake.targets.reader import read_target


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
    made = quantized(graph, feeds[:10], target, "max", ())
    theirs = in_onnxruntime(made, given.threads)
    program = lowered(made, target.rounding, target.runnable)
    ours = ExactSession(program, at_once=given.threads)
    fed = dict(feeds[0])
    slow, fast = best(given.runs, [lambda: ours.run(None, fed), lambda: theirs.run(None, fed)])
    print(f"{name:<12} {1000 * slow:8.2f} ms {1000 * fast:8.2f} ms {slow / fast:6.2f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="+", default=["rdk-x5", "ara240", "sl1640"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    model = MODELS["mobilenet"]
    graph = model.read()
    feeds, _ = images(model, graph)
    print(f"{'target':<12} {'program':>11} {'onnxruntime':>11} {'ratio':>7}")
    for name in given.targets:
        measure(name, graph, feeds, given)


if __name__ == "__main__":
    main()
