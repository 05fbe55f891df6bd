"""npumake bench: measure a model on this machine, in the format of `hrt_model_exec perf`

example:
  npumake bench out/mobilenet.rdk-x5.hybrid --frame_count 200 --thread_num 2 --profile_path .
  npumake bench both.hybrid -m a                 # one of a packed model
  npumake bench out/model.hybrid --profiling     # SyNAP's table, layer by layer

A bundle built with `compile: {profiling: true}` prints that table by default.

Times are measured on this machine, not on the chip. --profile_path writes profiler.log and
profiler.csv with the time of each layer, run separately.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npumake import digest
from npumake.cache.folders import cure_of
from npumake.cli import code_trust
from npumake.cli.keys import keys_of
from npumake.errors import ProjectError

if TYPE_CHECKING:
    from npumake.bundle.archive import Bundle
    from npumake.runtime.timing import LayerTiming, Perf

MAX_THREADS = 8
RUNS = 5  # of a single layer
NO_TABLE = "no table of layers: build it with `compile: {profiling: true}`, or add --profiling"
LAYER_TYPES = {
    "conv": "ConvolutionReluPoolingLayer2",
    "fully_connected_twice": "FullyConnectedReluLayer",
    "matmul": "FullyConnectedReluLayer",
    "softmax": "Softmax2Layer",
    "transpose": "TensorTranspose",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a file, or PROJECT[:TARGET] that was built"
    )
    parser.add_argument("--model_file", "--model-file", dest="file", metavar="MODEL")
    names = ("-m", "--model_name", "--model-name")
    parser.add_argument(*names, dest="name", metavar="NAME", help="one of a packed model")
    for name, default, help_text in (
        ("frame_count", 200, "frames to run, 200"),
        ("perf_time", 0, "minutes to run instead; 0: count frames"),
        ("thread_num", 1, "frames at a time, 1 to 8"),
        ("core_id", 0, "without effect: which core of the chip"),
    ):
        spellings = (f"--{name}", f"--{name.replace('_', '-')}")
        parser.add_argument(*spellings, type=int, default=default, metavar="N", help=help_text)
    spellings = ("--profile_path", "--profile-path")
    parser.add_argument(*spellings, type=Path, metavar="DIR", help="profiler.log, profiler.csv")
    parser.add_argument("--profiling", action="store_true", help="SyNAP's table of the layers")
    code_trust.arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from npumake.bundle.archive import Bundle
    from npumake.bundle.opening import opened_one
    from npumake.cli.selection import artifact_path
    from npumake.runtime.timing import noise, perf

    if (arguments.model is None) == (arguments.file is None):
        raise ProjectError("which model?", "--model_file", "name one")
    arguments.model = artifact_path(arguments.model or arguments.file)
    arguments.name = arguments.name or None
    if not 1 <= arguments.thread_num <= MAX_THREADS:
        raise ProjectError(
            f"1 to {MAX_THREADS} threads, not {arguments.thread_num}", "--thread_num"
        )
    if arguments.frame_count < 1 or arguments.perf_time < 0:
        raise ProjectError("there is nothing to run", "--frame_count")
    is_bundle = arguments.model.suffix == Bundle.suffix
    if arguments.profiling and not is_bundle:
        raise ProjectError("only the layers of a .hybrid are run one by one", "--profiling")
    session = code_trust.session(arguments, arguments.model, arguments.name, threads=1)
    feeds = noise(session.get_inputs())
    timing = perf(
        session, feeds, arguments.frame_count, 60 * arguments.perf_time, arguments.thread_num
    )
    print(_text(timing, arguments.thread_num))
    bundle = opened_one(arguments.model, arguments.name, keys_of(arguments)) if is_bundle else None
    profiled = bundle is not None and bool(arguments.profiling or bundle.settings.get("profiling"))
    steps = (
        _layers(bundle, feeds, arguments) if bundle and (profiled or arguments.profile_path) else []
    )
    if bundle and profiled:
        print(_table(steps, timing, bundle))
    elif bundle is not None:
        print(NO_TABLE)
    if arguments.profile_path:
        _write(arguments, timing, steps)
    return 0


def _text(timing: Perf, threads: int) -> str:
    return (
        "Running condition:\n"
        f"  Thread number is: {threads}\n"
        f"  Frame count is: {len(timing.latencies)}\n"
        f"  Program run time: {1000 * timing.wall:.6f} ms\n"
        "Perf result:\n"
        f"  Frame totally latency is: {1000 * sum(timing.latencies):.6f} ms\n"
        f"  Average latency is: {1000 * timing.average:.6f} ms\n"
        f"  Frame rate is: {timing.rate:.6f} FPS"
    )


def _layers(bundle: Bundle, feeds: Any, arguments: argparse.Namespace) -> list[LayerTiming]:
    """Times each layer for one image of a batch."""
    from npumake.runtime.timing import layers

    image_feeds = {
        name: x[: len(x) // bundle.batch] if bundle.batch > 1 else x for name, x in feeds.items()
    }
    operators = code_trust.operators(arguments, bundle, arguments.model)
    return list(layers(bundle.program, image_feeds, RUNS, operators))


def _table(steps: Sequence[LayerTiming], timing: Perf, bundle: Bundle) -> str:
    """The network_profile of SyNAP's driver, without the chip's cycles."""
    from npumake.bundle.memory import tensor_bytes

    tensors = bundle.program.tensors
    borders = [tensors[name] for name in (*bundle.program.inputs, *bundle.program.outputs)]
    border_bytes = bundle.batch * sum(map(tensor_bytes, borders))
    program = [
        f"pid: {os.getpid()}, nid: 1, inference_count: {len(timing.latencies)}, "
        f"inference_time: {1e6 * sum(timing.latencies):.0f}, "
        f"inference_last: {1e6 * timing.latencies[-1]:.0f}, iobuf_count: {len(borders)}, "
        f"iobuf_size: {border_bytes}, layers: {len(steps)}",
        "| lyr |      cycle |    time_us |    byte_rd |    byte_wr | type",
    ]
    for index, layer in enumerate(steps):
        kind = LAYER_TYPES.get(layer.step.op, f"{layer.step.op.title().replace('_', '')}Layer")
        numbers = (f"{1e6 * min(layer.seconds):.0f}", layer.bytes_read, layer.bytes_written)
        cells = " | ".join(f"{cell:>10}" for cell in ("--", *numbers))
        program.append(f"| {index:3} | {cells} | {kind}")
    return "\n".join(program)


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    """Average, maximum and minimum in milliseconds."""
    average = sum(seconds) / len(seconds)
    named = {"avg_time": average, "max_time": max(seconds), "min_time": min(seconds)}
    return {name: 1000 * value for name, value in named.items()}


def _write(arguments: argparse.Namespace, timing: Perf, steps: Sequence[LayerTiming]) -> None:
    """Writes profiler.log and profiler.csv. Raises ProjectError if that fails."""
    times = {layer.step.name: _spread(layer.seconds) for layer in steps}
    chip = [sum(layer.seconds) / len(layer.seconds) for layer in steps if layer.step.op != "onnx"]
    conditions = {
        "core_id": arguments.core_id,
        "frame_count": len(timing.latencies),
        "model_name": arguments.model.stem,
        "run_time": 1000 * timing.wall,
        "thread_num": arguments.thread_num,
    }
    sections: list[Any] = [
        {
            "perf_result": {"FPS": timing.rate, "average_latency": 1000 * timing.average},
            "running_condition": conditions,
        },
        {
            "chip_latency": {"BPU_inference_time_cost": {"avg_time": 1000 * sum(chip)}},
            "model_latency": times,
            "task_latency": {"TaskRunningTime": _spread(timing.latencies)},
        },
    ]
    log = "***\n".join(digest.text(section, indent=2) + "\n" for section in sections)
    rows = [f"{name},{s['avg_time']},{s['max_time']},{s['min_time']}" for name, s in times.items()]
    try:
        arguments.profile_path.mkdir(parents=True, exist_ok=True)
        (arguments.profile_path / "profiler.log").write_text(log, encoding="utf-8")
        table = "\n".join(["node,avg_time,max_time,min_time", *rows, ""])
        (arguments.profile_path / "profiler.csv").write_text(table, encoding="utf-8")
    except OSError as error:
        where = str(arguments.profile_path)
        hint = cure_of(arguments.profile_path, error.errno)
        raise ProjectError(f"cannot write: {error.strerror}", where, hint) from error
