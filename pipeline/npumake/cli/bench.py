"""npumake bench: how fast a model runs here, counted as `hrt_model_exec perf` counts

example:
  npumake bench out/mobilenet.rdk-x5.hybrid --frame_count 200 --thread_num 2 --profile_path .
  npumake bench both.hybrid -m a                 # one of a packed model
  npumake bench out/model.hybrid --profiling     # SyNAP's table, layer by layer

A bundle built with `compile: {profiling: true}` has that table without being asked.

The times are of this machine, not of the chip. With --profile_path, profiler.log and profiler.csv
hold what each layer took, run by itself.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npumake import digest
from npumake.cli import code_trust
from npumake.cli.keys import keys_of
from npumake.errors import ProjectError

if TYPE_CHECKING:
    from npumake.bundle.archive import Bundle
    from npumake.runtime.timing import LayerTiming, Perf

MOST_THREADS = 8
RUNS = 5  # of a layer by itself
NO_TABLE = "no table of the layers: build it with `compile: {profiling: true}`, or say --profiling"
TYPES = {
    "conv": "ConvolutionReluPoolingLayer2",
    "fully_connected_twice": "FullyConnectedReluLayer",
    "matmul": "FullyConnectedReluLayer",
    "softmax": "Softmax2Layer",
    "transpose": "TensorTranspose",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, nargs="?", metavar="MODEL")
    parser.add_argument("--model_file", "--model-file", type=Path, dest="file", metavar="MODEL")
    names = ("-m", "--model_name", "--model-name")
    parser.add_argument(*names, dest="name", metavar="NAME", help="one of a packed model")
    for name, default, what in (
        ("frame_count", 200, "frames to run, 200"),
        ("perf_time", 0, "minutes to run instead; 0: go by the frames"),
        ("thread_num", 1, "frames at a time, 1 to 8"),
        ("core_id", 0, "without effect: which core of the chip"),
    ):
        spellings = (f"--{name}", f"--{name.replace('_', '-')}")
        parser.add_argument(*spellings, type=int, default=default, metavar="N", help=what)
    spellings = ("--profile_path", "--profile-path")
    parser.add_argument(*spellings, type=Path, metavar="DIR", help="profiler.log, profiler.csv")
    parser.add_argument("--profiling", action="store_true", help="SyNAP's table of the layers")
    code_trust.arguments(parser)


def run(given: argparse.Namespace) -> int:
    from npumake.bundle.archive import Bundle
    from npumake.bundle.opening import opened_one
    from npumake.runtime.timing import noise, perf

    if (given.model is None) == (given.file is None):
        raise ProjectError("which model?", "--model_file", "name one")
    given.model, given.name = given.model or given.file, given.name or None
    if not 1 <= given.thread_num <= MOST_THREADS:
        raise ProjectError(f"1 to {MOST_THREADS} threads, not {given.thread_num}", "--thread_num")
    if given.frame_count < 1 or given.perf_time < 0:
        raise ProjectError("there is nothing to run", "--frame_count")
    is_bundle = given.model.suffix == Bundle.suffix
    if given.profiling and not is_bundle:
        raise ProjectError("only the layers of a .hybrid are run one by one", "--profiling")
    session = code_trust.session(given, given.model, given.name, threads=1)
    feeds = noise(session.get_inputs())
    found = perf(session, feeds, given.frame_count, 60 * given.perf_time, given.thread_num)
    print(_text(found, given.thread_num))
    bundle = opened_one(given.model, given.name, keys_of(given)) if is_bundle else None
    profiled = bundle is not None and bool(given.profiling or bundle.settings.get("profiling"))
    steps = _layers(bundle, feeds, given) if bundle and (profiled or given.profile_path) else []
    if bundle and profiled:
        print(_table(steps, found, bundle))
    elif bundle is not None:
        print(NO_TABLE)
    if given.profile_path:
        _write(given, found, steps)
    return 0


def _text(found: Perf, threads: int) -> str:
    return (
        "Running condition:\n"
        f"  Thread number is: {threads}\n"
        f"  Frame count is: {len(found.latencies)}\n"
        f"  Program run time: {1000 * found.wall:.6f} ms\n"
        "Perf result:\n"
        f"  Frame totally latency is: {1000 * sum(found.latencies):.6f} ms\n"
        f"  Average latency is: {1000 * found.average:.6f} ms\n"
        f"  Frame rate is: {found.rate:.6f} FPS"
    )


def _layers(bundle: Bundle, feeds: Any, given: argparse.Namespace) -> list[LayerTiming]:
    """One image of a batch."""
    from npumake.runtime.timing import layers

    one = {
        name: x[: len(x) // bundle.batch] if bundle.batch > 1 else x for name, x in feeds.items()
    }
    operators = code_trust.operators(given, bundle, given.model)
    return list(layers(bundle.program, one, RUNS, operators))


def _table(steps: Sequence[LayerTiming], found: Perf, bundle: Bundle) -> str:
    """The network_profile of SyNAP's driver; cycles are the chip's, which is not here."""
    from npumake.bundle.memory import tensor_bytes

    tensors = bundle.program.tensors
    borders = [tensors[name] for name in (*bundle.program.inputs, *bundle.program.outputs)]
    held = bundle.batch * sum(map(tensor_bytes, borders))
    program = [
        f"pid: {os.getpid()}, nid: 1, inference_count: {len(found.latencies)}, "
        f"inference_time: {1e6 * sum(found.latencies):.0f}, "
        f"inference_last: {1e6 * found.latencies[-1]:.0f}, iobuf_count: {len(borders)}, "
        f"iobuf_size: {held}, layers: {len(steps)}",
        "| lyr |      cycle |    time_us |    byte_rd |    byte_wr | type",
    ]
    for index, one in enumerate(steps):
        kind = TYPES.get(one.step.op, f"{one.step.op.title().replace('_', '')}Layer")
        numbers = (f"{1e6 * min(one.seconds):.0f}", one.bytes_read, one.bytes_written)
        cells = " | ".join(f"{cell:>10}" for cell in ("--", *numbers))
        program.append(f"| {index:3} | {cells} | {kind}")
    return "\n".join(program)


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds."""
    average = sum(seconds) / len(seconds)
    named = {"avg_time": average, "max_time": max(seconds), "min_time": min(seconds)}
    return {name: 1000 * value for name, value in named.items()}


