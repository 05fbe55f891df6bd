"""Quantizers of others, each in a Python of its own that has it and onnx.

onnxruntime  quantize_static behind its own preprocessing: weights per channel; activations are
             asymmetric unless the chip's are symmetric. A16 has those of 16 bits, by MinMax

    python -m venv --without-pip X && python -m pip --python X/bin/python install nncf
    "nvidia-modelopt[onnx]"  amd-quark    likewise, with onnxruntime and PyTorch

NNCF      its default bias correction, and the full one; mixed preset, or `performance` for
          symmetric activations. What is never negative has unsigned codes there, and NNCF 3.4
          refuses `signedness_to_force`
ModelOpt  for TensorRT: symmetric int8 alone, entropy (its default) or max; what is not quantized
          stays float32
Quark     weights per channel, Percentile 99.9999; as it is, and with its AdaRound. For symmetric
          activations its A8W8, by MinMax
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from npumake.engine.fusion import absorbed, is_clamp
from npumake.engine.ort import Feeds
from npumake.frontends import read_model
from npumake.graph import Node, Value, only_consumer, producer
from npumake.graph.qdq import is_dequantize, is_qdq
from npumake.quant.precision.placement import SAME_GRID_OPERATORS, activations, is_data_movement

ONNXRUNTIME = """
import sys, numpy
from onnxruntime.quantization import (
    CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
)
from onnxruntime.quantization.shape_inference import quant_pre_process
source, made, samples, symmetric, way = sys.argv[1:]
arrays = numpy.load(samples)

class Reader(CalibrationDataReader):
    def __init__(self):
        count = len(arrays[arrays.files[0]])
        self.feeds = ({name: arrays[name][i] for name in arrays} for i in range(count))

    def get_next(self):
        return next(self.feeds, None)

wide = way == "A16"
quant_pre_process(source, "prepared.onnx", skip_symbolic_shape=True)
quantize_static(
    "prepared.onnx",
    made,
    Reader(),
    QuantFormat.QDQ,
    per_channel=True,
    activation_type=QuantType.QUInt16 if wide else QuantType.QInt8,
    weight_type=QuantType.QInt8,
    calibrate_method=getattr(CalibrationMethod, "MinMax" if wide else way),
    extra_options={"ActivationSymmetric": bool(symmetric)},
)
"""
NNCF = """
import sys, numpy, onnx, nncf
source, made, samples, symmetric, way = sys.argv[1:]
arrays = numpy.load(samples)
count = len(arrays[arrays.files[0]])
data = nncf.Dataset([{name: arrays[name][i] for name in arrays} for i in range(count)])
model = nncf.quantize(
    onnx.load(source),
    data,
    preset=nncf.QuantizationPreset("performance" if symmetric else "mixed"),
    subset_size=count,
    fast_bias_correction=way == "fast",
)
onnx.save(model, made)
"""
MODELOPT = """
import sys, numpy
from modelopt.onnx.quantization import quantize
from onnxruntime.quantization import CalibrationDataReader
source, made, samples, symmetric, way = sys.argv[1:]
arrays = numpy.load(samples)

class Reader(CalibrationDataReader):
    def __init__(self):
        self.rewind()

    def get_next(self):
        return next(self.feeds, None)

    def get_first(self):
        return {name: arrays[name][0] for name in arrays}

    def rewind(self):
        count = len(arrays[arrays.files[0]])
        self.feeds = ({name: arrays[name][i] for name in arrays} for i in range(count))

quantize(
    source,
    calibration_data_reader=Reader(),
    calibration_method=way,
    calibration_eps=["cpu"],
    high_precision_dtype="fp32",
    output_path=made,
)
"""
QUARK = """
import sys, numpy
from copy import deepcopy
from onnxruntime.quantization import CalibrationDataReader
from quark.onnx import Config, ModelQuantizer
from quark.onnx.quantization.config import custom_config
source, made, samples, symmetric, way = sys.argv[1:]
arrays = numpy.load(samples)
count = len(arrays[arrays.files[0]])

class Reader(CalibrationDataReader):
    def __init__(self):
        self.reset_iter()

    def get_next(self):
        return next(self.feeds, None)

    def reset_iter(self):
        self.feeds = ({name: arrays[name][i] for name in arrays} for i in range(count))

kind = "A8W8" if symmetric else "S8S8_AAWS"
config = deepcopy(getattr(custom_config, f"{kind}{way}_CONFIG"))
config.per_channel = True
if way:
    config.extra_options["FastFinetune"]["DataSize"] = count
ModelQuantizer(Config(global_quant_config=config)).quantize_model(source, made, Reader())
"""


@dataclass(frozen=True)
class Peer:
    """A quantizer: its package, its script, and the script's argument for each row by title."""

    package: str
    script: str
    ways: dict[str, str]


