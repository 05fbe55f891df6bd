"""The speed of the integer program, beside onnxruntime's own int8.

    python benchmarks/runtime.py [--models mobilenet squeezenet] [--targets rdk-x5 ara240]
                                 [--runs 100] [--threads 1 2]

For each model and chip one `quantized` graph runs in onnxruntime, and as a program; then a program
of int16, all tensors, runs. A row has the milliseconds of the program and of onnxruntime's int8,
measured in turns, the best of all, and their ratio, so that other work on the machine matters
little. The models are beside the repository, or in the folder NPUMAKE_SHARED.

AMD EPYC with AVX512-VNNI, ara240, by the clock, --runs 60:

                        one thread               two threads
                        int8    int16            int8    int16
    mobilenet           2.97     5.36 (8.2)      4.7      7.8
    squeezenet          1.37     2.39 (3.0)      1.66     3.03
    mobilenet-v2        3.06     5.57 (8.5)      3.47     6.20
    yolox               2.88     3.91 (5.0)      2.67     3.59

In brackets is the figure before products near a tie were counted (npumake.engine.ties): each 16-bit
mantissa was split. The goals are 3 and 6; with two threads the small models miss them. Without
VNNI, in CPU time, one thread, mobilenet had 1.9 to 2.2 and 5.9 before.

The sums of int8 take a third of the time; casts to float64, the product, its rounding and the clamp
the rest. These attempts were not kept:

    the quotient in float32, where each     a factor is found for 80 % of mobilenet's channels, but
    channel has a factor without errors     for all channels in only 4 of its 28 layers
    no blocked layout                       a third slower: convolutions gain more than the
                                            reordering between them costs
    threads that wait by spinning           12 % faster with two threads, but they take the core
                                            of the next session
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `npumake` and Session set it

import onnxruntime
from calibration import MODELS, prepared
from recovery import quantized
from workspace import paired

from npumake.data.samples import Samples
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.graph import Graph
from npumake.project.sections import Quantization
from npumake.quant.qdq.insert import DEFAULT
from npumake.targets.reader import read_target

SAMPLES = 10  # that calibrate
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


def measure(title: str, graph: Graph, samples: Samples, given: argparse.Namespace) -> None:
    target, feeds = read_target(title.split()[1]), list(samples)
    programs = [DEFAULT, *([INT16] if target.takes_int16("Conv") else [])]
    graphs = [quantized(graph, feeds, target, "max", (), types) for types in programs]
    lowest = [lowered(made, target.rounding, target.runnable) for made in graphs]
    for threads in given.threads:
        theirs = in_onnxruntime(graphs[0], threads)
        sessions = [theirs, *(ExactSession(program, at_once=threads) for program in lowest)]
        fast, *slow = best(given.runs, [partial(s.run, None, dict(feeds[0])) for s in sessions])
        for types, taken in zip(("int8", "int16"), slow, strict=False):
            print(
                f"{title:<20} {types:<5} {threads:>7} {1000 * taken:8.2f} ms {1000 * fast:8.2f} ms"
                f" {taken / fast:6.2f} x",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["mobilenet"])
    parser.add_argument("--targets", nargs="+", default=["rdk-x5", "ara240", "sl1640"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    print(f"{'program':<26} {'threads':>7} {'ours':>11} {'onnxruntime':>11} {'ratio':>7}")
    for model, target in product(given.models, given.targets):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepared(model, folder, SAMPLES)
            graph, samples = (
                Graph.load(folder / "float.onnx"),
                Samples.load(folder / "calibrate.npz"),
            )
            measure(f"{model} {target}", graph, samples, given)


if __name__ == "__main__":
    main()