def _write(given: argparse.Namespace, found: Perf, steps: Sequence[LayerTiming]) -> None:
    """Raises ProjectError where the folder cannot be written."""
    times = {one.step.name: _spread(one.seconds) for one in steps}
    chip = [sum(one.seconds) / len(one.seconds) for one in steps if one.step.op != "onnx"]
    conditions = {
        "core_id": given.core_id,
        "frame_count": len(found.latencies),
        "model_name": given.model.stem,
        "run_time": 1000 * found.wall,
        "thread_num": given.thread_num,
    }
    sections: list[Any] = [
        {
            "perf_result": {"FPS": found.rate, "average_latency": 1000 * found.average},
            "running_condition": conditions,
        },
        {
            "chip_latency": {"BPU_inference_time_cost": {"avg_time": 1000 * sum(chip)}},
            "model_latency": times,
            "task_latency": {"TaskRunningTime": _spread(found.latencies)},
        },
    ]
    log = "***\n".join(digest.text(section, indent=2) + "\n" for section in sections)
    rows = [f"{name},{s['avg_time']},{s['max_time']},{s['min_time']}" for name, s in times.items()]
    try:
        given.profile_path.mkdir(parents=True, exist_ok=True)
        (given.profile_path / "profiler.log").write_text(log, encoding="utf-8")
        table = "\n".join(["node,avg_time,max_time,min_time", *rows, ""])
        (given.profile_path / "profiler.csv").write_text(table, encoding="utf-8")
    except OSError as error:
        where = str(given.profile_path)
        raise ProjectError(f"cannot write: {error.strerror}", where) from error