PEERS = {  # the first row of each is its default
    "onnxruntime": Peer(
        "onnxruntime",
        ONNXRUNTIME,
        {
            "onnxruntime MinMax": "MinMax",
            "onnxruntime Entropy": "Entropy",
            "onnxruntime Percentile": "Percentile",
            "onnxruntime A16": "A16",
        },
    ),
    "nncf": Peer("nncf", NNCF, {"NNCF": "fast", "NNCF, full bias correction": "full"}),
    "modelopt": Peer(
        "nvidia-modelopt", MODELOPT, {"ModelOpt entropy": "entropy", "ModelOpt max": "max"}
    ),
    "quark": Peer("amd-quark", QUARK, {"Quark": "", "Quark, AdaRound": "_ADAROUND"}),
}
Made = Callable[[], bytes]


@dataclass(frozen=True)
class Run:
    """One row of a peer."""

    peer: Peer
    python: str
    symmetric: bool
    way: str
    minutes: float  # after which it is given up


def add_peers(parser: argparse.ArgumentParser) -> None:
    """An option for the Python of each peer, and one for its time."""
    for name in PEERS:
        default = sys.executable if name == "onnxruntime" else None
        parser.add_argument(f"--{name}", metavar="PYTHON", default=default)
    parser.add_argument("--limit", type=float, default=60, help="minutes of one peer")


def peers_of(
    given: argparse.Namespace, model: bytes, feeds: Sequence[Feeds], symmetric: bool
) -> Iterator[tuple[str, Made]]:
    """The rows of all peers that are given a Python, and what makes the model of each."""
    for name, peer in PEERS.items():
        python = getattr(given, name)
        for title, way in peer.ways.items() if python else ():
            run = Run(peer, python, symmetric, way, given.limit)
            yield title, partial(quantized_by, run, model, feeds)


def is_peer(title: str) -> bool:
    """Whether a row is one of a peer."""
    return any(title in peer.ways for peer in PEERS.values())


def versions(options: argparse.Namespace) -> dict[str, str]:
    """The version of each peer that has a Python, by its package."""
    found = {}
    for name, peer in PEERS.items():
        if python := getattr(options, name):
            command = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
            run = subprocess.run(
                [python, "-c", command, peer.package], capture_output=True, text=True, check=True
            )
            found[peer.package] = run.stdout.strip()
    return found


def quantized_by(run: Run, model: bytes, feeds: Sequence[Feeds]) -> bytes:
    """The model as the peer makes it of these samples, all of one shape.

    Raises RuntimeError with the last line of what it says where it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, made, kept = (Path(folder) / name for name in ("a.onnx", "b.onnx", "s.npz"))
        source.write_bytes(model)
        stacked: Any = {name: np.stack([feed[name] for feed in feeds]) for name in feeds[0]}
        np.savez(kept, **stacked)
        scheme = "symmetric" if run.symmetric else ""
        options = [str(source), str(made), str(kept), scheme, run.way]
        command = [run.python, "-c", run.peer.script, *options]
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, cwd=folder, timeout=60 * run.minutes
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"not finished in {run.minutes:g} minutes") from None
        if ran.returncode or not made.exists():
            raise RuntimeError((ran.stderr.strip().splitlines() or ["no model"])[-1])
        return made.read_bytes()


def _follows_layer(node: Node) -> bool:
    (value, *_) = node.inputs
    layer = None if value is None else producer(value)
    return layer is not None and layer.op_type in ("Conv", "ConvTranspose", "Gemm")


def _clamp(node: Node) -> Node | None:
    """The Relu or Clip that a runtime fuses with the node, or with its batch normalization."""
    if node.op_type != "BatchNormalization":
        return absorbed(node)
    reader = only_consumer(node.outputs[0])
    return reader if is_clamp(reader) else None


def _has_codes(value: Value) -> bool:
    maker = producer(value)
    if maker is None or is_dequantize(maker):
        return maker is not None
    passes = maker.op_type in SAME_GRID_OPERATORS or maker.op_type == "Concat"
    return passes and all(map(_has_codes, activations(maker)))


def left_in_float(model: bytes) -> Counter[str]:
    """How many operators of each type compute with a tensor that has no codes, in a model with
    Q/DQ. A batch normalization belongs to the layer before it, a clamp to the node before it. Data
    movement and poolings pass codes on."""
    graph = read_model(model, "peer.onnx").with_shapes()  # Q/DQ of any domain as ONNX's
    folded = {node for node in graph.nodes("BatchNormalization") if _follows_layer(node)}
    clamps = {clamp for node in graph.nodes() if (clamp := _clamp(node)) is not None}
    inside = {*folded, *clamps, *graph.nodes("Shape")}
    moving = {node for node in graph.nodes() if is_qdq(node) or is_data_movement(node)}
    inside |= {*moving, *graph.nodes("Concat")}
    computing = [node for node in graph.nodes() if node not in inside]
    return Counter(
        node.op_type for node in computing if not all(map(_has_codes, activations(node)))
    )
